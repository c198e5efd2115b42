import { type Kysely, sql } from 'kysely';
import { idempotencyMigration } from '#kit/db/idempotency.ts';
import { outboxMigration } from '#kit/db/outbox.ts';
import { eventCursorsTable } from '#kit/events/store.ts';

const name = '0001-platform';
const outbox = outboxMigration(name);
const idempotencyKeys = idempotencyMigration(name);

/** The event log, answers to repeated requests, and positions in the event logs of other services. */
export const platform = {
  name,
  async up(db: Kysely<unknown>): Promise<void> {
    await outbox.up(db);
    await idempotencyKeys.up(db);
    await sql.raw(eventCursorsTable).execute(db);
  },
};
