import { type RawBuilder, sql } from 'kysely';
import { type Database, type Reader, sqlState } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { ListedRow } from '../../ledger/sealed/store.ts';
import { recentSegments } from '../../ledger/segments/store.ts';
import type { Row } from '../language/row.ts';
import type { VisibleRegister } from '../registers/store.ts';
import type { IndexCondition } from './plan.ts';

/** Position of a row in the scan. `position` is 0 for dockets, both numbers are 0 for registers. */
export interface ScanLocation {
  readonly registerNo: number;
  readonly docketNumber: number;
  readonly position: number;
  /** microseconds of the transaction, as text; used by scans by time only */
  readonly micros: string;
}

/** A row of `Transactions` in the shape of transaction lists. */
export function listedRowOf(row: Row): ListedRow {
  const { record, payload_hash_form: form } = row;
  return {
    registerNo: row.register_no,
    docketNumber: row.docket_number,
    position: row.position,
    record: Buffer.isBuffer(record) ? record : null,
    payloadHashForm: typeof form === 'string' ? form : null,
  };
}

/**
 * A scan over the rows of some registers, one register after the other. `location`: in ledger order. `time`: in timestamp
 * order, in one register only.
 */
export interface Scan {
  readonly set: 'Transactions' | 'Dockets';
  readonly registers: readonly VisibleRegister[];
  readonly by: 'location' | 'time';
  readonly direction: 'asc' | 'desc';
  /** exclusive; in the first of the registers */
  readonly after: ScanLocation | undefined;
  readonly indexCondition: IndexCondition | undefined;
  readonly fromDocket: number | undefined;
  readonly toDocket: number | undefined;
}

type Db = Reader<RegisterSchema>;
type Fragment = RawBuilder<unknown>;
type Condition = RawBuilder<boolean>;

const mostMs = 5_000;

/**
 * Planner settings that disable plans other than index scans. The planner does not know the start of a scan, so it
 * estimates that the rest of a register is read for a few rows and prefers reading and sorting all of them.
 */
const alongIndexes = [
  'enable_sort',
  'enable_seqscan',
  'enable_bitmapscan',
  'enable_hashjoin',
  'enable_mergejoin',
] as const;

/** Runs statements with client-defined conditions, each for at most `timeoutMs`. Throws QUERY_TIMEOUT. */
export async function withinTime<T>(
  database: Pick<Database<RegisterSchema>, 'transact'>,
  act: (db: Db) => Promise<T>,
  timeoutMs = mostMs,
): Promise<T> {
  try {
    return await database.transact(async (tx) => {
      const settings = [
        ['statement_timeout', String(timeoutMs)],
        ...alongIndexes.map((name) => [name, 'off']),
      ];
      await sql`select ${sql.join(settings.map(([name, value]) => sql`set_config(${name}, ${value}, true)`))}`.execute(
        tx,
      );
      return act(tx);
    });
  } catch (error) {
    // query_canceled
    if (sqlState(error) === '57014') throw refusal('QUERY_TIMEOUT', { cause: error });
    throw error;
  }
}

const conditionOf = (indexCondition: IndexCondition | undefined): Condition => {
  switch (indexCondition?.by) {
    case undefined:
    case 'txId':
    case 'wallet':
      return sql<boolean>`true`;
    case 'sender':
      return sql<boolean>`t.sender_address = ${indexCondition.senderAddress}`;
    case 'blueprint':
      // longestIndexedBytes as a literal: the planner matches the partial index by its text
      return sql<boolean>`t.blueprint_id = ${indexCondition.blueprintId} and octet_length(t.blueprint_id) <= 256`;
  }
};

const docketColumns = sql`d.docket_number, 0 as position,
  (extract(epoch from d.timestamp::timestamptz) * 1000000)::bigint as created_micros, d.docket_number::text as docket_id,
  d.hash, d.previous_hash, d.merkle_root, d.log_root, d.transaction_count, d.timestamp::timestamptz as sealed_at,
  d.validator_address, d.validator_set_hash, d.is_genesis, d.size_bytes`;

const transactionColumns = sql`t.docket_number, t.position, t.created_micros, t.docket_number::text as docket_id,
  encode(t.tx_id, 'hex') as tx_id, t.type as transaction_type, t.sender_address, t.blueprint_id, t.action_id,
  encode(t.previous_tx_id, 'hex') as previous_tx_id,
  timestamptz 'epoch' + t.created_micros * interval '1 microsecond' as created_at, 'confirmed'::text as status,
  coalesce(t.instance_id, substring(convert_from(t.record, 'UTF8') from '"instanceId":"([^"\\\\]*)"')) as instance_id, t.record, t.payload_hash_form`;

