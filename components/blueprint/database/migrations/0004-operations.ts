import { type Kysely, sql } from 'kysely';

const statements = [
  sql`create table operations (
    id uuid primary key,
    kind text not null,
    instance_id uuid not null,
    register_id text not null,
    blueprint_id text not null,
    action_id integer not null,
    action_title text not null,
    wallet text not null,
    owner text not null,
    organization_id uuid,
    status text not null,
    current_step integer not null,
    percent integer not null,
    recipient_count integer not null,
    warnings jsonb,
    -- Sealed under the key of the service, and wiped at the end.
    sealed_input bytea,
    sealed_delegation bytea,
    delegation_expires_at timestamptz not null,
    -- Committed before it is signed, with all its randomness.
    draft bytea,
    -- Committed before it is sent; the same bytes are sent again.
    submission bytea,
    tx_id text,
    expires_at timestamptz,
    is_accepted boolean not null,
    error jsonb,
    forks integer not null,
    attempts integer not null,
    lease_owner text,
    lease_until timestamptz,
    next_attempt_at timestamptz not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    completed_at timestamptz
  )`,
  sql`create index operations_due on operations (next_attempt_at) where completed_at is null`,
  sql`create index operations_wallet on operations (wallet, created_at desc, id desc)`,
  sql`create index operations_ended on operations (completed_at) where completed_at is not null`,
];

export const operations = {
  name: '0004-operations',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};
