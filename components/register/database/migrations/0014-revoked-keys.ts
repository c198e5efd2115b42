import { type Kysely, sql } from 'kysely';
import { eventCursorsTable } from '#kit/events/store.ts';

/** Addresses whose keys the wallet service has revoked, and the position in its event log. */
export const revokedKeysMigration = {
  name: '0014-revoked-keys',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql.raw(eventCursorsTable).execute(db);
    await sql`create table revoked_keys (
      address text primary key,
      revoked_at timestamptz not null
    )`.execute(db);
  },
};
