import { type Kysely, sql } from 'kysely';

/** The table of 0002 is kit's, but for the index by which old keys are found. */
export const idempotencyAge = {
  name: '0005-idempotency-age',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`create index idempotency_keys_age on idempotency_keys (created_at)`.execute(db);
  },
};
