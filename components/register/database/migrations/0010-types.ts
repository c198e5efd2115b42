import { type Kysely, sql } from 'kysely';

/**
 * The type of a transaction beside its key: what follows a transaction is judged by it, and what was sealed long ago is cold.
 * It is not there for what was sealed before; that is read from `transactions`.
 */
export const typesMigration = {
  name: '0010-types',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`alter table transaction_ids add column type text`.execute(db);
  },
};
