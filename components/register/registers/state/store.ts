import { type Selectable, sql } from 'kysely';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterHeadsTable, RegisterSchema, RegistersTable } from '../../database/schema.ts';

/** `Deleted`: kept for a while for validators that still write its last dockets; no route shows it. */
export const registerStatuses = ['Checking', 'Online', 'Recovery', 'Offline', 'Halted', 'Deleted'] as const;
export type RegisterStatus = (typeof registerStatuses)[number];
export const registerPurposes = ['General', 'System'] as const;
type RegisterPurpose = (typeof registerPurposes)[number];

export interface KeyFacts {
  readonly publicKey: string;
  readonly algorithm: string;
}

export interface RosterEntry extends KeyFacts {
  readonly subject: string;
  readonly role: string;
  readonly grantedAt: string;
}

export interface Member extends KeyFacts {
  readonly validatorId: string;
}

/** A register with its head. `height` is the number of sealed dockets; the last one has the number height - 1. */
export interface Register {
  readonly registerNo: number;
  readonly registerId: string;
  readonly networkId: string;
  readonly title: string;
  readonly description: string | undefined;
  readonly purpose: RegisterPurpose;
  readonly status: RegisterStatus;
  readonly devMode: boolean;
  readonly advertise: boolean;
  readonly metadata: Readonly<Record<string, string>>;
  readonly policyText: string;
  readonly policyVersion: number;
  readonly validatorSetVersion: number;
  readonly organizationId: string | undefined;
  readonly genesisTransactionId: string;
  readonly systemKey: KeyFacts;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly height: number;
  readonly headHash: string;
  readonly headTimestamp: string;
  readonly logFrontier: Buffer;
  readonly transactionCount: number;
  readonly sizeBytes: number;
  /** the open segment, which takes the keys of the next docket */
  readonly segment: number;
}

export interface SeenRegister extends Register {
  readonly subscribed: boolean;
}

/** The registers that a caller sees: all, or those of one organisation and the system registers. */
export interface Scope {
  readonly all: boolean;
  readonly organizationId: string | undefined;
}

interface ListQuery {
  readonly purpose?: RegisterPurpose | undefined;
  readonly status?: RegisterStatus | undefined;
  readonly includeSandbox: boolean;
  readonly offset: number;
  readonly limit: number;
}

type Row = Selectable<RegistersTable> & Omit<Selectable<RegisterHeadsTable>, 'register_no' | 'segment_count'>;

function registerOf(row: Row): Register {
  return {
    registerNo: row.register_no,
    registerId: row.register_id,
    networkId: row.network_id,
    title: row.title,
    description: row.description ?? undefined,
    purpose: row.purpose as RegisterPurpose,
    status: row.status as RegisterStatus,
    devMode: row.dev_mode,
    advertise: row.advertise,
    metadata: row.metadata,
    policyText: row.policy,
    policyVersion: row.policy_version,
    validatorSetVersion: row.validator_set_version,
    organizationId: row.organization_id ?? undefined,
    genesisTransactionId: row.genesis_transaction_id,
    systemKey: { publicKey: row.system_public_key, algorithm: row.system_algorithm },
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    height: row.height,
    headHash: row.head_hash,
    headTimestamp: row.head_timestamp,
    logFrontier: row.log_frontier,
    transactionCount: row.transaction_count,
    sizeBytes: row.size_bytes,
    segment: row.segment,
  };
}

function select(db: Reader<RegisterSchema>) {
  return db
    .selectFrom('registers')
    .innerJoin('register_heads', 'register_heads.register_no', 'registers.register_no')
    .selectAll('registers')
    .select(['height', 'head_hash', 'head_timestamp', 'log_frontier'])
    .select(['transaction_count', 'size_bytes', 'segment']);
}

export async function findRegister(
  db: Reader<RegisterSchema>,
  registerId: string,
  organizationId?: string,
): Promise<SeenRegister | undefined> {
  const row = await select(db)
    .select((eb) =>
      eb
        .exists(
          eb
            .selectFrom('subscriptions')
            .select(sql`1`.as('one'))
            .whereRef('subscriptions.register_no', '=', 'registers.register_no')
            .where('subscriptions.organization_id', '=', organizationId ?? ''),
        )
        .as('subscribed'),
    )
    .where('registers.register_id', '=', registerId)
    .where('registers.deleted_at', 'is', null)
    .executeTakeFirst();
  return row && { ...registerOf(row), subscribed: Boolean(row.subscribed) };
}

/** Of the given registers, the ids of those that an organisation subscribes to, without deleted ones. */
export async function subscribedAmong(
  db: Reader<RegisterSchema>,
  organizationId: string,
  registerIds: readonly string[],
): Promise<string[]> {
  if (registerIds.length === 0) return [];
  const rows = await db
    .selectFrom('subscriptions')
    .innerJoin('registers', 'registers.register_no', 'subscriptions.register_no')
    .select('registers.register_id')
    .where('subscriptions.organization_id', '=', organizationId)
    .where(sql<boolean>`registers.register_id = any(${[...registerIds]}::text[])`)
    .where('registers.deleted_at', 'is', null)
    .execute();
  return rows.map(({ register_id }) => register_id);
}

