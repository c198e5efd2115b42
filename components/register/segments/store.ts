import { type RawBuilder, sql } from 'kysely';
import type { Database, Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../database/schema.ts';
import { addKey, emptyFilter, type KeyKind } from './filter.ts';

type Db = Reader<RegisterSchema>;

/** Where the keys of one register are looked for. */
export interface KeyPlaces {
  /** Every key is looked for in this segment and in those after it. */
  readonly from: number;
  /** Segments before `from` where a key may be; its filters rule the others out. */
  before(kind: KeyKind, key: Buffer): readonly number[];
}

/** Nothing is ruled out. */
export const everywhere: KeyPlaces = { from: 0, before: () => [] };

/** For reads so rare that they may look into every segment. */
export const unfiltered = { of: () => everywhere };

/** Text of an array of segments. Rows of such arrays have different lengths, which an array of arrays cannot have. */
export function segmentsText(segments: readonly number[]): string {
  return `{${segments.join(',')}}`;
}

/** SQL for the segments from `from` to the open one, as an array. Whoever sealed one in the meantime is no matter. */
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

/** SQL for the segment that is open (`open`), and for those between it and what filters know (`unknown`). */
export function headSegments(
  registerNo: RawBuilder<unknown>,
  from: RawBuilder<unknown>,
): RawBuilder<unknown> {
  return sql`(select segment as open, array(select generate_series(${from}, segment - 1)) as unknown
    from register_heads where register_no = ${registerNo})`;
}

/** One key as statements have it: of which register, in which segment that is open, and in which others it may be. */
export interface KeyInSql {
  readonly registerNo: RawBuilder<unknown>;
  readonly open: RawBuilder<unknown>;
  /** an array */
  readonly others: RawBuilder<unknown>;
  readonly key: RawBuilder<unknown>;
}

/**
 * SQL for the row of a key. The open segment is asked for by itself: an array is planned as ten descents of the index, for
 * which a table that was analysed when it was small is read whole. The others are looked into only where there are any.
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

/** Whether one of the keys stands in one of the segments that are named with it. */
export async function anyKeyIn(
  db: Db,
  registerNo: number,
  kind: KeyKind,
  keys: readonly { readonly key: Buffer; readonly segments: readonly number[] }[],
): Promise<boolean> {
  const asked = keys.filter(({ segments }) => segments.length > 0);
  if (asked.length === 0) return false;
  const { table, key } = tables[kind];
  const { rows } = await sql`select 1
    from unnest(${asked.map((one) => one.key)}::bytea[], ${asked.map((one) => segmentsText(one.segments))}::text[])
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

async function addAll(db: Db, filter: Buffer, registerNo: number, segment: number): Promise<void> {
  let after: Buffer = Buffer.alloc(0);
  for (;;) {
    const rows = await db
      .selectFrom('transaction_ids')
      .select(['tx_id', 'replay_key'])
      .where('register_no', '=', registerNo)
      .where('segment', '=', segment)
      .where('tx_id', '>', after)
      .orderBy('tx_id')
      .limit(batch)
      .execute();
    for (const row of rows) {
      addKey(filter, 'id', row.tx_id);
      if (row.replay_key !== null) addKey(filter, 'replay', row.replay_key);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < batch) return;
    after = last.tx_id;
  }
}

async function addFollowed(db: Db, filter: Buffer, registerNo: number, segment: number): Promise<void> {
  let after: Buffer = Buffer.alloc(0);
  for (;;) {
    const rows = await db
      .selectFrom('transaction_successors')
      .select('previous_tx_id')
      .where('register_no', '=', registerNo)
      .where('segment', '=', segment)
      .where('previous_tx_id', '>', after)
      .orderBy('previous_tx_id')
      .limit(batch)
      .execute();
    for (const row of rows) addKey(filter, 'successor', row.previous_tx_id);
    const last = rows.at(-1);
    if (last === undefined || rows.length < batch) return;
    after = last.previous_tx_id;
  }
}

/** Makes the filter of a sealed segment from its keys and keeps it: whoever makes it makes the same. */
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
  await addAll(db, filter, registerNo, segment);
  await addFollowed(db, filter, registerNo, segment);
  await database.transact((tx) =>
    tx
      .insertInto('segment_filters')
      .values({ register_no: registerNo, segment, bits: filter })
      .onConflict((conflict) => conflict.doNothing())
      .execute(),
  );
  return filter;
}
