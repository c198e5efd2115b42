import { type Kysely, sql } from 'kysely';

/**
 * The type of a transaction beside its key: successors are judged by it, and pages of old transactions are cold. It is
 * null for transactions sealed before; their type is read from `transactions`.
 */
export const typesMigration = {
  name: '0010-types',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`alter table transaction_ids add column type text`.execute(db);
  },
};
