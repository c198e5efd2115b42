import { type Kysely, sql } from 'kysely';
import { hubsMigration } from '#kit/hub/hub.ts';

const hubKey = hubsMigration('0010-hubs');

/**
 * The key of the hub's connection tokens, the index by which it finds missed events, and the one by which events for
 * holders are deleted: the others of the log stay for good.
 */
export const hubs = {
  name: hubKey.name,
  async up(db: Kysely<unknown>): Promise<void> {
    await hubKey.up(db);
    await sql`CREATE INDEX outbox_holders ON outbox (created_at)
      WHERE kind IN ('DeviceRevoked', 'CredentialAvailable', 'CredentialStatusChanged')`.execute(db);
  },
};