/** How a register was deleted. */
export interface Deletion {
  readonly policy: 'Tombstone' | 'Purge';
  readonly deletedAt: Date;
  /** When its data is deleted; undefined for the default retention of the housekeeping. */
  readonly purgeAfter: Date | undefined;
  readonly purgedAt: Date | undefined;
}

export interface AnyRegister {
  readonly register: Register;
  readonly deletion: Deletion | undefined;
}

/** A register, deleted or not: its row is never removed. */
export async function findRegisterEver(
  db: Reader<RegisterSchema>,
  registerId: string,
): Promise<AnyRegister | undefined> {
  const row = await select(db).where('registers.register_id', '=', registerId).executeTakeFirst();
  return row && { register: registerOf(row), deletion: deletionOf(row) };
}

function deletionOf(row: Row): Deletion | undefined {
  if (row.deleted_at === null) return undefined;
  return {
    policy: row.deletion_policy === 'Purge' ? 'Purge' : 'Tombstone',
    deletedAt: row.deleted_at,
    purgeAfter: row.purge_after ?? undefined,
    purgedAt: row.purged_at ?? undefined,
  };
}

/** A register with the state that its next docket is judged against. */
export interface StoredChain {
  readonly register: Register;
  /** V(height) */
  readonly members: readonly Member[];
  readonly roster: readonly RosterEntry[];
  /** JSON text; undefined before docket 0, and for a register that predates the rules until they are built */
  readonly rulesText: string | undefined;
}

/** Loads everything needed to judge the next docket, in one round trip. Includes deleted registers. */
export async function loadChain(
  db: Reader<RegisterSchema>,
  registerId: string,
): Promise<StoredChain | undefined> {
  const row = await select(db)
    .select(
      sql<Member[]>`(select coalesce(json_agg(json_build_object('validatorId', v.validator_id,
        'publicKey', v.public_key, 'algorithm', v.algorithm) order by v.validator_id collate "C"), '[]')
        from register_validators v where v.register_no = registers.register_no
        and v.from_docket <= register_heads.height
        and (v.until_docket is null or v.until_docket > register_heads.height))`.as('members'),
    )
    .select(
      sql<RosterEntry[]>`(select coalesce(json_agg(json_build_object('subject', r.subject, 'role', r.role,
        'publicKey', r.public_key, 'algorithm', r.algorithm, 'grantedAt', r.granted_at) order by r.subject), '[]')
        from register_roster r where r.register_no = registers.register_no)`.as('roster'),
    )
    .select(
      sql<string | null>`(select rules from register_rules x where x.register_no = registers.register_no)`.as(
        'rules',
      ),
    )
    .where('registers.register_id', '=', registerId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { members, roster, rules } = row;
  return { register: registerOf(row), members, roster, rulesText: rules ?? undefined };
}

/** V(docketNumber): the members whose votes count at that docket. */
export async function membersAt(
  db: Reader<RegisterSchema>,
  registerNo: number,
  docketNumber: number,
): Promise<Member[]> {
  const rows = await db
    .selectFrom('register_validators')
    .select(['validator_id as validatorId', 'public_key as publicKey', 'algorithm'])
    .where('register_no', '=', registerNo)
    .where('from_docket', '<=', docketNumber)
    .where((eb) => eb.or([eb('until_docket', 'is', null), eb('until_docket', '>', docketNumber)]))
    .orderBy(sql`validator_id collate "C"`)
    .execute();
  return rows;
}

/** Condition on rows of `registers`: visible to the scope. */
export function scopedTo(scope: Scope) {
  if (scope.all) return sql<boolean>`registers.deleted_at is null`;
  return sql<boolean>`registers.deleted_at is null and (registers.purpose = 'System' or exists (select 1 from subscriptions s
    where s.register_no = registers.register_no and s.organization_id = ${scope.organizationId ?? ''}))`;
}

export async function listRegisters(
  db: Reader<RegisterSchema>,
  scope: Scope,
  query: ListQuery,
): Promise<{ items: Register[]; total: number }> {
  let rows = select(db).where(scopedTo(scope));
  if (query.purpose !== undefined) rows = rows.where('purpose', '=', query.purpose);
  if (query.status !== undefined) rows = rows.where('status', '=', query.status);
  if (!query.includeSandbox) rows = rows.where(sql<boolean>`metadata->>'sandbox' is distinct from 'true'`);
  const items = await rows
    .orderBy('registers.register_no', 'desc')
    .offset(query.offset)
    .limit(query.limit)
    .execute();
  const counted = await rows.clearSelect().select(sql<number>`count(*)::int`.as('total')).executeTakeFirst();
  return { items: items.map(registerOf), total: counted?.total ?? 0 };
}

/** Registers that are not deleted, ordered by id, with ids greater than `after`. */
export async function registersAfter(
  db: Reader<RegisterSchema>,
  after: string,
  limit: number,
): Promise<Register[]> {
  const rows = await select(db)
    .where('registers.deleted_at', 'is', null)
    .where('registers.register_id', '>', after)
    .orderBy('registers.register_id')
    .limit(limit)
    .execute();
  return rows.map(registerOf);
}

export async function countRegisters(
  db: Reader<RegisterSchema>,
  scope: Scope,
): Promise<{ status: string; purpose: string; count: number }[]> {
  return db
    .selectFrom('registers')
    .select(['status', 'purpose', sql<number>`count(*)::int`.as('count')])
    .where(scopedTo(scope))
    .groupBy(['status', 'purpose'])
    .execute();
}
