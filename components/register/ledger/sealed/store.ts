import { type RawBuilder, sql } from 'kysely';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { headSegments, type KeySegments, rowOfKey, segmentsText } from '../segments/store.ts';

export interface SealedRow {
  readonly docketNumber: number;
  readonly position: number;
  readonly leaf: Buffer;
  readonly payloadHashForm: string;
  readonly record: Buffer;
  readonly payload: Buffer;
}

/** The columns of a list; payloads are not read. */
export type SealedItem = Omit<SealedRow, 'leaf' | 'payload'>;

/** Position of a row: a greater one is newer. */
export interface Location {
  readonly docketNumber: number;
  readonly position: number;
}

interface SealedFacts extends Location {
  readonly type: string;
}

export interface Filter {
  readonly registerNo: number;
  readonly senderAddress?: string | undefined;
  readonly fromMicros?: number | undefined;
  /** exclusive */
  readonly untilMicros?: number | undefined;
  readonly before?: Location | undefined;
}

type Db = Reader<RegisterSchema>;

const bytesOf = (id: string) => Buffer.from(id, 'hex');

/** A register, and the segments in which to look up its keys. */
export interface KeyedRegister {
  readonly registerNo: number;
  readonly keySegments: KeySegments;
}

const location = sql`docket_number, position`;
/** The type is null for transactions sealed before migration 0010. */
export const locationAndType = sql`docket_number, position, type`;

/** SQL for columns of the transaction at `i`. The limit keeps the planner from reading more rows of the register. */
const rowAt = (
  columns: RawBuilder<unknown>,
  registerNo: RawBuilder<unknown>,
) => sql`(select ${columns} from transactions
  where register_no = ${registerNo} and docket_number = i.docket_number and position = i.position limit 1)`;

/** SQL for the location `i` of one id. */
function fromKey({ registerNo, keySegments }: KeyedRegister, txId: string): RawBuilder<unknown> {
  const id = bytesOf(txId);
  const register = sql`${registerNo}::integer`;
  const head = headSegments(register, sql`${keySegments.from}::integer`);
  const others = sql`(${segmentsText(keySegments.before('id', id))}::integer[] || h.unknown)`;
  const found = rowOfKey('id', location, {
    registerNo: register,
    open: sql`h.open`,
    others,
    key: sql`${id}`,
  });
  return sql`${head} h cross join lateral ${found} i`;
}

/** Row of a sealed transaction by id. */
export async function findSealed(
  db: Db,
  register: KeyedRegister,
  txId: string,
): Promise<SealedRow | undefined> {
  const columns = sql`leaf, payload_hash_form as "payloadHashForm", record, payload`;
  const { rows } = await sql<SealedRow>`select i.docket_number as "docketNumber", i.position, t.*
    from ${fromKey(register, txId)} cross join lateral ${rowAt(columns, sql`${register.registerNo}::integer`)} t`.execute(
    db,
  );
  return rows[0];
}

export async function findLocation(
  db: Db,
  register: KeyedRegister,
  txId: string,
): Promise<Location | undefined> {
  const { rows } = await sql<Location>`select i.docket_number as "docketNumber", i.position
    from ${fromKey(register, txId)}`.execute(db);
  return rows[0];
}

/** Id of the transaction at a location. */
export async function findIdAt(
  db: Db,
  registerNo: number,
  location: Pick<Location, 'docketNumber' | 'position'>,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('transactions')
    .select('tx_id')
    .where('register_no', '=', registerNo)
    .where('docket_number', '=', location.docketNumber)
    .where('position', '=', location.position)
    .executeTakeFirst();
  return row?.tx_id.toString('hex');
}

/** Type and hash of a row. */
interface RowFacts {
  readonly type: string;
  readonly leaf: Buffer;
}

/** A location in a register. */
export interface RegisterLocation extends Location {
  readonly registerNo: number;
}

/** The rows at locations, one for one; undefined for an undefined location and for a purged row. */
export async function rowsAt(
  db: Db,
  locations: readonly (RegisterLocation | undefined)[],
): Promise<readonly (RowFacts | undefined)[]> {
  const named = locations.filter((one) => one !== undefined);
  if (named.length === 0) return [];
  const { rows } = await sql<RowFacts & { readonly ord: number }>`select i.ord, t.*
    from unnest(${named.map((one) => one.registerNo)}::integer[], ${named.map((one) => one.docketNumber)}::bigint[],
      ${named.map((one) => one.position)}::integer[]) with ordinality as i(register_no, docket_number, position, ord)
    cross join lateral ${rowAt(sql`type, leaf`, sql`i.register_no`)} t`.execute(db);
  const found = new Map(rows.map((row) => [named[row.ord - 1], row]));
  return locations.map((one) => one && found.get(one));
}

