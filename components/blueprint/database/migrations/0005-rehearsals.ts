import { type Kysely, sql } from 'kysely';

const statements = [
  sql`create table sandboxes (
    organization_id uuid primary key,
    register_id text not null,
    created_at timestamptz not null
  )`,
  sql`create table rehearsals (
    id uuid primary key,
    organization_id uuid not null,
    draft_id text not null,
    blueprint_id text not null,
    exec_def_hash text not null,
    status text not null check (status in ('InProgress', 'Passed', 'Failed', 'Abandoned')),
    started_by text not null,
    roles integer not null,
    register_id text,
    publication_tx_id text,
    instance_id uuid,
    wallets jsonb,
    acting_role text,
    acting_since integer not null,
    notes jsonb not null,
    started_at timestamptz not null,
    touched_at timestamptz not null,
    ended_at timestamptz,
    wallets_erased_at timestamptz
  )`,
  // A start abandons the rehearsal of the same draft that the same person has under way.
  sql`create unique index rehearsals_under_way on rehearsals (organization_id, draft_id, started_by)
    where status = 'InProgress'`,
  sql`create index rehearsals_left on rehearsals (touched_at) where wallets_erased_at is null`,
];

export const rehearsals = {
  name: '0005-rehearsals',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};
