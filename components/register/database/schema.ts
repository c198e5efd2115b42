import type { ColumnType, Generated, Selectable } from 'kysely';
import type { EncryptionAlgorithm } from '#core/crypto/encryption-key.ts';
import type { RulesPart } from '#core/ledger/governance/control.ts';
import type { Operation, ProposalStatus } from '#core/ledger/governance/operation.ts';

/**
 * Maximum bytes of an index entry for texts chosen by a client, as in migration 0007; longer values are found by
 * scanning.
 */
export const longestIndexedBytes = 256;

/**
 * Transactions after which a register's key segment (migration 0008) is sealed and the next one is opened. A larger
 * number gives fewer filters to check for each key; a smaller one keeps the open segment in memory.
 */
export const defaultSegmentTransactions = 1_000_000;

type Instant = ColumnType<Date, Date, Date>;
type Json<T> = ColumnType<T, string, string>;

export interface RegistersTable {
  register_no: Generated<number>;
  register_id: string;
  network_id: string;
  title: string;
  description: string | null;
  purpose: string;
  status: string;
  dev_mode: boolean;
  advertise: boolean;
  metadata: Json<Record<string, string>>;
  policy: string;
  policy_version: number;
  organization_id: string | null;
  genesis_transaction_id: string;
  system_public_key: string;
  system_algorithm: string;
  created_at: Instant;
  updated_at: Instant;
  deleted_at: ColumnType<Date | null, Date | null | undefined, Date | null>;
  purged_at: ColumnType<Date | null, Date | null | undefined, Date | null>;
  validator_set_version: Generated<number>;
  deletion_policy: ColumnType<string | null, string | null | undefined, string | null>;
  purge_after: ColumnType<Date | null, Date | null | undefined, Date | null>;
}

export interface RegisterHeadsTable {
  register_no: number;
  height: Generated<number>;
  head_hash: Generated<string>;
  head_timestamp: Generated<string>;
  log_frontier: Generated<Buffer>;
  transaction_count: Generated<number>;
  size_bytes: Generated<number>;
  segment: Generated<number>;
  segment_count: Generated<number>;
}

interface RegisterValidatorsTable {
  register_no: number;
  validator_id: string;
  from_docket: number;
  until_docket: number | null;
  public_key: string;
  algorithm: string;
}

interface RegisterRosterTable {
  register_no: number;
  subject: string;
  role: string;
  public_key: string;
  algorithm: string;
  granted_at: string;
}

interface SubscriptionsTable {
  organization_id: string;
  register_no: number;
  kind: string;
  created_at: Instant;
}

interface RegistrationsTable {
  register_id: string;
  organization_id: string | null;
  nonce_hash: Buffer;
  wrong_nonces: Generated<number>;
  draft: Json<unknown>;
  created_at: Instant;
  expires_at: Instant;
  answer: ColumnType<unknown, string | null, string | null>;
}

interface GenesisWorkTable {
  register_no: number;
  submission: Json<unknown>;
  attempts: Generated<number>;
  claimed_until: ColumnType<Date | null, Date | null, Date | null>;
  last_error: string | null;
}

interface ValidatorDirectoryTable {
  validator_id: string;
  public_key: string;
  algorithm: string;
  endpoint: string;
  version: string;
  features: ColumnType<string[], string[] | undefined, string[]>;
  announced_at: Instant;
}

interface DocketsTable {
  register_no: number;
  docket_number: number;
  hash: string;
  previous_hash: string;
  merkle_root: string;
  log_root: string;
  validator_set_hash: string;
  timestamp: string;
  validator_address: string;
  is_genesis: boolean;
  genesis_config: string | null;
  size_bytes: number;
  transaction_count: number;
  first_ordinal: number;
  certificate: string;
  stored_at: Instant;
}

export type DocketRow = Selectable<DocketsTable>;

interface DocketAttestationsTable {
  register_no: number;
  docket_number: number;
  validator_address: string;
  attestation: Json<unknown>;
}

interface LogNodesTable {
  register_no: number;
  level: number;
  position: number;
  hash: Buffer;
}

/** Index rows of transactions. Record, payload, leaf and form are null for dockets with a value. */
interface TransactionRowsTable {
  register_no: number;
  docket_number: number;
  position: number;
  tx_id: Buffer;
  type: string;
  sender_address: string;
  blueprint_id: string | null;
  action_id: string | null;
  previous_tx_id: Buffer | null;
  created_micros: number;
  leaf: Buffer | null;
  payload_hash_form: string | null;
  record: Buffer | null;
  payload: Buffer | null;
  instance_id: string | null;
}

interface DocketValuesTable {
  register_no: number;
  docket_number: number;
  value: Buffer;
}

interface RegisterProjectionsTable {
  register_no: number;
  /** dockets whose index rows are written */
  height: Generated<number>;
  /** the index rows are to be written anew */
  rebuild: Generated<boolean>;
}

interface TransactionIdsTable {
  register_no: number;
  segment: number;
  tx_id: Buffer;
  docket_number: number;
  position: number;
  replay_key: Buffer | null;
  /** null: sealed before migration 0010 */
  type: string | null;
  /** true for a step of a workflow, else null */
  is_step: boolean | null;
}

interface TransactionSuccessorsTable {
  register_no: number;
  segment: number;
  previous_tx_id: Buffer;
  tx_id: Buffer;
}

