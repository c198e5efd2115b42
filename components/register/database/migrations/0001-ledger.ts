import { type Kysely, sql } from 'kysely';

/**
 * Registers, their heads and the projections of the ledger. `register_no` is the narrow key of every child table: an
 * entry of the transaction id index takes 40 bytes instead of 90, which keeps the cost of appends flat while the index
 * grows.
 */
const registerTables = [
  sql`create table registers (
    register_no integer generated always as identity primary key,
    register_id text not null unique,
    network_id text not null,
    title text not null,
    description text,
    purpose text not null,
    status text not null,
    dev_mode boolean not null,
    advertise boolean not null,
    metadata jsonb not null,
    policy text not null,
    policy_version integer not null,
    organization_id text,
    genesis_transaction_id text not null,
    system_public_key text not null,
    system_algorithm text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null
  )`,
  sql`create table register_heads (
    register_no integer primary key references registers,
    height bigint not null default 0,
    head_hash text not null default '',
    head_timestamp text not null default '',
    log_frontier bytea not null default ''::bytea,
    transaction_count bigint not null default 0,
    size_bytes bigint not null default 0
  ) with (fillfactor = 50)`,
  sql`create table register_validators (
    register_no integer not null references registers,
    validator_id text not null,
    from_docket bigint not null,
    until_docket bigint,
    public_key text not null,
    algorithm text not null,
    primary key (register_no, validator_id, from_docket)
  )`,
  sql`create index register_validators_member on register_validators (validator_id)`,
  sql`create table register_roster (
    register_no integer not null references registers,
    subject text not null,
    role text not null,
    public_key text not null,
    algorithm text not null,
    granted_at text not null,
    primary key (register_no, subject)
  )`,
  sql`create table subscriptions (
    organization_id text not null,
    register_no integer not null references registers,
    kind text not null,
    created_at timestamptz not null,
    primary key (organization_id, register_no)
  )`,
  sql`create table registrations (
    register_id text primary key,
    organization_id text,
    nonce_hash bytea not null,
    wrong_nonces integer not null default 0,
    draft jsonb not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    answer jsonb
  )`,
  sql`create index registrations_open on registrations (organization_id, expires_at) where answer is null`,
  sql`create table genesis_work (
    register_no integer primary key references registers,
    submission jsonb not null,
    attempts integer not null default 0,
    claimed_until timestamptz,
    last_error text
  )`,
  sql`create table validator_directory (
    validator_id text primary key,
    public_key text not null,
    algorithm text not null,
    endpoint text not null,
    version text not null,
    announced_at timestamptz not null
  )`,
  sql`create table idempotency_keys (
    scope text not null,
    key text not null,
    body_hash text not null,
    claimed_at timestamptz not null,
    status integer,
    body jsonb,
    primary key (scope, key)
  )`,
  sql`create index idempotency_keys_age on idempotency_keys (claimed_at)`,
];

/**
 * Sealed history. `transactions` is range-partitioned by docket number, so current writes touch the pages of one
 * partition; its key grows at the right edge of each register. `transaction_ids` is one plain unique index: hash
 * partitions would not make random ids local and would add a planning step to each probe.
 */
const ledgerTables = [
  sql`create table dockets (
    register_no integer not null references registers,
    docket_number bigint not null,
    hash text not null,
    previous_hash text not null,
    merkle_root text not null,
    log_root text not null,
    validator_set_hash text not null,
    timestamp text not null,
    validator_address text not null,
    is_genesis boolean not null,
    genesis_config text,
    size_bytes bigint not null,
    transaction_count integer not null,
    first_ordinal bigint not null,
    certificate text not null,
    stored_at timestamptz not null,
    primary key (register_no, docket_number)
  )`,
  sql`create unique index dockets_hash on dockets (register_no, hash)`,
  sql`create index dockets_ordinal on dockets (register_no, first_ordinal)`,
  sql`create table docket_attestations (
    register_no integer not null,
    docket_number bigint not null,
    validator_address text not null,
    attestation jsonb not null,
    primary key (register_no, docket_number, validator_address)
  )`,
  sql`create table log_nodes (
    register_no integer not null,
    level smallint not null,
    position bigint not null,
    hash bytea not null,
    primary key (register_no, level, position)
  )`,
  sql`create table transactions (
    register_no integer not null,
    docket_number bigint not null,
    position integer not null,
    tx_id bytea not null,
    type text not null,
    sender_address text not null,
    blueprint_id text,
    action_id text,
    previous_tx_id bytea,
    created_micros bigint not null,
    leaf bytea not null,
    payload_hash_form text not null,
    record bytea not null,
    payload bytea not null,
    primary key (register_no, docket_number, position)
  ) partition by range (docket_number)`,
  sql`create index transactions_sender
    on transactions (register_no, sender_address, docket_number desc, position desc)`,
  sql`create index transactions_created on transactions (register_no, created_micros)`,
  sql`create table transaction_ids (
    register_no integer not null,
    tx_id bytea not null,
    docket_number bigint not null,
    position integer not null,
    primary key (tx_id, register_no)
  )`,
  sql`create table transaction_successors (
    register_no integer not null,
    previous_tx_id bytea not null,
    tx_id bytea not null,
    primary key (previous_tx_id, register_no)
  )`,
  sql`create table sender_counters (
    register_no integer not null,
    sender_address text not null,
    transaction_count bigint not null,
    primary key (register_no, sender_address)
  ) with (fillfactor = 70)`,
];

export const ledgerMigration = {
  name: '0001-ledger',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of [...registerTables, ...ledgerTables]) await statement.execute(db);
  },
};
