import { type Kysely, sql } from 'kysely';

/** The table of 0002 has the layout of kit except for the index that finds expired keys. */
export const idempotencyAge = {
  name: '0005-idempotency-age',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`create index idempotency_keys_age on idempotency_keys (created_at)`.execute(db);
  },
};
