import { sql } from 'kysely';
import type { PoolClient } from 'pg';
import { AppError } from '#core/errors/errors.ts';
import type { ProposalStatus } from '#core/ledger/governance/operation.ts';
import { parsePolicy } from '#core/ledger/policy.ts';
import type { Database, Reader } from '#kit/db/db.ts';
import { type BoundStatement, statement } from '#kit/db/statement.ts';
import type { OperationDetail, RegisterSchema } from '../../database/schema.ts';
import { withoutNul } from '../../database/text.ts';
import { findAt } from '../../ledger/sealed/store.ts';
import type { Member, RosterEntry } from '../../registers/state/store.ts';

type Db = Reader<RegisterSchema>;

export type PolicyKind = 'policy' | 'crypto';

/** One version of a policy, as sealed in the ledger. */
export interface PolicyVersion {
  readonly kind: PolicyKind;
  readonly version: number;
  /** JSON text */
  readonly document: string;
  readonly docketNumber: number;
  readonly txId: string;
  readonly updatedAt: string;
  readonly updatedBy: string | undefined;
}

/** One sealed control transaction that changed or proposed something. */
export interface Operation {
  readonly docketNumber: number;
  readonly position: number;
  readonly txId: string;
  readonly operationType: string;
  readonly proposalId: string | undefined;
  /** DID of the proposer */
  readonly proposer: string | undefined;
  /** the target of the operation, such as a DID or a validator id */
  readonly target: string | undefined;
  readonly detail: OperationDetail;
  /** timestamp of the docket */
  readonly sealedAt: string;
}

export interface ProposalRow {
  readonly proposalId: string;
  readonly status: ProposalStatus;
  readonly openedDocket: number;
  readonly closedDocket: number | undefined;
  readonly expiresAt: string;
  /** JSON text */
  readonly proposal: string;
}

/** The changes of the rules by a docket, as rows. */
export interface Projection {
  readonly docketNumber: number;
  /** canonical JSON of the rules after the docket */
  readonly rulesText: string;
  readonly facts: {
    readonly title: string;
    readonly description: string | undefined;
    readonly metadata: Readonly<Record<string, string>>;
    readonly policyText: string;
    readonly policyVersion: number;
    readonly devMode: boolean;
    readonly validatorSetVersion: number;
  };
  /** V(docketNumber + 1) where it differs from V(docketNumber) */
  readonly joined: readonly Member[];
  readonly left: readonly string[];
  /** the whole roster after the docket */
  readonly roster: readonly RosterEntry[];
  readonly policies: readonly PolicyVersion[];
  readonly operations: readonly Operation[];
  readonly proposals: readonly ProposalRow[];
}

interface AtRegister {
  readonly registerNo: number;
}

/** Rows as JSON text. */
interface JsonRows extends AtRegister {
  readonly rows: string;
}

const saveRules = statement<AtRegister & { readonly docketNumber: number; readonly rules: string }>(`
  insert into register_rules (register_no, docket_number, rules) values (:registerNo, :docketNumber, :rules)
  on conflict (register_no) do update set docket_number = excluded.docket_number, rules = excluded.rules
  where register_rules.docket_number <= excluded.docket_number`);

interface FactsRow extends AtRegister {
  readonly title: string;
  readonly description: string | null;
  readonly metadata: string;
  readonly policyText: string;
  readonly policyVersion: number;
  readonly devMode: boolean;
  readonly validatorSetVersion: number;
  readonly updatedAt: Date;
}

const saveFacts = statement<FactsRow>(`
  update registers set title = :title, description = :description, metadata = :metadata::jsonb, policy = :policyText,
    policy_version = :policyVersion, dev_mode = :devMode, validator_set_version = :validatorSetVersion,
    updated_at = :updatedAt
  where register_no = :registerNo`);

const endMembers = statement<
  AtRegister & { readonly nextDocket: number; readonly validatorIds: readonly string[] }
>(`
  update register_validators set until_docket = :nextDocket
  where register_no = :registerNo and validator_id = any(:validatorIds::text[]) and until_docket is null
    and from_docket < :nextDocket`);

