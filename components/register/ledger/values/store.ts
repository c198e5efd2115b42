import { type RawBuilder, sql } from 'kysely';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import {
  ENTRY_BYTES,
  endOf,
  HEADER_BYTES,
  ID_OFFSET,
  MOST_ENTRIES,
  parseEntries,
  parseEntry,
  parseHeader,
  type StoredTransaction,
  splitBodies,
  type ValueEntry,
} from './format.ts';

type Db = Reader<RegisterSchema>;
type Fragment = RawBuilder<unknown>;

/** SQL for the number at a place of a byte string, from 0. Numbers of a value are below 2^30. */
const numberAt = (bytes: Fragment, place: number) =>
  sql`('x' || encode(substring(${bytes} from ${sql.lit(place + 1)} for 4), 'hex'))::bit(32)::integer`;

const countOf = (value: Fragment) => numberAt(value, 1);

/** A transaction in SQL. */
interface LocationInSql {
  readonly registerNo: Fragment;
  readonly docketNumber: Fragment;
  readonly position: Fragment;
}

/**
 * SQL for the entry of the transaction at a location and for its body, or for the record alone; no row without a value.
 * The column is stored uncompressed, so `substring` reads only the chunks that it needs. `offset 0` keeps a slice from
 * being read again for each number in it.
 *
 * @param within a condition on `v.docket_number` that excludes partitions when the statement is planned
 */
function transactionIn(at: LocationInSql, part: 'body' | 'record', within: Fragment): Fragment {
  const one = sql`(select v.value, substring(v.value
      from ${sql.lit(HEADER_BYTES + 1)} + ${sql.lit(ENTRY_BYTES)} * ${at.position} for ${sql.lit(ENTRY_BYTES)}) as entry
    from docket_values v where v.register_no = ${at.registerNo} and v.docket_number = ${at.docketNumber}
      and ${within} and ${countOf(sql`v.value`)} > ${at.position} limit 1 offset 0) one`;
  const entry = sql`one.entry`;
  const record = numberAt(entry, 4);
  const bytes = part === 'record' ? record : sql`${record} + ${numberAt(entry, 8)}`;
  return sql`(select one.entry, substring(one.value from ${numberAt(entry, 0)} + 1 for ${bytes}) as body from ${one})`;
}

/** The columns of `transactionIn`. */
interface EntryAndBody {
  readonly entry: Buffer;
  readonly body: Buffer;
}

/** The transaction of an entry and its body. */
function transactionOf({ entry, body }: EntryAndBody): StoredTransaction {
  const parsed = parseEntry(entry);
  const [transaction] = splitBodies([parsed], body, parsed.offset);
  if (transaction === undefined) throw new TypeError('an entry has one body');
  return transaction;
}

/** Position in one register. */
interface ValueLocation {
  readonly registerNo: number;
  readonly docketNumber: number;
  readonly position: number;
}

/** SQL for locations, with the bounds of their docket numbers. */
function locationsIn(locations: readonly ValueLocation[]) {
  const numbers = locations.map((one) => one.docketNumber);
  return {
    table: sql`unnest(${locations.map((one) => one.registerNo)}::integer[], ${numbers}::bigint[],
      ${locations.map((one) => one.position)}::integer[]) with ordinality as q(register_no, docket_number, position, ord)`,
    within: sql`v.docket_number between ${Math.min(...numbers)}::bigint and ${Math.max(...numbers)}::bigint`,
  };
}

const locationOfQ: LocationInSql = {
  registerNo: sql`q.register_no`,
  docketNumber: sql`q.docket_number`,
  position: sql`q.position`,
};

/** A record with its hash form. */
interface StoredRecord {
  readonly payloadHashForm: string;
  readonly record: Buffer;
}

/** The records at locations, by index of the location; those without a value are absent. */
export async function recordsAt(
  db: Db,
  locations: readonly ValueLocation[],
): Promise<ReadonlyMap<number, StoredRecord>> {
  if (locations.length === 0) return new Map();
  const { table, within } = locationsIn(locations);
  const { rows } = await sql<
    EntryAndBody & { readonly ord: number }
  >`select q.ord, t.entry, t.body from ${table}
    cross join lateral ${transactionIn(locationOfQ, 'record', within)} t`.execute(db);
  return new Map(
    rows.map(({ ord, entry, body }) => {
      const { payloadHashForm } = parseEntry(entry);
      return [ord - 1, { payloadHashForm, record: body }];
    }),
  );
}

/** The transaction at a location; undefined without a value. */
export async function transactionAt(db: Db, location: ValueLocation): Promise<StoredTransaction | undefined> {
  return (await transactionsAt(db, [location])).get(0);
}

/** The transactions at locations, by index of the location; those without a value are absent. */
export async function transactionsAt(
  db: Db,
  locations: readonly ValueLocation[],
): Promise<ReadonlyMap<number, StoredTransaction>> {
  if (locations.length === 0) return new Map();
  const { table, within } = locationsIn(locations);
  const { rows } = await sql<
    EntryAndBody & { readonly ord: number }
  >`select q.ord, t.entry, t.body from ${table}
    cross join lateral ${transactionIn(locationOfQ, 'body', within)} t`.execute(db);
  return new Map(rows.map((row) => [row.ord - 1, transactionOf(row)]));
}

