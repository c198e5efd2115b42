import { type Kysely, sql } from 'kysely';

/** Organisations whose first wallet waits for its certificate. */
export const requestedEnrolments = {
  name: '0019-requested-enrolments',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`create table requested_enrolments (
      organization_id uuid primary key references organizations (id) on delete cascade,
      wallet_address text not null,
      tries integer not null default 0,
      next_try_at timestamptz not null
    )`.execute(db);
    await sql`create index requested_enrolments_due on requested_enrolments (next_try_at)`.execute(db);
  },
};