const addMembers = statement<JsonRows & { readonly nextDocket: number }>(`
  insert into register_validators (register_no, validator_id, from_docket, until_docket, public_key, algorithm)
  select :registerNo, m."validatorId", :nextDocket, null, m."publicKey", m.algorithm
  from jsonb_to_recordset(:rows::jsonb) as m("validatorId" text, "publicKey" text, algorithm text)
  on conflict do nothing`);

const removeRoster = statement<AtRegister>('delete from register_roster where register_no = :registerNo');

const addRoster = statement<JsonRows>(`
  insert into register_roster (register_no, subject, role, public_key, algorithm, granted_at)
  select :registerNo, r.subject, r.role, r."publicKey", r.algorithm, r."grantedAt"
  from jsonb_to_recordset(:rows::jsonb)
    as r(subject text, role text, "publicKey" text, algorithm text, "grantedAt" text)`);

const addPolicies = statement<JsonRows>(`
  insert into policy_versions (register_no, kind, version, document, docket_number, tx_id, updated_at, updated_by)
  select :registerNo, p.kind, p.version, p.document, p."docketNumber", p."txId", p."updatedAt", p."updatedBy"
  from jsonb_to_recordset(:rows::jsonb) as p(kind text, version integer, document text, "docketNumber" bigint,
    "txId" text, "updatedAt" text, "updatedBy" text)
  on conflict do nothing`);

const addOperations = statement<JsonRows>(`
  insert into governance_operations (register_no, docket_number, position, tx_id, operation_type, proposal_id, proposer,
    target, detail, sealed_at)
  select :registerNo, o."docketNumber", o.position, o."txId", o."operationType", o."proposalId", o.proposer, o.target, o.detail,
    o."sealedAt"
  from jsonb_to_recordset(:rows::jsonb) as o("docketNumber" bigint, position integer, "txId" text, "operationType" text,
    "proposalId" text, proposer text, target text, detail jsonb, "sealedAt" text)
  on conflict do nothing`);

const saveProposals = statement<JsonRows>(`
  insert into governance_proposals (register_no, proposal_id, status, opened_docket, closed_docket, expires_at, proposal)
  select :registerNo, p."proposalId", p.status, p."openedDocket", p."closedDocket", p."expiresAt", p.proposal
  from jsonb_to_recordset(:rows::jsonb) as p("proposalId" text, status text, "openedDocket" bigint, "closedDocket" bigint,
    "expiresAt" text, proposal text)
  on conflict (register_no, proposal_id) do update set status = excluded.status,
    closed_docket = excluded.closed_docket, proposal = excluded.proposal`);

/** Text columns cannot hold NUL, neither in values nor in member names; the signed record keeps the original. */
function storable(_name: string, value: unknown): unknown {
  if (typeof value === 'string') return withoutNul(value);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [withoutNul(name), member]));
}

/** JSON text of rows, as the columns can hold it. */
const jsonOf = (rows: unknown) => JSON.stringify(rows, storable);

function factsRow(registerNo: number, { facts }: Projection, updatedAt: Date): FactsRow {
  const { title, description, metadata, ...others } = facts;
  return {
    ...others,
    registerNo,
    title: withoutNul(title),
    description: description === undefined ? null : withoutNul(description),
    metadata: jsonOf(metadata),
    updatedAt,
  };
}

/** The statements of a projection, in the order in which they are executed. */
function statementsOf(registerNo: number, projection: Projection, at: Date): readonly BoundStatement[] {
  const { docketNumber, rulesText: rules, joined, left: validatorIds } = projection;
  const nextDocket = docketNumber + 1;
  const rowsOf = (rows: readonly unknown[]): JsonRows => ({ registerNo, rows: jsonOf(rows) });
  return [
    saveRules({ registerNo, docketNumber, rules }),
    saveFacts(factsRow(registerNo, projection, at)),
    endMembers({ registerNo, nextDocket, validatorIds }),
    addMembers({ ...rowsOf(joined), nextDocket }),
    removeRoster({ registerNo }),
    addRoster(rowsOf(projection.roster)),
    addPolicies(rowsOf(projection.policies)),
    addOperations(rowsOf(projection.operations)),
    saveProposals(rowsOf(projection.proposals)),
  ];
}

