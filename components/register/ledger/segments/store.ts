import { type RawBuilder, sql } from 'kysely';
import type { Database, Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { addKey, emptyFilter, type KeyKind, keyKinds } from './filter.ts';

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

async function addKeys(
  db: Db,
  filter: Buffer,
  at: { readonly registerNo: number; readonly segment: number },
  kind: KeyKind,
): Promise<void> {
  const { table, key } = tables[kind];
  let after: Buffer = Buffer.alloc(0);
  for (;;) {
    const { rows } = await sql<{ key: Buffer }>`select ${sql.ref(key)} as key from ${sql.table(table)}
      where register_no = ${at.registerNo} and segment = ${at.segment} and ${sql.ref(key)} > ${after}
      order by 1 limit ${batch}`.execute(db);
    for (const row of rows) addKey(filter, kind, row.key);
    const last = rows.at(-1);
    if (last === undefined || rows.length < batch) return;
    after = last.key;
  }
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
  const db = database.read;
  const counted = await sql<{ keys: number }>`select
    (select count(*) + count(replay_key) from transaction_ids where register_no = ${registerNo} and segment = ${segment})
    + (select count(*) from transaction_successors where register_no = ${registerNo} and segment = ${segment})
    as keys`.execute(db);
  const filter = emptyFilter(counted.rows[0]?.keys ?? 0);
  for (const kind of keyKinds) await addKeys(db, filter, { registerNo, segment }, kind);
  await database.transact((tx) =>
    tx
      .insertInto('segment_filters')
      .values({ register_no: registerNo, segment, bits: filter })
      .onConflict((conflict) => conflict.doNothing())
      .execute(),
  );
  return filter;
}
