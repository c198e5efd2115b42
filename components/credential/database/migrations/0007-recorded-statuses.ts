import { type Kysely, sql } from 'kysely';

/** The register of an offer, and changes of statuses that the register does not have yet. */
export const recordedStatuses = {
  name: '0007-recorded-statuses',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`alter table offers add column register_id text`.execute(db);
    await sql`create table unrecorded_changes (
      id bigint generated always as identity primary key,
      credential_id uuid not null references credentials (id),
      register_id text not null,
      organization_id uuid not null,
      wallet_address text not null,
      payload text not null,
      transaction json,
      tries integer not null default 0,
      next_try_at timestamptz not null
    )`.execute(db);
    await sql`create index unrecorded_changes_due on unrecorded_changes (next_try_at)`.execute(db);
    await sql`create index unrecorded_changes_order on unrecorded_changes (credential_id, id)`.execute(db);
  },
};
