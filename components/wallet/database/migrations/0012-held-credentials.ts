import { type Kysely, sql } from 'kysely';

/** Credentials that wallets hold. What they say is sealed under the data key of the wallet. */
export const heldCredentials = {
  name: '0012-held-credentials',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`
      CREATE TABLE held_credentials (
        id uuid PRIMARY KEY,
        wallet_id uuid NOT NULL REFERENCES wallets (id),
        digest bytea NOT NULL CHECK (octet_length(digest) = 32),
        format text NOT NULL CHECK (format IN ('sd-jwt-vc', 'mso_mdoc')),
        type text NOT NULL,
        issuer text,
        issuer_certificates bytea[] NOT NULL,
        issuer_key_id text NOT NULL,
        trusted boolean NOT NULL,
        trust_reason text,
        status text NOT NULL CHECK (status IN ('Active', 'Suspended', 'Revoked')),
        status_uri text,
        status_index bigint,
        status_checked_at timestamptz NOT NULL,
        bound_to_holder_key boolean NOT NULL,
        claim_names text[] NOT NULL,
        sealed bytea NOT NULL,
        issued_at timestamptz,
        expires_at timestamptz,
        stored_at timestamptz NOT NULL,
        UNIQUE (wallet_id, digest),
        CHECK ((status_uri IS NULL) = (status_index IS NULL))
      )`.execute(db);
    await sql`CREATE INDEX held_credentials_of_wallet ON held_credentials (wallet_id, stored_at, id)`.execute(
      db,
    );
    await sql`CREATE INDEX held_credentials_to_check ON held_credentials (status_checked_at)
      WHERE status <> 'Revoked' AND status_uri IS NOT NULL`.execute(db);
  },
};
