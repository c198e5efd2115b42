import { type Kysely, sql } from 'kysely';

/**
 * Governance state of the ledger: the rules of each register after its last docket, every version of its policies,
 * every governance operation, and the proposals. All of it derives from sealed control transactions; a register older
 * than this migration gets its rows from them on its next read.
 */
const statements = [
  sql`create table register_rules (
    register_no integer primary key references registers,
    docket_number bigint not null,
    rules text not null
  )`,
  sql`create table policy_versions (
    register_no integer not null references registers,
    kind text not null,
    version integer not null,
    document text not null,
    docket_number bigint not null,
    tx_id text not null,
    updated_at text not null,
    updated_by text,
    primary key (register_no, kind, version)
  )`,
  sql`create table governance_operations (
    register_no integer not null references registers,
    docket_number bigint not null,
    position integer not null,
    tx_id text not null,
    operation_type text not null,
    proposal_id text,
    proposer text,
    target text,
    detail jsonb not null,
    sealed_at text not null,
    primary key (register_no, docket_number, position)
  )`,
  sql`create table governance_proposals (
    register_no integer not null references registers,
    proposal_id text not null,
    status text not null,
    opened_docket bigint not null,
    closed_docket bigint,
    expires_at text not null,
    proposal text not null,
    primary key (register_no, proposal_id)
  )`,
  sql`create index governance_proposals_approved on governance_proposals (register_no) where status = 'Approved'`,
  sql`create table docket_conflicts (
    register_no integer not null references registers,
    docket_number bigint not null,
    hash text not null,
    header text not null,
    certificate text not null,
    seen_at timestamptz not null,
    primary key (register_no, docket_number, hash)
  )`,
  sql`alter table registers add column deleted_at timestamptz, add column purged_at timestamptz,
    add column validator_set_version integer not null default 1`,
  sql`create index registers_deleted on registers (deleted_at) where deleted_at is not null`,
];

export const governanceMigration = {
  name: '0005-governance',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};
