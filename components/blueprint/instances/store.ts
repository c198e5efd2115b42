import { type Selectable, sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { InstanceStartTable, InstanceTable, InstanceTables } from '../database/instance-tables.ts';
import { type Instance, type InstanceState, routingOfRow } from './instance.ts';
import { assertNotRebuilding, refuseRebuilding } from './projection/progress/store.ts';

type DB = InstanceTables;

/** An instance without a step is given up after 30 days. */
const pendingDays = 30;

/** The columns of an instance with those of its start; either may be absent. */
interface JoinedRow {
  readonly instance: Selectable<InstanceTable> | undefined;
  readonly start: Selectable<InstanceStartTable> | undefined;
}

function stateOf({ instance, start }: JoinedRow, now: Date): [InstanceState, string | undefined] {
  if (instance !== undefined) {
    const isTimedOut = instance.times_out_at !== null && instance.times_out_at < now;
    if (instance.state === 'Active' && isTimedOut) return ['Failed', 'TimedOut'];
    return [instance.state as InstanceState, instance.state_reason ?? undefined];
  }
  if (start?.cancelled_at !== null && start?.cancelled_at !== undefined) return ['Failed', 'Cancelled'];
  if (start !== undefined && start.created_at < daysBefore(now)) return ['Failed', 'Expired'];
  return ['Pending', undefined];
}

function daysBefore(now: Date): Date {
  return new Date(now.getTime() - pendingDays * 86_400_000);
}

function toInstance(row: JoinedRow, now: Date): Instance {
  const { instance, start } = row;
  const [state, stateReason] = stateOf(row, now);
  const facts = instance ?? start;
  if (facts === undefined) throw new Error('a row has neither an instance nor a start');
  const endedAt = instance?.completed_at ?? (stateReason === 'TimedOut' ? instance?.times_out_at : undefined);
  return {
    instanceId: facts.instance_id,
    registerId: facts.register_id,
    pin: facts.publication_tx_id,
    blueprintId: facts.blueprint_id,
    state,
    stateReason,
    createdAt: start?.created_at ?? instance?.started_at ?? now,
    updatedAt: instance?.updated_at ?? start?.cancelled_at ?? start?.created_at ?? now,
    completedAt: endedAt ?? start?.cancelled_at ?? undefined,
    firstTxId: instance?.first_tx_id,
    lastTxId: instance?.last_tx_id,
    routing: instance === undefined ? undefined : routingOfRow(instance.routing),
    completedCount: instance?.completed_count ?? 0,
    start:
      start === undefined
        ? undefined
        : {
            participantWallets: start.participant_wallets,
            tenantId: start.tenant_id,
            metadata: start.metadata,
            createdBy: start.created_by,
            organizationId: start.organization_id ?? undefined,
            startOperation: start.start_operation ?? undefined,
          },
  };
}

/**
 * The instances of an id, the one that was created here first, then by their first step. An id can exist on several
 * registers: its steps are public, so anybody may write a copy elsewhere.
 * @throws AppError unavailable INSTANCES_REBUILDING
 */
export async function findInstances(db: Reader<DB>, instanceId: string, now: Date): Promise<Instance[]> {
  const start = await db
    .selectFrom('instance_starts')
    .selectAll()
    .where('instance_id', '=', instanceId)
    .executeTakeFirst();
  const { rows, rebuilding } = await readInstanceRows(db, instanceId);
  const own = rows.find(({ register_id }) => register_id === start?.register_id);
  const others = rows.filter((row) => row !== own);
  const registers = rows.map(({ register_id }) => register_id);
  refuseRebuilding(rebuilding, start === undefined ? registers : [start.register_id, ...registers]);
  return [
    ...(start === undefined ? [] : [toInstance({ instance: own, start }, now)]),
    ...others.map((instance) => toInstance({ instance, start: undefined }, now)),
  ];
}

/** Rows of an id, and the registers whose rows are being rebuilt, of one instant: between two, a rebuild could end. */
async function readInstanceRows(db: Reader<DB>, instanceId: string) {
  const found = await db
    .selectFrom(sql<{ one: number }>`(values (1))`.as<'alone'>(sql`alone(one)`))
    .leftJoin('instances as i', (join) => join.on('i.instance_id', '=', instanceId))
    .selectAll('i')
    .select(
      sql<string[]>`array(select register_id from step_cursors where rebuild_docket is not null)`.as(
        'rebuilding',
      ),
    )
    .orderBy('i.started_at')
    .orderBy('i.register_id')
    .execute();
  const rows = found.flatMap(({ rebuilding: _, ...row }) =>
    row.instance_id === null ? [] : [row as Selectable<InstanceTable>],
  );
  return { rows, rebuilding: found[0]?.rebuilding ?? [] };
}

/** One instance of a register. */
export async function findInstance(
  db: Reader<DB>,
  registerId: string,
  instanceId: string,
  now: Date,
): Promise<Instance | undefined> {
  const found = await findInstances(db, instanceId, now);
  return found.find((instance) => instance.registerId === registerId);
}

interface InstanceQuery {
  /** Wallets of the caller. */
  readonly wallets: readonly string[];
  readonly createdBy: string;
  readonly state?: InstanceState | undefined;
  readonly offset: number;
  readonly limit: number;
}

interface ListedRow {
  readonly register_id: string;
  readonly instance_id: string;
}

/**
 * Instances that wallets take part in, and those that the caller created, newest first.
 * @throws AppError unavailable INSTANCES_REBUILDING
 */
export async function listInstances(
  db: Reader<DB>,
  query: InstanceQuery,
  now: Date,
): Promise<{ readonly items: readonly Instance[]; readonly total: number }> {
  const { wallets, createdBy, state, offset, limit } = query;
  const listed = sql`
    select coalesce(i.register_id, s.register_id) as register_id, coalesce(i.instance_id, s.instance_id) as instance_id,
      coalesce(s.created_at, i.started_at) as created_at,
      case
        when i.state = 'Active' and i.times_out_at < ${now} then 'Failed'
        when i.state is not null then i.state
        when s.cancelled_at is not null or s.created_at < ${daysBefore(now)} then 'Failed'
        else 'Pending' end as state
    from (
      select register_id, instance_id from instance_roles where wallet = any(${wallets})
      union
      select register_id, instance_id from instance_starts where created_by = ${createdBy}
    ) own
    left join instances i using (register_id, instance_id)
    left join instance_starts s using (register_id, instance_id)`;
  const filter = state === undefined ? sql`true` : sql`state = ${state}`;
  await assertNotRebuilding(db);
  const { rows: counts } = await sql<{ total: number }>`
    select count(*)::int as total from (${listed}) listed where ${filter}`.execute(db);
  const { rows } = await sql<ListedRow>`
    select register_id, instance_id from (${listed}) listed where ${filter}
    order by created_at desc, instance_id desc offset ${offset} limit ${limit}`.execute(db);
  await assertNotRebuilding(db);
  const items = await Promise.all(rows.map((row) => findInstance(db, row.register_id, row.instance_id, now)));
  return { items: items.flatMap((item) => item ?? []), total: counts[0]?.total ?? 0 };
}

export async function insertStart(
  tx: Transactor<DB>,
  start: {
    readonly instanceId: string;
    readonly registerId: string;
    readonly pin: string;
    readonly blueprintId: string;
    readonly participantWallets: Readonly<Record<string, string>>;
    readonly tenantId: string;
    readonly metadata: Readonly<Record<string, string | number | boolean>>;
    readonly createdBy: string;
    readonly organizationId: string | undefined;
    readonly createdAt: Date;
  },
): Promise<void> {
  await tx
    .insertInto('instance_starts')
    .values({
      instance_id: start.instanceId,
      register_id: start.registerId,
      publication_tx_id: start.pin,
      blueprint_id: start.blueprintId,
      participant_wallets: JSON.stringify(start.participantWallets),
      tenant_id: start.tenantId,
      metadata: JSON.stringify(start.metadata),
      created_by: start.createdBy,
      organization_id: start.organizationId ?? null,
      created_at: start.createdAt,
      start_operation: null,
      cancelled_at: null,
      cancel_reason: null,
    })
    .execute();
}

/** Cancels an instance without a step; false when its start is reserved or it is cancelled already. */
export async function cancelStart(
  tx: Transactor<DB>,
  instanceId: string,
  { reason, at }: { readonly reason: string | undefined; readonly at: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('instance_starts')
    .set({ cancelled_at: at, cancel_reason: reason ?? null })
    .where('instance_id', '=', instanceId)
    .where('cancelled_at', 'is', null)
    .where('start_operation', 'is', null)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/**
 * Reserves the first step of an instance for an operation, by compare and set; false when another operation has it, or
 * the instance was cancelled. An instance that was not created here needs no reservation.
 */
export async function reserveStart(
  tx: Transactor<DB>,
  instanceId: string,
  operation: { readonly id: string; readonly instead: string | undefined },
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('instance_starts')
    .set({ start_operation: operation.id })
    .where('instance_id', '=', instanceId)
    .where('cancelled_at', 'is', null)
    .where((eb) =>
      eb.or([
        eb('start_operation', 'is', null),
        ...(operation.instead === undefined ? [] : [eb('start_operation', '=', operation.instead)]),
      ]),
    )
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

const mostActive = 1_000;

/**
 * Running instances of a register that a wallet takes part in, the oldest first, at most 1,000.
 * @throws AppError unavailable INSTANCES_REBUILDING
 */
export async function listActive(
  db: Reader<DB>,
  { registerId, wallet }: { readonly registerId: string; readonly wallet: string },
  now: Date,
): Promise<readonly Instance[]> {
  await assertNotRebuilding(db, [registerId]);
  const rows = await db
    .selectFrom('instances as i')
    .selectAll('i')
    .where('i.register_id', '=', registerId)
    .where('i.state', '=', 'Active')
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('instance_roles as r')
          .select('r.wallet')
          .whereRef('r.register_id', '=', 'i.register_id')
          .whereRef('r.instance_id', '=', 'i.instance_id')
          .where('r.wallet', '=', wallet),
      ),
    )
    .orderBy('i.started_at')
    .orderBy('i.instance_id')
    .limit(mostActive)
    .execute();
  await assertNotRebuilding(db, [registerId]);
  return rows.map((instance) => toInstance({ instance, start: undefined }, now));
}

/** Whether a transaction is a step of an instance. */
export async function isStepFolded(db: Reader<DB>, registerId: string, txId: string): Promise<boolean> {
  const row = await db
    .selectFrom('steps')
    .select('tx_id')
    .where('register_id', '=', registerId)
    .where('tx_id', '=', txId)
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * The instance that a step belongs to, and the actions that it made current.
 * @throws AppError unavailable INSTANCES_REBUILDING
 */
export async function findStepInstance(db: Reader<DB>, registerId: string, txId: string) {
  const read = () =>
    db
      .selectFrom('steps')
      .select(['instance_id', 'routing'])
      .where('register_id', '=', registerId)
      .where('tx_id', '=', txId)
      .executeTakeFirst();
  let row = await read();
  if (row === undefined) {
    await assertNotRebuilding(db, [registerId]);
    // A rebuild may have ended since.
    row = await read();
  }
  if (row === undefined) return undefined;
  const next = routingOfRow(row.routing).nextActions.map(({ actionId }) => actionId);
  return { instanceId: row.instance_id, next };
}

/** Sealed steps of an instance, in their order. */
export async function listSteps(db: Reader<DB>, registerId: string, instanceId: string) {
  const rows = await db
    .selectFrom('steps')
    .selectAll()
    .where('register_id', '=', registerId)
    .where('instance_id', '=', instanceId)
    .orderBy('seq')
    .execute();
  return rows.map((row) => ({
    txId: row.tx_id,
    seq: row.seq,
    actionId: row.action_id,
    isRejection: row.type === 'Rejection',
    sender: row.sender,
    sealedAt: row.sealed_at,
    position: { docketNumber: row.docket_number, index: row.position },
    routing: routingOfRow(row.routing),
  }));
}

/**
 * Numbers of running instances by publication: `{registerId} {publicationTxId}`.
 * @throws AppError unavailable INSTANCES_REBUILDING
 */
export async function countOpenInstances(
  db: Reader<DB>,
  publications: readonly { readonly registerId: string; readonly publicationTxId: string }[],
  now: Date,
): Promise<ReadonlyMap<string, number>> {
  if (publications.length === 0) return new Map();
  const registers = publications.map(({ registerId }) => registerId);
  await assertNotRebuilding(db, registers);
  const pins = publications.map(({ publicationTxId }) => publicationTxId);
  const rows = await db
    .selectFrom('instances')
    .select(['register_id', 'publication_tx_id', sql<number>`count(*)::int`.as('total')])
    .where('publication_tx_id', 'in', pins)
    .where('state', '=', 'Active')
    .where((eb) => eb.or([eb('times_out_at', 'is', null), eb('times_out_at', '>=', now)]))
    .groupBy(['register_id', 'publication_tx_id'])
    .execute();
  await assertNotRebuilding(db, registers);
  return new Map(rows.map((row) => [`${row.register_id} ${row.publication_tx_id}`, row.total]));
}
