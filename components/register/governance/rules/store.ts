import { sql } from 'kysely';
import type { PoolClient } from 'pg';
import { parsePolicy } from '#core/ledger/policy.ts';
import type { Database, Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { withoutNul } from '../../database/text.ts';
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
  readonly detail: Readonly<Record<string, unknown>>;
  /** timestamp of the docket */
  readonly sealedAt: string;
}

export interface ProposalRow {
  readonly proposalId: string;
  readonly status: string;
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

interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

const saveRules = `
  insert into register_rules (register_no, docket_number, rules) values ($1, $2, $3)
  on conflict (register_no) do update set docket_number = excluded.docket_number, rules = excluded.rules
  where register_rules.docket_number <= excluded.docket_number`;

const saveFacts = `
  update registers set title = $2, description = $3, metadata = $4::jsonb, policy = $5, policy_version = $6,
    dev_mode = $7, validator_set_version = $8, updated_at = $9
  where register_no = $1`;

const endMembers = `
  update register_validators set until_docket = $2
  where register_no = $1 and validator_id = any($3::text[]) and until_docket is null and from_docket < $2`;

const addMembers = `
  insert into register_validators (register_no, validator_id, from_docket, until_docket, public_key, algorithm)
  select $1, m."validatorId", $2, null, m."publicKey", m.algorithm
  from jsonb_to_recordset($3::jsonb) as m("validatorId" text, "publicKey" text, algorithm text)
  on conflict do nothing`;

const addRoster = `
  insert into register_roster (register_no, subject, role, public_key, algorithm, granted_at)
  select $1, r.subject, r.role, r."publicKey", r.algorithm, r."grantedAt"
  from jsonb_to_recordset($2::jsonb)
    as r(subject text, role text, "publicKey" text, algorithm text, "grantedAt" text)`;

const addPolicies = `
  insert into policy_versions (register_no, kind, version, document, docket_number, tx_id, updated_at, updated_by)
  select $1, p.kind, p.version, p.document, p."docketNumber", p."txId", p."updatedAt", p."updatedBy"
  from jsonb_to_recordset($2::jsonb) as p(kind text, version integer, document text, "docketNumber" bigint,
    "txId" text, "updatedAt" text, "updatedBy" text)
  on conflict do nothing`;

const addOperations = `
  insert into governance_operations (register_no, docket_number, position, tx_id, operation_type, proposal_id, proposer,
    target, detail, sealed_at)
  select $1, o."docketNumber", o.position, o."txId", o."operationType", o."proposalId", o.proposer, o.target, o.detail,
    o."sealedAt"
  from jsonb_to_recordset($2::jsonb) as o("docketNumber" bigint, position integer, "txId" text, "operationType" text,
    "proposalId" text, proposer text, target text, detail jsonb, "sealedAt" text)
  on conflict do nothing`;

const saveProposals = `
  insert into governance_proposals (register_no, proposal_id, status, opened_docket, closed_docket, expires_at, proposal)
  select $1, p."proposalId", p.status, p."openedDocket", p."closedDocket", p."expiresAt", p.proposal
  from jsonb_to_recordset($2::jsonb) as p("proposalId" text, status text, "openedDocket" bigint, "closedDocket" bigint,
    "expiresAt" text, proposal text)
  on conflict (register_no, proposal_id) do update set status = excluded.status,
    closed_docket = excluded.closed_docket, proposal = excluded.proposal`;

/** Text columns cannot hold NUL, neither in values nor in member names; the signed record keeps the original. */
function storable(_name: string, value: unknown): unknown {
  if (typeof value === 'string') return withoutNul(value);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [withoutNul(name), member]));
}

const rows = (values: unknown) => JSON.stringify(values, storable);

function statementsOf(registerNo: number, projection: Projection, at: Date): Statement[] {
  const { facts, docketNumber } = projection;
  const { title, description, metadata, policyText, policyVersion, devMode, validatorSetVersion } = facts;
  const values = [
    storable('', title),
    storable('', description) ?? null,
    rows(metadata),
    policyText,
    policyVersion,
    devMode,
    validatorSetVersion,
    at,
  ];
  const next = docketNumber + 1;
  return [
    { text: saveRules, values: [registerNo, docketNumber, projection.rulesText] },
    { text: saveFacts, values: [registerNo, ...values] },
    { text: endMembers, values: [registerNo, next, projection.left] },
    { text: addMembers, values: [registerNo, next, rows(projection.joined)] },
    { text: 'delete from register_roster where register_no = $1', values: [registerNo] },
    { text: addRoster, values: [registerNo, rows(projection.roster)] },
    { text: addPolicies, values: [registerNo, rows(projection.policies)] },
    { text: addOperations, values: [registerNo, rows(projection.operations)] },
    { text: saveProposals, values: [registerNo, rows(projection.proposals)] },
  ];
}

/** Writes a projection in the open transaction of `client`. */
export async function writeProjection(
  client: PoolClient,
  registerNo: number,
  projection: Projection,
  at: Date,
): Promise<void> {
  for (const { text, values } of statementsOf(registerNo, projection, at))
    await client.query(text, [...values]);
}

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
    const head = await client.query(
      'select height from register_heads where register_no = $1 and height = $2 for update',
      [register.registerNo, register.height],
    );
    const known = await client.query('select 1 from register_rules where register_no = $1', [
      register.registerNo,
    ]);
    const wanted = head.rowCount === 1 && known.rowCount === 0;
    if (wanted) {
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

/** Genesis and control transactions of a register in sealing order, in pages. */
export async function listSealedControls(
  db: Db,
  registerNo: number,
  after: { readonly docketNumber: number; readonly position: number },
  limit: number,
): Promise<SealedControl[]> {
  return db
    .selectFrom('transactions as t')
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
}
