import { type Kysely, sql } from 'kysely';

/** Derived keys of organisations, the ends of wallets, and the record of these changes. */
export const organizationKeys = {
  name: '0007-organization-keys',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`
      ALTER TABLE wallets
        ADD COLUMN key_status text CHECK (key_status IN ('Active', 'Rotated', 'Revoked')),
        ADD COLUMN locked_at timestamptz,
        ADD COLUMN replaced_at timestamptz,
        DROP CONSTRAINT wallets_kind_check,
        DROP CONSTRAINT wallets_status_check,
        DROP CONSTRAINT wallets_check,
        DROP CONSTRAINT wallets_check1,
        ADD CONSTRAINT wallets_kind_check
          CHECK (kind IN ('User', 'Organization', 'System', 'Service', 'Derived')),
        ADD CONSTRAINT wallets_status_check CHECK (status IN ('Active', 'Locked', 'Deleted')),
        ADD CONSTRAINT wallets_of_person CHECK ((kind IN ('User', 'Derived')) = (owner_user_id IS NOT NULL)),
        ADD CONSTRAINT wallets_of_organization
          CHECK ((kind IN ('Organization', 'Derived')) = (owner_organization_id IS NOT NULL)),
        ADD CONSTRAINT wallets_key_status CHECK ((kind = 'Derived') = (key_status IS NOT NULL))`.execute(db);
    await sql`UPDATE wallets SET locked_at = now() WHERE status = 'Locked'`.execute(db);
    await sql`DROP INDEX wallets_one_of_organization`.execute(db);
    await sql`
      CREATE UNIQUE INDEX wallets_one_of_organization ON wallets (owner_organization_id)
      WHERE kind = 'Organization' AND status <> 'Deleted' AND replaced_at IS NULL`.execute(db);
    await sql`
      ALTER TABLE wallet_secrets
        DROP CONSTRAINT wallet_secrets_purpose_check,
        ADD CONSTRAINT wallet_secrets_purpose_check CHECK (purpose IN ('seed', 'pkcs8', 'node'))`.execute(db);
    await sql`
      CREATE TABLE derived_keys (
        id uuid PRIMARY KEY REFERENCES wallets (id),
        master_id uuid NOT NULL REFERENCES wallets (id),
        organization_id text NOT NULL,
        user_id text NOT NULL,
        department_id integer NOT NULL CHECK (department_id >= 0),
        usage text NOT NULL
          CHECK (usage IN ('Identity', 'VCIssuance', 'Governance', 'Communications', 'ServiceAuth')),
        key_index integer NOT NULL CHECK (key_index >= 0),
        derivation_path text NOT NULL,
        created_at timestamptz NOT NULL,
        rotated_at timestamptz,
        revoked_at timestamptz,
        UNIQUE (organization_id, user_id, department_id, usage, key_index)
      )`.execute(db);
    await sql`CREATE INDEX derived_keys_master ON derived_keys (master_id)`.execute(db);
    await sql`
      CREATE TABLE wallet_audit (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        at timestamptz NOT NULL,
        platform_user_id text NOT NULL,
        organization_id text,
        act text NOT NULL,
        wallet_id uuid NOT NULL,
        wallet_address text NOT NULL
      )`.execute(db);
    await sql`CREATE INDEX wallet_audit_wallet ON wallet_audit (wallet_id, id)`.execute(db);
    await sql`
      CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        RAISE EXCEPTION 'wallet_audit is append-only' USING ERRCODE = 'insufficient_privilege';
      END $$`.execute(db);
    await sql`
      CREATE TRIGGER wallet_audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON wallet_audit
      FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change()`.execute(db);
  },
};