interface SegmentFiltersTable {
  register_no: number;
  segment: number;
  bits: Buffer;
}

interface SenderCountersTable {
  register_no: number;
  sender_address: string;
  transaction_count: number;
}

interface BlueprintCountersTable {
  register_no: number;
  blueprint_id: string;
  transaction_count: number;
}

interface TransactionRecipientsTable {
  register_no: number;
  address: string;
  docket_number: number;
  position: number;
}

interface RecipientCountersTable {
  register_no: number;
  address: string;
  transaction_count: number;
  /** of these, transactions that the address sent to itself */
  sent_count: Generated<number>;
}

interface ParticipantKeysTable {
  register_no: number;
  address: string;
  participant_id: string;
  public_key: string;
  algorithm: string;
  status: string;
  /** with `encryption_key` */
  encryption_algorithm: EncryptionAlgorithm | null;
  encryption_key: string | null;
}

/** Addresses whose keys the wallet service has revoked. */
interface RevokedKeysTable {
  address: string;
  revoked_at: Date;
}

export interface BlueprintPublicationsTable {
  register_no: number;
  blueprint_id: string;
  ordinal: number;
  tx_id: Buffer;
  docket_number: number;
  position: number;
  major: number;
  minor: number;
  change_type: string;
  content_hash: string;
  exec_def_hash: string;
  structural_hash: string;
  title: string;
  metadata: Record<string, string>;
  published_by: string;
  /** timestamp of the docket */
  published_at: string;
  is_latest: boolean;
}

interface RegisterRulesTable {
  register_no: number;
  docket_number: number;
  rules: string;
}

interface PolicyVersionsTable {
  register_no: number;
  kind: string;
  version: number;
  document: string;
  docket_number: number;
  tx_id: string;
  updated_at: string;
  updated_by: string | null;
}

/** What a control transaction did, in the history. */
export const operationEvents = ['proposed', 'voted', 'enacted', 'rejected', 'changed', 'ejected'] as const;
export type OperationEvent = (typeof operationEvents)[number];

/** Facts of a control transaction that only the history shows. */
export interface OperationDetail {
  readonly event: OperationEvent;
  readonly actionId?: string | undefined;
  readonly senderAddress?: string | undefined;
  readonly parts?: readonly RulesPart[] | undefined;
  readonly operation?: Operation | undefined;
  readonly proposalStatus?: ProposalStatus | undefined;
}

interface GovernanceOperationsTable {
  register_no: number;
  docket_number: number;
  position: number;
  tx_id: string;
  operation_type: string;
  proposal_id: string | null;
  proposer: string | null;
  target: string | null;
  detail: Json<OperationDetail>;
  sealed_at: string;
}

interface GovernanceProposalsTable {
  register_no: number;
  proposal_id: string;
  status: ProposalStatus;
  opened_docket: number;
  closed_docket: number | null;
  expires_at: string;
  proposal: string;
}

interface DocketConflictsTable {
  register_no: number;
  docket_number: number;
  hash: string;
  header: string;
  certificate: string;
  seen_at: Instant;
}

export interface ManagedRegistersTable {
  uid: string;
  register_id: string;
  organization_id: string;
  purpose: string;
  draft: ColumnType<unknown, string | null | undefined, string | null>;
  wish_hash: ColumnType<Buffer | null, Buffer | null | undefined, Buffer | null>;
  expires_at: ColumnType<Date | null, Date | null | undefined, Date | null>;
  attestations: ColumnType<unknown, string | undefined, string>;
  created_at: Instant;
  released_at: ColumnType<Date | null, Date | null | undefined, Date | null>;
}

interface ManagedChangesTable {
  register_no: number;
  aggregate: string;
  change: string;
  tx_id: string;
  submitted_at: Instant;
}

export interface RegisterSchema {
  managed_registers: ManagedRegistersTable;
  managed_changes: ManagedChangesTable;
  registers: RegistersTable;
  register_heads: RegisterHeadsTable;
  register_validators: RegisterValidatorsTable;
  register_roster: RegisterRosterTable;
  subscriptions: SubscriptionsTable;
  registrations: RegistrationsTable;
  genesis_work: GenesisWorkTable;
  validator_directory: ValidatorDirectoryTable;
  dockets: DocketsTable;
  docket_attestations: DocketAttestationsTable;
  log_nodes: LogNodesTable;
  docket_values: DocketValuesTable;
  transaction_rows: TransactionRowsTable;
  register_projections: RegisterProjectionsTable;
  transaction_ids: TransactionIdsTable;
  transaction_successors: TransactionSuccessorsTable;
  segment_filters: SegmentFiltersTable;
  sender_counters: SenderCountersTable;
  blueprint_counters: BlueprintCountersTable;
  transaction_recipients: TransactionRecipientsTable;
  recipient_counters: RecipientCountersTable;
  participant_keys: ParticipantKeysTable;
  revoked_keys: RevokedKeysTable;
  blueprint_publications: BlueprintPublicationsTable;
  register_rules: RegisterRulesTable;
  policy_versions: PolicyVersionsTable;
  governance_operations: GovernanceOperationsTable;
  governance_proposals: GovernanceProposalsTable;
  docket_conflicts: DocketConflictsTable;
}
