import type { Migration } from '#kit/db/db.ts';
import { outboxMigration } from '#kit/db/outbox.ts';
import { hubsMigration } from '#kit/hub/hub.ts';

const name = '0012-events';
const outbox = outboxMigration(name);
const hubs = hubsMigration(name);

/** The event log of inboxes, and what its hub needs. Entries that exist get no events: only changes are announced. */
export const events: Migration = {
  name,
  async up(db) {
    await outbox.up(db);
    await hubs.up(db);
  },
};