/** The leaves at locations, by index of the location; those without a value are absent. */
export async function leavesAt(
  db: Db,
  locations: readonly ValueLocation[],
): Promise<ReadonlyMap<number, Buffer>> {
  if (locations.length === 0) return new Map();
  const { table, within } = locationsIn(locations);
  const { rows } = await sql<{
    readonly ord: number;
    readonly entry: Buffer;
  }>`select q.ord, t.entry from ${table}
    cross join lateral (select substring(v.value
        from ${sql.lit(HEADER_BYTES + 1)} + ${sql.lit(ENTRY_BYTES)} * q.position for ${sql.lit(ENTRY_BYTES)}) as entry
      from docket_values v where v.register_no = q.register_no and v.docket_number = q.docket_number and ${within}
        and ${countOf(sql`v.value`)} > q.position limit 1) t`.execute(db);
  return new Map(rows.map((row) => [row.ord - 1, parseEntry(row.entry).leaf]));
}

/** A docket in a register. */
interface DocketAt {
  readonly registerNo: number;
  readonly docketNumber: number;
}

/** Entries of one docket with positions in [from, to), as far as it has them; undefined without a value. */
export async function entriesOf(
  db: Db,
  { registerNo, docketNumber }: DocketAt,
  positions: { readonly from: number; readonly to: number },
): Promise<ValueEntry[] | undefined> {
  // A client chooses the page: offsets of entries are 32-bit integers in SQL.
  const from = Math.min(positions.from, MOST_ENTRIES);
  const to = Math.min(positions.to, MOST_ENTRIES);
  const { rows } = await sql<{ readonly entries: Buffer }>`select substring(v.value
      from ${sql.lit(HEADER_BYTES + 1)} + ${sql.lit(ENTRY_BYTES)} * ${from}::integer
      for ${sql.lit(ENTRY_BYTES)} * greatest(0, least(${countOf(sql`v.value`)}, ${to}::integer) - ${from}::integer)) as entries
    from docket_values v where v.register_no = ${registerNo} and v.docket_number = ${docketNumber}`.execute(
    db,
  );
  return rows[0] && parseEntries(rows[0].entries);
}

/** All entries of the dockets with numbers in [from, to] that have a value, by number. */
export async function entriesOfDockets(
  db: Db,
  registerNo: number,
  range: { readonly from: number; readonly to: number },
): Promise<ReadonlyMap<number, readonly ValueEntry[]>> {
  const { rows } = await sql<{ readonly docketNumber: number; readonly index: Buffer }>`
    select v.docket_number as "docketNumber",
      substring(v.value from 1 for ${sql.lit(HEADER_BYTES)} + ${sql.lit(ENTRY_BYTES)} * ${countOf(sql`v.value`)}) as index
    from docket_values v
    where v.register_no = ${registerNo} and v.docket_number between ${range.from} and ${range.to}`.execute(
    db,
  );
  return new Map(
    rows.map(({ docketNumber, index }) => {
      parseHeader(index);
      return [docketNumber, parseEntries(index.subarray(HEADER_BYTES))];
    }),
  );
}

/** Consecutive entries of one docket. */
export interface EntryRun {
  readonly docketNumber: number;
  readonly entries: readonly ValueEntry[];
}

/** Bytes of the bodies of a run. */
export function runBytes({ entries }: EntryRun): number {
  const [first, last] = [entries[0], entries.at(-1)];
  return first === undefined || last === undefined ? 0 : endOf(last) - first.offset;
}

/** The transactions of runs, run by run, in one query; undefined for a run whose value is purged. */
export async function transactionsOf(
  db: Db,
  registerNo: number,
  runs: readonly EntryRun[],
): Promise<readonly (StoredTransaction[] | undefined)[]> {
  if (runs.length === 0) return [];
  const numbers = runs.map((run) => run.docketNumber);
  const { rows } = await sql<{ readonly ord: number; readonly bodies: Buffer }>`select q.ord, t.bodies
    from unnest(${numbers}::bigint[], ${runs.map((run) => run.entries[0]?.offset ?? 0)}::integer[],
      ${runs.map(runBytes)}::integer[]) with ordinality as q(docket_number, start, bytes, ord)
    cross join lateral (select substring(v.value from q.start + 1 for q.bytes) as bodies from docket_values v
      where v.register_no = ${registerNo} and v.docket_number = q.docket_number
        and v.docket_number between ${Math.min(...numbers)} and ${Math.max(...numbers)} limit 1) t`.execute(
    db,
  );
  const found = new Map(rows.map((row) => [row.ord - 1, row.bodies]));
  return runs.map(({ entries }, index) => {
    const bodies = found.get(index);
    return bodies && splitBodies(entries, bodies, entries[0]?.offset ?? 0);
  });
}

/** SQL for the ids of the dockets that `where` chooses. The entries are sliced once, and each id from the slice. */
export function idsInValues(where: Fragment): Fragment {
  const index = sql`(select substring(value from ${sql.lit(HEADER_BYTES + 1)} for ${sql.lit(ENTRY_BYTES)} * count) as entries,
      count from (select value, ${countOf(sql`value`)} as count from docket_values where ${where} offset 0) counted offset 0) v`;
  return sql`select substring(v.entries from n * ${sql.lit(ENTRY_BYTES)} + ${sql.lit(ID_OFFSET + 1)} for 32) as tx_id
    from ${index} cross join lateral generate_series(0, v.count - 1) as n`;
}
