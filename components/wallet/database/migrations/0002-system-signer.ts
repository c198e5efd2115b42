import { type Kysely, sql } from 'kysely';

export const systemSigner = {
  name: '0002-system-signer',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`
      CREATE TABLE signing_audit (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        at timestamptz NOT NULL DEFAULT clock_timestamp(),
        caller text NOT NULL,
        caller_subject text NOT NULL,
        register_id text NOT NULL,
        transaction_type text NOT NULL,
        transaction_id text NOT NULL,
        derivation_path text NOT NULL,
        decision text NOT NULL CHECK (decision IN ('Signed', 'Refused')),
        reason text
      )`.execute(db);
    await sql`CREATE INDEX signing_audit_register ON signing_audit (register_id, id)`.execute(db);
    await sql`
      CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        RAISE EXCEPTION 'signing_audit is append-only' USING ERRCODE = 'insufficient_privilege';
      END $$`.execute(db);
    await sql`
      CREATE TRIGGER signing_audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON signing_audit
      FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()`.execute(db);
    await sql`
      CREATE TABLE signing_buckets (
        register_id text NOT NULL,
        derivation_path text NOT NULL,
        recent timestamptz[] NOT NULL,
        PRIMARY KEY (register_id, derivation_path)
      )`.execute(db);
    await sql`
      CREATE TABLE signing_guard (
        register_id text NOT NULL,
        validator_id text NOT NULL,
        height bigint NOT NULL,
        round bigint NOT NULL,
        step smallint NOT NULL,
        digest bytea NOT NULL,
        signature bytea NOT NULL,
        PRIMARY KEY (register_id, validator_id)
      ) WITH (fillfactor = 50)`.execute(db);
    await sql`
      CREATE TABLE signer_epochs (
        validator_id text PRIMARY KEY,
        epoch bigint NOT NULL,
        opened_at timestamptz NOT NULL DEFAULT clock_timestamp()
      )`.execute(db);
  },
};
