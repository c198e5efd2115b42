import { type Kysely, sql } from 'kysely';

/** The notice of a pending application, and the history of presentations, of each person. */
export const holder = {
  name: '0009-holder',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`
      CREATE TABLE application_notices (
        platform_user_id text PRIMARY KEY,
        label text NOT NULL,
        set_at timestamptz NOT NULL,
        expires_at timestamptz NOT NULL
      )`.execute(db);
    await sql`CREATE INDEX application_notices_expiry ON application_notices (expires_at)`.execute(db);
    await sql`
      CREATE TABLE presentations (
        platform_user_id text NOT NULL,
        id uuid NOT NULL,
        credential_id text NOT NULL,
        verifier_label text,
        verifier_did text,
        disclosed_claims text[] NOT NULL,
        presented_at timestamptz NOT NULL,
        outcome text NOT NULL
          CHECK (outcome IN ('Presented', 'DeclinedByCitizen', 'VerifierRejected', 'Acknowledged')),
        reported_at timestamptz NOT NULL,
        PRIMARY KEY (platform_user_id, id)
      )`.execute(db);
    await sql`
      CREATE INDEX presentations_newest ON presentations (platform_user_id, presented_at DESC, id)`.execute(
      db,
    );
  },
};
