import { type Kysely, sql } from 'kysely';
import { hubsMigration } from '#kit/hub/hub.ts';

const statements = [
  // What the ledger says of instances: dropped and made again from sealed steps alone.
  sql`create table instances (
    register_id text not null,
    instance_id uuid not null,
    publication_tx_id text not null,
    blueprint_id text not null,
    first_tx_id text not null,
    last_tx_id text not null,
    seq integer not null,
    routing text not null,
    state text not null,
    state_reason text,
    completed_count integer not null,
    started_at timestamptz not null,
    updated_at timestamptz not null,
    completed_at timestamptz,
    -- The deadline of the last current action, when all of them have one.
    times_out_at timestamptz,
    primary key (register_id, instance_id)
  )`,
  sql`create index instances_id on instances (instance_id)`,
  sql`create index instances_publication on instances (publication_tx_id, state)`,
  sql`create table steps (
    register_id text not null,
    tx_id text not null,
    instance_id uuid not null,
    seq integer not null,
    action_id integer not null,
    type text not null,
    sender text not null,
    docket_number bigint not null,
    position integer not null,
    sealed_at timestamptz not null,
    routing text not null,
    primary key (register_id, tx_id)
  )`,
  sql`create unique index steps_seq on steps (register_id, instance_id, seq)`,
  sql`create index steps_sender on steps (sender, register_id, docket_number)`,
  // The wallets of participants, closed and bound ones.
  sql`create table instance_roles (
    register_id text not null,
    instance_id uuid not null,
    participant_id text not null,
    wallet text not null,
    primary key (register_id, instance_id, participant_id)
  )`,
  sql`create index instance_roles_wallet on instance_roles (wallet)`,
  sql`create table step_cursors (
    register_id text primary key,
    docket_number bigint not null,
    position integer not null
  )`,
  // What people asked for here; the ledger knows an instance from its first step on.
  sql`create table instance_starts (
    instance_id uuid primary key,
    register_id text not null,
    publication_tx_id text not null,
    blueprint_id text not null,
    participant_wallets jsonb not null,
    tenant_id text not null,
    metadata jsonb not null,
    created_by text not null,
    organization_id uuid,
    created_at timestamptz not null,
    start_operation uuid,
    cancelled_at timestamptz,
    cancel_reason text
  )`,
  sql`create index instance_starts_person on instance_starts (created_by, created_at desc)`,
];

const hubKey = hubsMigration('0003-instances');

export const instances = {
  name: hubKey.name,
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
    await hubKey.up(db);
  },
};
