import { type Kysely, sql } from 'kysely';

export const wallets = {
  name: '0001-wallets',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`
      CREATE TABLE wallets (
        id uuid PRIMARY KEY,
        address text NOT NULL UNIQUE,
        kind text NOT NULL CHECK (kind IN ('User', 'Organization', 'System')),
        owner_user_id text,
        owner_organization_id text,
        system_identity text UNIQUE,
        title text NOT NULL,
        description text,
        key_type text NOT NULL CHECK (key_type IN ('ED25519', 'NISTP256', 'RSA')),
        slot integer NOT NULL,
        public_key bytea NOT NULL,
        encryption_key bytea,
        status text NOT NULL CHECK (status IN ('Active', 'Locked')),
        created_by text NOT NULL,
        created_at timestamptz NOT NULL,
        CHECK ((kind = 'User') = (owner_user_id IS NOT NULL)),
        CHECK ((kind = 'Organization') = (owner_organization_id IS NOT NULL)),
        CHECK ((kind = 'System') = (system_identity IS NOT NULL))
      )`.execute(db);
    await sql`CREATE INDEX wallets_owner_user ON wallets (owner_user_id, created_at)`.execute(db);
    await sql`
      CREATE UNIQUE INDEX wallets_one_of_organization ON wallets (owner_organization_id)
      WHERE kind = 'Organization'`.execute(db);
    await sql`
      CREATE TABLE wallet_secrets (
        wallet_id uuid PRIMARY KEY REFERENCES wallets (id),
        purpose text NOT NULL CHECK (purpose IN ('seed', 'pkcs8')),
        kek_id text NOT NULL,
        wrapped_key bytea NOT NULL,
        sealed bytea NOT NULL
      )`.execute(db);
    await sql`
      CREATE TABLE wallet_grants (
        id uuid PRIMARY KEY,
        wallet_id uuid NOT NULL REFERENCES wallets (id),
        subject text NOT NULL,
        access_right text NOT NULL CHECK (access_right IN ('ReadOnly', 'ReadWrite', 'Owner')),
        reason text,
        granted_by text NOT NULL,
        granted_at timestamptz NOT NULL,
        expires_at timestamptz,
        allowed_contexts text[] NOT NULL,
        ended_at timestamptz
      )`.execute(db);
    await sql`
      CREATE UNIQUE INDEX wallet_grants_one_open ON wallet_grants (wallet_id, subject)
      WHERE ended_at IS NULL`.execute(db);
    await sql`CREATE INDEX wallet_grants_subject ON wallet_grants (subject) WHERE ended_at IS NULL`.execute(
      db,
    );
    await sql`
      CREATE TABLE idempotency_keys (
        owner text NOT NULL,
        key text NOT NULL,
        body_hash bytea NOT NULL,
        resource_id text NOT NULL,
        created_at timestamptz NOT NULL,
        PRIMARY KEY (owner, key)
      )`.execute(db);
    await sql`CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at)`.execute(db);
  },
};
