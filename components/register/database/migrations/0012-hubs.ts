import { type Kysely, sql } from 'kysely';
import { hubsMigration as hubKeyMigration } from '#kit/hub/hub.ts';

const hubKey = hubKeyMigration('0012-hubs');

/** The key of the hub's connection tokens, and the index by which it finds missed events of an organisation. */
export const hubsMigration = {
  name: hubKey.name,
  async up(db: Kysely<unknown>): Promise<void> {
    await hubKey.up(db);
    await sql`create index outbox_registers on outbox (created_at)
      where kind in ('RegisterCreated', 'RegisterDeleted')`.execute(db);
  },
};
