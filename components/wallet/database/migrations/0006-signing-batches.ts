import { type Kysely, sql } from 'kysely';

/**
 * A guard row may hold several messages that were signed in one commit. Processes of the version before ignore the columns and
 * leave them as they are, so their content names the message of the row that it belongs to.
 */
export const signingBatches = {
  name: '0006-signing-batches',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`
      ALTER TABLE signing_guard
        ADD COLUMN first_step smallint,
        ADD COLUMN earlier bytea`.execute(db);
  },
};
