import { type RawBuilder, sql } from 'kysely';
import { routingText } from '#core/blueprint/steps/routing.ts';
import { AppError } from '#core/errors/errors.ts';
import { parseRecord } from '#core/ledger/record.ts';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { headSegments, type KeySegments, rowOfKey, segmentsText } from '../segments/store.ts';
import { MOST_ENTRIES } from '../values/format.ts';
import { entriesOf, leavesAt, recordsAt, transactionAt, transactionsOf } from '../values/store.ts';
import {
  keysOfDocket,
  type Location,
  leavesOfRows,
  type RegisterLocation,
  recordsOfRows,
  rowsOfDocket,
  type SealedItem,
  type SealedRow,
  typesOfRows,
} from './rows/store.ts';

interface SealedFacts extends Location {
  readonly type: string;
  readonly routing: string | undefined;
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
/** The type is null for transactions sealed before migration 0010, the mark of steps for all that are none. */
export const locationAndFacts = sql`docket_number, position, type, is_step`;

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

export async function findLocation(
  db: Db,
  register: KeyedRegister,
  txId: string,
): Promise<Location | undefined> {
  const { rows } = await sql<Location>`select i.docket_number as "docketNumber", i.position
    from ${fromKey(register, txId)}`.execute(db);
  return rows[0];
}

/**
 * A sealed transaction by id: from the value of its docket, else from its row. The location is looked up first: with its
 * docket number as a constant, one partition is planned instead of all.
 */
export async function findSealed(
  db: Db,
  register: KeyedRegister,
  txId: string,
): Promise<SealedRow | undefined> {
  const at = await findLocation(db, register, txId);
  if (at === undefined) return undefined;
  const { registerNo } = register;
  const { docketNumber, position } = at;
  const stored = await transactionAt(db, { registerNo, docketNumber, position });
  if (stored !== undefined) return { docketNumber, position, ...stored };
  const [row] = await rowsOfDocket(db, { registerNo, docketNumber }, { offset: position, limit: 1 });
  return row?.position === position ? row : undefined;
}

/** Id of the transaction at a location. */
export async function findIdAt(
  db: Db,
  registerNo: number,
  location: Pick<Location, 'docketNumber' | 'position'>,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('transaction_rows')
    .select('tx_id')
    .where('register_no', '=', registerNo)
    .where('docket_number', '=', location.docketNumber)
    .where('position', '=', location.position)
    .executeTakeFirst();
  return row?.tx_id.toString('hex');
}

interface KeyRow extends Location {
  readonly txId: Buffer;
  readonly type: string | null;
  readonly isStep: boolean | null;
}

/** What `find` returns for each location, one for one; undefined for an undefined location. */
async function ofEach<T>(
  locations: readonly (RegisterLocation | undefined)[],
  find: (named: readonly RegisterLocation[]) => Promise<ReadonlyMap<number, T>>,
): Promise<readonly (T | undefined)[]> {
  const named = locations.filter((one) => one !== undefined);
  if (named.length === 0) return [];
  const found = await find(named);
  const byLocation = new Map(named.map((one, index) => [one, found.get(index)]));
  return locations.map((one) => one && byLocation.get(one));
}

/** Leaves at locations, one for one; undefined for an undefined location and for a purged docket. */
export async function leavesAtLocations(
  db: Db,
  locations: readonly (RegisterLocation | undefined)[],
): Promise<readonly (Buffer | undefined)[]> {
  const found = await ofEach(locations, (named) => leavesAt(db, named));
  const missing = locations.map((one, n) => (found[n] === undefined ? one : undefined));
  const rows = await ofEach(missing, (named) => leavesOfRows(db, named));
  return locations.map((_, n) => found[n] ?? rows[n]?.leaf ?? undefined);
}

/** Types at locations, one for one, of transactions that were sealed before their keys had types. */
export async function typesAtLocations(
  db: Db,
  locations: readonly (RegisterLocation | undefined)[],
): Promise<readonly (string | undefined)[]> {
  const found = await ofEach(locations, (named) => typesOfRows(db, named));
  return locations.map((_, n) => found[n]?.type);
}

/**
 * `routing` of the steps at locations, one for one; undefined for an undefined location. A step is in a docket with a
 * value.
 * @throws AppError internal when a step cannot be read: its successor must not be taken for a transaction behind none
 */
export async function routingsAtLocations(
  db: Db,
  locations: readonly (RegisterLocation | undefined)[],
): Promise<readonly (string | undefined)[]> {
  const found = await ofEach(locations, (named) => recordsAt(db, named));
  return locations.map((location, n) => {
    if (location === undefined) return undefined;
    const record = found[n]?.record;
    const text = record && routingText(parseRecord(record).metadata);
    if (text === undefined) throw new AppError('internal', 'INTERNAL_ERROR', 'A sealed step has no routing.');
    return text;
  });
}

/** Locations and types of the ids that are sealed; `routing` of those that are steps. */
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
  const found = rowOfKey('id', locationAndFacts, { registerNo: register, open: sql`h.open`, others, key });
  const { rows } = await sql<KeyRow>`
    select q.tx_id as "txId", i.docket_number as "docketNumber", i.position, i.type, i.is_step as "isStep"
    from ${headSegments(register, sql`${keySegments.from}::integer`)} h,
      unnest(${ids}::bytea[], ${ids.map((id) => segmentsText(keySegments.before('id', id)))}::text[]) as q(tx_id, sealed)
    cross join lateral ${found} i`.execute(db);
  const untyped = rows.map((row) => (row.type === null ? { ...row, registerNo } : undefined));
  const types = await typesAtLocations(db, untyped);
  const steps = rows.map((row) => (row.isStep === true ? { ...row, registerNo } : undefined));
  const routings = await routingsAtLocations(db, steps);
  return new Map(
    rows.flatMap((row, n) => {
      const { txId, docketNumber, position } = row;
      const type = row.type ?? types[n];
      const facts = type && { docketNumber, position, type, routing: routings[n] };
      return facts ? [[txId.toString('hex'), facts] as const] : [];
    }),
  );
}