/** The rows at given locations of a register, each by its key. */
const rowsAt = (locations: Fragment) => sql`(select t.* from ${locations} p cross join lateral (
    select * from transaction_rows where register_no = r.register_no and docket_number = p.docket_number
      and position = p.position limit 1) t)`;

const rowsWithIds = (txIds: readonly string[]) =>
  rowsAt(sql`(select docket_number, position from transaction_ids
    where register_no = r.register_no and segment = any(${recentSegments(sql`r.register_no`, sql`0`)}) and tx_id = any(${txIds.map((id) => Buffer.from(id, 'hex'))}::bytea[]))`);

/** Transactions that an address sent or received: the newest locations of both, then their rows. In descending order. */
function rowsOfWallet(address: string, limit: number): Fragment {
  const below = sql`docket_number <= r.docket and (docket_number, position) < (r.docket, r.position)
    order by docket_number desc, position desc limit ${limit}`;
  return rowsAt(sql`(select docket_number, position from (
        (select docket_number, position from transaction_rows
          where register_no = r.register_no and sender_address = ${address} and ${below})
        union
        (select docket_number, position from transaction_recipients
          where register_no = r.register_no and address = ${address} and ${below})
      ) locations order by docket_number desc, position desc limit ${limit})`);
}

function sourceOf(indexCondition: IndexCondition | undefined, limit: number): Fragment {
  if (indexCondition?.by === 'txId') return sql`${rowsWithIds(indexCondition.txIds)} t`;
  return indexCondition?.by === 'wallet'
    ? sql`${rowsOfWallet(indexCondition.address, limit)} t`
    : sql`transaction_rows t`;
}

interface ScanSource {
  readonly columns: Fragment;
  readonly source: Fragment;
  /** columns that order the scan, most significant first */
  readonly steps: readonly string[];
  /** the same columns of the start */
  readonly begins: readonly string[];
  readonly narrowed: Condition;
}

function scanSourceOf(scan: Scan, limit: number): ScanSource {
  if (scan.set === 'Dockets') {
    const narrowed = sql<boolean>`true`;
    const source = sql`dockets d`;
    return { columns: docketColumns, source, steps: ['d.docket_number'], begins: ['r.docket'], narrowed };
  }
  const { indexCondition } = scan;
  const source = sourceOf(indexCondition, limit);
  const common = { columns: transactionColumns, source, narrowed: conditionOf(indexCondition) };
  const location = { steps: ['t.docket_number', 't.position'], begins: ['r.docket', 'r.position'] };
  if (scan.by === 'location') return { ...common, ...location };
  const { steps, begins } = location;
  return { ...common, steps: ['t.created_micros', ...steps], begins: ['r.micros', ...begins] };
}

const largestBigint = '9223372036854775807';
const largestInteger = 2_147_483_647;

/** Start of each register's scan: before the first row, except in the register of `after`. */
function startsOf(scan: Scan) {
  const { after, registers } = scan;
  const descending = scan.direction === 'desc';
  const edge = descending ? largestBigint : '-1';
  const first = (is: boolean, value: string | undefined, other: string) => (is && value ? value : other);
  const inside = registers.map(({ registerNo }) => registerNo === after?.registerNo);
  return {
    numbers: registers.map(({ registerNo }) => registerNo),
    ids: registers.map(({ registerId }) => registerId),
    micros: inside.map((is) => first(is, after?.micros, descending ? largestBigint : `-${largestBigint}`)),
    dockets: inside.map((is) => first(is, after && String(after.docketNumber), edge)),
    positions: inside.map((is) =>
      Number(first(is, after && String(after.position), String(descending ? largestInteger : -1))),
    ),
  };
}

/**
 * The rows of a scan, at most `limit`: an index scan in each register until there are enough. Registers are in array
 * order, each with its rows in scan order.
 */
function candidates(scan: Scan, limit: number): Fragment {
  const { columns, source, steps, begins, narrowed } = scanSourceOf(scan, limit);
  const { numbers, ids, micros, dockets, positions } = startsOf(scan);
  const list = (names: readonly string[]) => sql.raw(names.join(', '));
  const [beyond, atLeast] = scan.direction === 'desc' ? [sql`<`, sql`<=`] : [sql`>`, sql`>=`];
  const ordered = sql.raw(steps.map((step) => `${step} ${scan.direction}`).join(', '));
  const alias = sql.raw(scan.set === 'Dockets' ? 'd' : 't');
  return sql`(
    select r.register_no, r.register_id, r.ord, l.*
    from unnest(${numbers}::integer[], ${ids}::text[], ${micros}::bigint[], ${dockets}::bigint[], ${positions}::integer[])
      with ordinality as r(register_no, register_id, micros, docket, position, ord)
    cross join lateral (
      select ${columns} from ${source}
      where ${alias}.register_no = r.register_no
        and ${list(steps.slice(0, 1))} ${atLeast} ${list(begins.slice(0, 1))}
        and (${list(steps)}) ${beyond} (${list(begins)})
        and ${alias}.docket_number >= ${scan.fromDocket ?? 0}::bigint
        and ${alias}.docket_number <= ${scan.toDocket ?? largestBigint}::bigint
        and ${narrowed}
      order by ${ordered} limit ${limit}
    ) l
    limit ${limit}
  )`;
}

