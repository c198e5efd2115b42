import { type RawBuilder, sql } from 'kysely';
import { addKey, emptyFilter, type KeyKind, wordsOf } from '#core/ledger/key-filter.ts';
import type { Database, Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';

type Db = Reader<RegisterSchema>;

/** Segments in which to look up the keys of one register. */
export interface KeySegments {
  /** Every key is looked up in this segment and in later ones. */
  readonly from: number;
  /** Segments before `from` that may hold a key; their filters exclude the others. */
  before(kind: KeyKind, key: Buffer): readonly number[];
}

/** Excludes nothing. */
export const everywhere: KeySegments = { from: 0, before: () => [] };

/** For reads that are rare enough to search every segment. */
export const unfiltered = { of: () => everywhere };

/** Text of an array of segments. Such arrays have different lengths, which an array of arrays cannot have. */
export function segmentsText(segments: readonly number[]): string {
  return `{${segments.join(',')}}`;
}

/** SQL for the segments from `from` to the open one, as an array. A segment sealed in the meantime is included. */
export function recentSegments(
  registerNo: RawBuilder<unknown>,
  from: RawBuilder<unknown>,
): RawBuilder<unknown> {
  return sql`array(select generate_series(least(${from}, segment), segment) from register_heads
    where register_no = ${registerNo})`;
}

interface KeyTable {
  readonly table: string;
  readonly key: string;
}

const tables: Readonly<Record<KeyKind, KeyTable>> = {
  id: { table: 'transaction_ids', key: 'tx_id' },
  successor: { table: 'transaction_successors', key: 'previous_tx_id' },
  replay: { table: 'transaction_ids', key: 'replay_key' },
};

/** SQL for the open segment (`open`), and for those between it and the last one with a filter (`unknown`). */
export function headSegments(
  registerNo: RawBuilder<unknown>,
  from: RawBuilder<unknown>,
): RawBuilder<unknown> {
  return sql`(select segment as open, array(select generate_series(${from}, segment - 1)) as unknown
    from register_heads where register_no = ${registerNo})`;
}

/** A key in SQL: its register, the open segment, and the other segments that may hold it. */
interface KeyInSql {
  readonly registerNo: RawBuilder<unknown>;
  readonly open: RawBuilder<unknown>;
  /** an array */
  readonly others: RawBuilder<unknown>;
  readonly key: RawBuilder<unknown>;
}

/**
 * SQL for the row of a key. The open segment has its own condition: an array is planned as ten index descents, and then
 * a table whose statistics were taken while it was small is read whole. The other segments are searched only if there
 * are any.
 */
export function rowOfKey(
  kind: KeyKind,
  columns: RawBuilder<unknown>,
  { registerNo, open, others, key }: KeyInSql,
): RawBuilder<unknown> {
  const named = tables[kind];
  const rows = sql`select ${columns} from ${sql.table(named.table)} where register_no = ${registerNo}
    and ${sql.ref(named.key)} = ${key}`;
  return sql`(${rows} and segment = ${open}
    union all ${rows} and segment = any(${others}) and cardinality(${others}) > 0 limit 1)`;
}

/** Whether one of the keys is in one of its given segments. */
export async function anyKeyIn(
  db: Db,
  registerNo: number,
  kind: KeyKind,
  keys: readonly { readonly key: Buffer; readonly segments: readonly number[] }[],
): Promise<boolean> {
  const pending = keys.filter(({ segments }) => segments.length > 0);
  if (pending.length === 0) return false;
  const { table, key } = tables[kind];
  const { rows } = await sql`select 1
    from unnest(${pending.map((one) => one.key)}::bytea[], ${pending.map((one) => segmentsText(one.segments))}::text[])
      as q(key, segments)
    cross join lateral (select 1 from ${sql.table(table)} where register_no = ${registerNo}
      and segment = any(q.segments::integer[]) and ${sql.ref(key)} = q.key limit 1) found
    limit 1`.execute(db);
  return rows.length > 0;
}

export async function findFilter(db: Db, registerNo: number, segment: number): Promise<Buffer | undefined> {
  const row = await db
    .selectFrom('segment_filters')
    .select('bits')
    .where('register_no', '=', registerNo)
    .where('segment', '=', segment)
    .executeTakeFirst();
  return row?.bits;
}

/** Keys that are read at a time. */
const batch = 20_000;

interface SegmentAt {
  readonly registerNo: number;
  readonly segment: number;
}

/** @returns the number of keys of this kind */
async function addKeys(
  db: Db,
  filter: Buffer,
  { registerNo, segment }: SegmentAt,
  kind: KeyKind,
): Promise<number> {
  const { table, key } = tables[kind];
  let after: Buffer = Buffer.alloc(0);
  for (let added = 0; ; ) {
    const { rows } = await sql<{ key: Buffer }>`select ${sql.ref(key)} as key from ${sql.table(table)}
      where register_no = ${registerNo} and segment = ${segment} and ${sql.ref(key)} > ${after}
      order by 1 limit ${batch}`.execute(db);
    for (const row of rows) addKey(filter, wordsOf(kind, row.key));
    added += rows.length;
    const last = rows.at(-1);
    if (last === undefined || rows.length < batch) return added;
    after = last.key;
  }
}

/**
 * The filter of a segment's keys, and the number of its transactions. Of the open segment it holds at least the keys that
 * were committed before the call.
 */
export async function readFilter(
  db: Db,
  at: SegmentAt,
): Promise<{ readonly filter: Buffer; readonly transactions: number }> {
  const { registerNo, segment } = at;
  const counted = await sql<{ keys: number }>`select
    (select count(*) + count(replay_key) from transaction_ids where register_no = ${registerNo} and segment = ${segment})
    + (select count(*) from transaction_successors where register_no = ${registerNo} and segment = ${segment})
    as keys`.execute(db);
  const filter = emptyFilter(counted.rows[0]?.keys ?? 0);
  const transactions = await addKeys(db, filter, at, 'id');
  for (const kind of ['successor', 'replay'] as const) await addKeys(db, filter, at, kind);
  return { filter, transactions };
}

/**
 * Builds the filter of a sealed segment from its keys and stores it. The result does not depend on the process that
 * builds it.
 */
export async function buildFilter(
  database: Pick<Database<RegisterSchema>, 'read' | 'transact'>,
  registerNo: number,
  segment: number,
): Promise<Buffer> {
  const { filter } = await readFilter(database.read, { registerNo, segment });
  await database.transact((tx) =>
    tx
      .insertInto('segment_filters')
      .values({ register_no: registerNo, segment, bits: filter })
      .onConflict((conflict) => conflict.doNothing())
      .execute(),
  );
  return filter;
}

/** The stored filter of a sealed segment; built when it is missing. */
export async function loadFilter(
  database: Pick<Database<RegisterSchema>, 'read' | 'transact'>,
  registerNo: number,
  segment: number,
): Promise<Buffer> {
  return (await findFilter(database.read, registerNo, segment)) ?? buildFilter(database, registerNo, segment);
}

/** A register's head and its open segment, as of one moment. */
export interface SegmentHead extends SegmentAt {
  readonly height: number;
  readonly logFrontier: Buffer;
  readonly transactionCount: number;
  /** Transactions of the open segment. */
  readonly segmentCount: number;
}

/** Undefined for a register that does not exist. */
export async function findSegmentHead(db: Db, registerId: string): Promise<SegmentHead | undefined> {
  return await db
    .selectFrom('registers')
    .innerJoin('register_heads', 'register_heads.register_no', 'registers.register_no')
    .select(['registers.register_no as registerNo', 'height', 'segment'])
    .select(['log_frontier as logFrontier', 'transaction_count as transactionCount'])
    .select('segment_count as segmentCount')
    .where('registers.register_id', '=', registerId)
    .executeTakeFirst();
}
