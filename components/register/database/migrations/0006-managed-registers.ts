import { type Kysely, sql } from 'kysely';

/**
 * Registers requested by custom resources: the permanent register id of each UID, the draft until the owners have
 * attested, the outstanding changes, and the deletion policy.
 */
const statements = [
  sql`create table managed_registers (
    uid uuid primary key,
    register_id text not null,
    organization_id text not null,
    purpose text not null,
    draft jsonb,
    wish_hash bytea,
    expires_at timestamptz,
    attestations jsonb not null default '[]',
    created_at timestamptz not null,
    released_at timestamptz
  )`,
  sql`create unique index managed_registers_bound on managed_registers (register_id) where released_at is null`,
  sql`create table managed_changes (
    register_no integer not null references registers,
    aggregate text not null,
    change text not null,
    tx_id text not null,
    submitted_at timestamptz not null,
    primary key (register_no, aggregate)
  )`,
  sql`alter table registers add column deletion_policy text, add column purge_after timestamptz`,
  sql`create index registers_purge on registers (purge_after) where purge_after is not null and purged_at is null`,
];

export const managedRegistersMigration = {
  name: '0006-managed-registers',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};