/** Writes a projection in the open transaction of `client`. */
export async function writeProjection(
  client: PoolClient,
  registerNo: number,
  projection: Projection,
  at: Date,
): Promise<void> {
  for (const one of statementsOf(registerNo, projection, at)) await client.query(one);
}

const lockHead = statement<AtRegister & { readonly height: number }>(
  'select height from register_heads where register_no = :registerNo and height = :height for update',
);

const findRules = statement<AtRegister>('select 1 from register_rules where register_no = :registerNo');

/** Brings the projection of an older register up to date; idempotent. */
export async function backfillProjections(
  database: Database<RegisterSchema>,
  register: { readonly registerNo: number; readonly height: number },
  projections: readonly Projection[],
  at: Date,
): Promise<void> {
  const client = await database.pool.connect();
  try {
    await client.query('begin');
    // A concurrent writer of a docket or of the projection waits here, and then finds it done.
    const head = await client.query(lockHead(register));
    const rules = await client.query(findRules(register));
    if (head.rowCount === 1 && rules.rowCount === 0) {
      for (const one of projections) await writeProjection(client, register.registerNo, one, at);
    }
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  } finally {
    client.release();
  }
}

/**
 * Canonical JSON of a register's rules after its last docket; undefined before docket 0 or before the first backfill.
 */
export async function findRulesText(db: Db, registerNo: number): Promise<string | undefined> {
  const row = await db
    .selectFrom('register_rules')
    .select('rules')
    .where('register_no', '=', registerNo)
    .executeTakeFirst();
  return row?.rules;
}

/** consensus.signatureThresholdMin in force at a docket: a policy takes effect from the docket after its own. */
export async function thresholdAt(db: Db, registerNo: number, docketNumber: number): Promise<number> {
  const row = await db
    .selectFrom('policy_versions')
    .select('document')
    .where('register_no', '=', registerNo)
    .where('kind', '=', 'policy')
    .where((eb) => eb.or([eb('docket_number', '<', docketNumber), eb('docket_number', '=', 0)]))
    .orderBy('version', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row === undefined ? 1 : parsePolicy(JSON.parse(row.document)).consensus.signatureThresholdMin;
}

export interface SealedControl {
  readonly docketNumber: number;
  readonly position: number;
  /** timestamp of the docket */
  readonly timestamp: string;
  readonly record: Buffer;
  readonly payload: Buffer;
}

/**
 * Genesis and control transactions of a register in sealing order, in pages, as far as its index rows are written. Only
 * registers that predate stored rules need them.
 */
export async function listSealedControls(
  db: Db,
  registerNo: number,
  after: { readonly docketNumber: number; readonly position: number },
  limit: number,
): Promise<SealedControl[]> {
  const rows = await db
    .selectFrom('transaction_rows as t')
    .innerJoin('dockets as d', (join) =>
      join.onRef('d.register_no', '=', 't.register_no').onRef('d.docket_number', '=', 't.docket_number'),
    )
    .select(['t.docket_number as docketNumber', 't.position', 'd.timestamp', 't.record', 't.payload'])
    .where('t.register_no', '=', registerNo)
    .where('t.type', 'in', ['Genesis', 'Control'])
    .where(sql<boolean>`(t.docket_number, t.position) > (${after.docketNumber}, ${after.position})`)
    .orderBy('t.docket_number')
    .orderBy('t.position')
    .limit(limit)
    .execute();
  return Promise.all(
    rows.map(async ({ docketNumber, position, timestamp, record, payload }) => {
      const bytes =
        record === null || payload === null
          ? await findAt(db, { registerNo, docketNumber, position })
          : { record, payload };
      if (bytes === undefined)
        throw new AppError('internal', 'INTERNAL_ERROR', `The value of docket ${docketNumber} is missing.`);
      return { docketNumber, position, timestamp, record: bytes.record, payload: bytes.payload };
    }),
  );
}