/** The order of a scan over its own candidates. */
function scanOrder(scan: Scan): Fragment {
  const { direction } = scan;
  const micros = scan.by === 'time' ? [`created_micros ${direction}`] : [];
  return sql.raw(['ord', ...micros, `docket_number ${direction}`, `position ${direction}`].join(', '));
}

/**
 * Rows of a scan that satisfy `where`, in its order. At most `examined` rows are read, so fewer than `limit` may be
 * returned although more follow.
 */
export async function listAlong(
  db: Db,
  scan: Scan,
  query: {
    readonly where: Fragment;
    readonly examined: number;
    readonly offset: number;
    readonly limit: number;
  },
): Promise<Row[]> {
  const found = await sql<Row>`select * from ${candidates(scan, query.examined)} c where ${query.where}
    order by ${scanOrder(scan)} offset ${query.offset} limit ${query.limit}`.execute(db);
  return found.rows;
}

/** Summary of a bounded scan. */
interface Examined {
  readonly examined: number;
  readonly matching: number;
  /** the last row that was read */
  readonly last: ScanLocation | undefined;
}

/** Reads at most `atMost` rows of a scan: their number, how many satisfy `where`, and the last location. */
export async function examine(db: Db, scan: Scan, where: Fragment, atMost: number): Promise<Examined> {
  const found = await sql<{
    examined: number;
    matching: number;
  }>`select count(*)::int as examined, (count(*) filter (where ${where}))::int as matching
    from ${candidates(scan, atMost)} c`.execute(db);
  const { examined = 0, matching = 0 } = found.rows[0] ?? {};
  if (examined < atMost) return { examined, matching, last: undefined };
  const rows = await sql<Row>`select register_no, docket_number, position, created_micros
    from ${candidates(scan, atMost)} c order by ${scanOrder(scan)} offset ${atMost - 1} limit 1`.execute(db);
  return { examined, matching, last: rows.rows[0] && locationOf(rows.rows[0]) };
}

/** Location of a row. */
export function locationOf(row: Row): ScanLocation {
  return {
    registerNo: row.register_no,
    docketNumber: row.docket_number,
    position: row.position,
    micros: String(row.created_micros),
  };
}

/** All rows of a scan that satisfy `where`, in another order. The caller must know that they are few. */
export async function listSorted(
  db: Db,
  scan: Scan,
  query: {
    readonly where: Fragment;
    readonly examined: number;
    readonly orderings: readonly Fragment[];
    readonly offset: number;
    readonly limit: number;
  },
): Promise<Row[]> {
  const order = sql.join([...query.orderings, scanOrder(scan)]);
  const found = await sql<Row>`select * from ${candidates(scan, query.examined)} c where ${query.where}
    order by ${order} offset ${query.offset} limit ${query.limit}`.execute(db);
  return found.rows;
}

/** Totals of registers from counters; no row of the ledger is read. */
export async function countAll(db: Db, set: Scan['set'], registers: readonly number[]): Promise<number> {
  const column = sql.ref(set === 'Dockets' ? 'height' : 'transaction_count');
  const found = await sql<{ total: number }>`select coalesce(sum(${column}), 0)::bigint as total
    from register_heads where register_no = any(${registers}::integer[])`.execute(db);
  return found.rows[0]?.total ?? 0;
}

function countersOf(indexCondition: Exclude<IndexCondition, { by: 'txId' }>): Fragment {
  switch (indexCondition.by) {
    case 'sender':
      return sql`sender_counters where sender_address = ${indexCondition.senderAddress}`;
    case 'blueprint':
      return sql`blueprint_counters where blueprint_id = ${indexCondition.blueprintId}`;
    case 'wallet':
      return sql`(
        select register_no, transaction_count from sender_counters where sender_address = ${indexCondition.address}
        union all
        select register_no, transaction_count - sent_count from recipient_counters where address = ${indexCondition.address}
      ) as both_ways where true`;
  }
}

/** Number of transactions of a sender, a blueprint or a wallet, from its counters. */
export async function countByIndex(
  db: Db,
  registers: readonly number[],
  indexCondition: Exclude<IndexCondition, { by: 'txId' }>,
): Promise<number> {
  const counters = countersOf(indexCondition);
  const found = await sql<{ total: number }>`select coalesce(sum(transaction_count), 0)::bigint as total
    from ${counters} and register_no = any(${registers}::integer[])`.execute(db);
  return found.rows[0]?.total ?? 0;
}