/** A listed row; record and form are null when the docket has a value. */
export interface ListedRow extends RegisterLocation {
  readonly record: Buffer | null;
  readonly payloadHashForm: string | null;
}

/** The items of listed rows in their order, without purged ones. */
export async function itemsOfRows(db: Db, rows: readonly ListedRow[]): Promise<SealedItem[]> {
  const found = await ofEach(
    rows.map((row) => (row.record === null ? row : undefined)),
    (named) => recordsAt(db, named),
  );
  return rows.flatMap(({ docketNumber, position, record, payloadHashForm }, n) => {
    const stored = found[n];
    if (stored !== undefined) return [{ docketNumber, position, ...stored }];
    if (record === null || payloadHashForm === null) return [];
    return [{ docketNumber, position, record, payloadHashForm }];
  });
}

/** The items at locations in their order, without purged ones. */
async function itemsAt(db: Db, locations: readonly RegisterLocation[]): Promise<SealedItem[]> {
  const values = await ofEach(locations, (named) => recordsAt(db, named));
  const missing = locations.map((one, n) => (values[n] === undefined ? one : undefined));
  const rows = await ofEach(missing, (named) => recordsOfRows(db, named));
  return locations.flatMap(({ docketNumber, position }, n) => {
    const { record = null, payloadHashForm = null } = values[n] ?? rows[n] ?? {};
    return record === null || payloadHashForm === null
      ? []
      : [{ docketNumber, position, record, payloadHashForm }];
  });
}

/** Locations in descending order from one on, in consecutive dockets, newest first. */
function locationsDown(
  dockets: readonly { readonly docket_number: number; readonly transaction_count: number }[],
  from: { readonly registerNo: number; readonly position: number },
  limit: number,
): RegisterLocation[] {
  const locations: RegisterLocation[] = [];
  const { registerNo } = from;
  for (const [index, { docket_number: docketNumber, transaction_count: count }] of dockets.entries()) {
    const last = index === 0 ? Math.min(from.position, count - 1) : count - 1;
    for (let position = last; position >= 0 && locations.length < limit; position -= 1)
      locations.push({ registerNo, docketNumber, position });
  }
  return locations;
}

/**
 * Newest first from the transaction with this ordinal (0 is the first ever sealed): a seek, however deep the page. It
 * needs dockets and their values only, so it holds everything that is sealed.
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
  const dockets = await db
    .selectFrom('dockets')
    .select(['docket_number', 'transaction_count'])
    .where('register_no', '=', registerNo)
    .where('docket_number', '<=', docket.docket_number)
    .orderBy('docket_number', 'desc')
    .limit(limit)
    .execute();
  const position = ordinal - docket.first_ordinal;
  return itemsAt(db, locationsDown(dockets, { registerNo, position }, limit));
}

function filtered(db: Db, filter: Filter) {
  let rows = db.selectFrom('transaction_rows').where('register_no', '=', filter.registerNo);
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
  const listed = await rows
    .select(['register_no as registerNo', 'docket_number as docketNumber', 'position', 'record'])
    .select('payload_hash_form as payloadHashForm')
    .orderBy('docket_number', 'desc')
    .orderBy('position', 'desc')
    .offset(window.offset)
    .limit(window.limit)
    .execute();
  return itemsOfRows(db, listed);
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

/** All positions of a docket. */
export const everyPosition = { from: 0, to: MOST_ENTRIES } as const;

interface DocketLocation {
  readonly registerNo: number;
  readonly docketNumber: number;
}

/** Transactions of one docket in docket order. */
export async function listOfDocket(
  db: Db,
  at: DocketLocation,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<SealedRow[]> {
  const { docketNumber } = at;
  const entries = await entriesOf(db, at, { from: offset, to: offset + limit });
  if (entries === undefined) return rowsOfDocket(db, at, { offset, limit });
  const [transactions = []] = await transactionsOf(db, at.registerNo, [{ docketNumber, entries }]);
  return transactions.map((one, index) => ({ docketNumber, position: offset + index, ...one }));
}

/** The transaction at a location; undefined once its docket is purged. */
export async function findAt(
  db: Db,
  { registerNo, docketNumber, position }: RegisterLocation,
): Promise<SealedRow | undefined> {
  const [row] = await listOfDocket(db, { registerNo, docketNumber }, { offset: position, limit: 1 });
  return row;
}

/** Ids of one docket's transactions with positions in [from, to), in docket order. */
export async function transactionIdsOfDocket(
  db: Db,
  at: DocketLocation,
  positions: { readonly from: number; readonly to: number },
): Promise<string[]> {
  const keys = (await entriesOf(db, at, positions)) ?? (await keysOfDocket(db, at, positions));
  return keys.map((one) => one.txId);
}

/** Leaf hashes of one docket in docket order, computed from the records when the docket was verified. */
export async function leavesOfDocket(db: Db, registerNo: number, docketNumber: number): Promise<Buffer[]> {
  const at = { registerNo, docketNumber };
  const keys = (await entriesOf(db, at, everyPosition)) ?? (await keysOfDocket(db, at, everyPosition));
  return keys.map((one) => one.leaf);
}
