import { type Kysely, sql } from 'kysely';

/** When a type was offered last: an issuer has more types than its metadata lists, and lists those that are offered. */
export const offeredTypes = {
  name: '0008-offered-types',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`alter table configurations add column offered_at timestamptz`.execute(db);
    await sql`update configurations set offered_at = coalesce(
      (select max(created_at) from offers where configuration_id = configurations.id), created_at)`.execute(
      db,
    );
    await sql`alter table configurations alter column offered_at set not null`.execute(db);
    await sql`create index configurations_offered on configurations (offered_at)`.execute(db);
  },
};