/** Locations and types of the ids that are sealed. */
export async function sealedFacts(
  db: Db,
  { registerNo, keySegments }: KeyedRegister,
  txIds: readonly string[],
): Promise<Map<string, SealedFacts>> {
  if (txIds.length === 0) return new Map();
  const ids = txIds.map(bytesOf);
  const register = sql`${registerNo}::integer`;
  const others = sql`(q.sealed::integer[] || h.unknown)`;
  const key = sql`q.tx_id`;
  const found = rowOfKey('id', locationAndType, { registerNo: register, open: sql`h.open`, others, key });
  const { rows } = await sql<Location & { readonly txId: Buffer; readonly type: string | null }>`
    select q.tx_id as "txId", i.docket_number as "docketNumber", i.position, i.type
    from ${headSegments(register, sql`${keySegments.from}::integer`)} h,
      unnest(${ids}::bytea[], ${ids.map((id) => segmentsText(keySegments.before('id', id)))}::text[]) as q(tx_id, sealed)
    cross join lateral ${found} i`.execute(db);
  const untyped = rows.map((row) => (row.type === null ? { ...row, registerNo } : undefined));
  const facts = await rowsAt(db, untyped);
  return new Map(
    rows.flatMap((row, n) => {
      const { txId, docketNumber, position } = row;
      const type = row.type ?? facts[n]?.type;
      return type === undefined ? [] : [[txId.toString('hex'), { docketNumber, position, type }] as const];
    }),
  );
}

const itemColumns = [
  'docket_number as docketNumber',
  'position',
  'payload_hash_form as payloadHashForm',
  'record',
] as const;

/**
 * Newest first from the transaction with this ordinal (0 is the first ever sealed): a seek, however deep the page.
 */
export async function listFromOrdinal(
  db: Db,
  registerNo: number,
  ordinal: number,
  limit: number,
): Promise<SealedItem[]> {
  const docket = await db
    .selectFrom('dockets')
    .select(['docket_number', 'first_ordinal'])
    .where('register_no', '=', registerNo)
    .where('first_ordinal', '<=', ordinal)
    .orderBy('first_ordinal', 'desc')
    .limit(1)
    .executeTakeFirst();
  if (docket === undefined) return [];
  const position = ordinal - docket.first_ordinal;
  return db
    .selectFrom('transactions')
    .select(itemColumns)
    .where('register_no', '=', registerNo)
    .where('docket_number', '<=', docket.docket_number)
    .where(sql<boolean>`(docket_number, position) <= (${docket.docket_number}, ${position})`)
    .orderBy('docket_number', 'desc')
    .orderBy('position', 'desc')
    .limit(limit)
    .execute();
}

function filtered(db: Db, filter: Filter) {
  let rows = db.selectFrom('transactions').where('register_no', '=', filter.registerNo);
  if (filter.senderAddress !== undefined) rows = rows.where('sender_address', '=', filter.senderAddress);
  if (filter.fromMicros !== undefined) rows = rows.where('created_micros', '>=', filter.fromMicros);
  if (filter.untilMicros !== undefined) rows = rows.where('created_micros', '<', filter.untilMicros);
  return rows;
}

/** Newest first with a filter. The caller bounds `offset`; `before` is the cursor for deeper pages. */
export async function listFiltered(
  db: Db,
  filter: Filter,
  window: { readonly offset: number; readonly limit: number },
): Promise<SealedItem[]> {
  let rows = filtered(db, filter);
  const { before } = filter;
  if (before !== undefined) {
    rows = rows
      .where('docket_number', '<=', before.docketNumber)
      .where(sql<boolean>`(docket_number, position) < (${before.docketNumber}, ${before.position})`);
  }
  return rows
    .select(itemColumns)
    .orderBy('docket_number', 'desc')
    .orderBy('position', 'desc')
    .offset(window.offset)
    .limit(window.limit)
    .execute();
}

/** Counts the matches of a filter, at most `atMost`. */
export async function countFiltered(db: Db, filter: Filter, atMost: number): Promise<number> {
  const row = await db
    .selectFrom(filtered(db, filter).select(sql<number>`1`.as('one')).limit(atMost).as('matches'))
    .select(sql<number>`count(*)::int`.as('total'))
    .executeTakeFirst();
  return row?.total ?? 0;
}

export async function senderCount(db: Db, registerNo: number, senderAddress: string): Promise<number> {
  const row = await db
    .selectFrom('sender_counters')
    .select('transaction_count')
    .where('register_no', '=', registerNo)
    .where('sender_address', '=', senderAddress)
    .executeTakeFirst();
  return row?.transaction_count ?? 0;
}

/** Transactions of one docket in docket order. */
export async function listOfDocket(
  db: Db,
  at: { readonly registerNo: number; readonly docketNumber: number },
  window: { readonly offset: number; readonly limit: number },
): Promise<SealedRow[]> {
  return db
    .selectFrom('transactions')
    .select([...itemColumns, 'leaf', 'payload'])
    .where('register_no', '=', at.registerNo)
    .where('docket_number', '=', at.docketNumber)
    .where('position', '>=', window.offset)
    .orderBy('position')
    .limit(window.limit)
    .execute();
}

export async function transactionIdsOfDocket(
  db: Db,
  registerNo: number,
  docketNumber: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('transactions')
    .select('tx_id')
    .where('register_no', '=', registerNo)
    .where('docket_number', '=', docketNumber)
    .orderBy('position')
    .execute();
  return rows.map((row) => row.tx_id.toString('hex'));
}

/** Leaf hashes of one docket in docket order, computed from the records when the docket was verified. */
export async function leavesOfDocket(db: Db, registerNo: number, docketNumber: number): Promise<Buffer[]> {
  const rows = await db
    .selectFrom('transactions')
    .select('leaf')
    .where('register_no', '=', registerNo)
    .where('docket_number', '=', docketNumber)
    .orderBy('position')
    .execute();
  return rows.map((row) => row.leaf);
}
