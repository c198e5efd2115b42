import { type Selectable, sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { LedgerPosition } from '../../../clients/ledger.ts';
import type { InstanceTables } from '../../../database/instance-tables.ts';
import { refusal } from '../../../errors.ts';

type DB = InstanceTables;

/** How far the rows of a register are made from its steps. */
export interface Cursor {
  /** The position that is read next. */
  readonly next: LedgerPosition;
  /** Number of rebuilds: a page that was read before a rebuild is not applied after it. */
  readonly rebuilds: number;
  /** While the rows are rebuilt, the position that they had been read up to before. Earlier steps were announced then. */
  readonly announced: LedgerPosition | undefined;
  /**
   * When the rows were made from steps of instances that were not started in this database: it is new, as after a
   * loss, or the register was replicated to it.
   */
  readonly restoredAt: Date | undefined;
}

const columns = [
  'docket_number',
  'position',
  'rebuilds',
  'rebuild_docket',
  'rebuild_position',
  'restored_at',
] as const;
const beginning: Cursor = {
  next: { docket: 0, index: 0 },
  rebuilds: 0,
  announced: undefined,
  restoredAt: undefined,
};

function cursorOf(row: Pick<Selectable<DB['step_cursors']>, (typeof columns)[number]>): Cursor {
  const { rebuild_docket: docket, rebuild_position: index } = row;
  return {
    next: { docket: row.docket_number, index: row.position },
    rebuilds: row.rebuilds,
    announced: docket === null || index === null ? undefined : { docket, index },
    restoredAt: row.restored_at ?? undefined,
  };
}

export async function findCursor(db: Reader<DB>, registerId: string): Promise<Cursor> {
  const row = await db
    .selectFrom('step_cursors')
    .select(columns)
    .where('register_id', '=', registerId)
    .executeTakeFirst();
  return row === undefined ? beginning : cursorOf(row);
}

/** The same, locked until the end of the transaction, so that of several replicas one folds a page. */
export async function lockCursor(tx: Transactor<DB>, registerId: string): Promise<Cursor> {
  await tx
    .insertInto('step_cursors')
    .values({ register_id: registerId, docket_number: 0, position: 0 })
    .onConflict((conflict) => conflict.column('register_id').doNothing())
    .execute();
  const row = await tx
    .selectFrom('step_cursors')
    .select(columns)
    .where('register_id', '=', registerId)
    .forUpdate()
    .executeTakeFirstOrThrow();
  return cursorOf(row);
}

/** Stores the position that is read next; a rebuild ends where it reaches what was read before. */
export async function saveCursor(
  tx: Transactor<DB>,
  registerId: string,
  { docket, index }: LedgerPosition,
): Promise<void> {
  const isBehind = sql<boolean>`(${docket}::bigint, ${index}::int) < (rebuild_docket, rebuild_position)`;
  await tx
    .updateTable('step_cursors')
    .set({
      docket_number: docket,
      position: index,
      rebuild_docket: sql`case when ${isBehind} then rebuild_docket end`,
      rebuild_position: sql`case when ${isBehind} then rebuild_position end`,
    })
    .where('register_id', '=', registerId)
    .execute();
}

/** Whether an instance of these was started in this database. */
export async function isAnyStarted(tx: Transactor<DB>, instanceIds: readonly string[]): Promise<boolean> {
  const row = await tx
    .selectFrom('instance_starts')
    .select('instance_id')
    .where('instance_id', 'in', [...instanceIds])
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

export async function markRestored(tx: Transactor<DB>, registerId: string, at: Date): Promise<void> {
  await tx
    .updateTable('step_cursors')
    .set({ restored_at: at })
    .where('register_id', '=', registerId)
    .execute();
}

/**
 * Deletes the rows that were made from the steps of a register, so that they are made again. Until they are, nothing of
 * the register's instances is answered. Starts and operations stay.
 */
export async function beginRebuild(tx: Transactor<DB>, registerId: string): Promise<void> {
  const { next, announced } = await lockCursor(tx, registerId);
  const until = announced ?? next;
  await tx
    .updateTable('step_cursors')
    .set((eb) => ({
      docket_number: 0,
      position: 0,
      rebuilds: eb('rebuilds', '+', 1),
      rebuild_docket: until.docket,
      rebuild_position: until.index,
    }))
    .where('register_id', '=', registerId)
    .execute();
  for (const table of ['instance_roles', 'steps', 'instances'] as const)
    await tx.deleteFrom(table).where('register_id', '=', registerId).execute();
}

/** Registers whose rows are rebuilt at present. */
export async function listRebuilding(db: Reader<DB>): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('step_cursors')
    .select('register_id')
    .where('rebuild_docket', 'is not', null)
    .execute();
  return rows.map(({ register_id }) => register_id);
}

/**
 * Refuses an answer that rows lack which are being rebuilt: those of the given registers, or of any where none is given.
 * @throws AppError unavailable INSTANCES_REBUILDING
 */
export async function assertNotRebuilding(
  db: Reader<DB>,
  registerIds: readonly string[] = [],
): Promise<void> {
  refuseRebuilding(await listRebuilding(db), registerIds);
}

/** The same, of registers that are known to be rebuilt. */
export function refuseRebuilding(rebuilding: readonly string[], registerIds: readonly string[]): void {
  const isConcerned =
    registerIds.length === 0 ? rebuilding.length > 0 : registerIds.some((each) => rebuilding.includes(each));
  if (isConcerned) throw refusal('INSTANCES_REBUILDING', { retryAfterSeconds: 1 });
}
