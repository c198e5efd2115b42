import { type RawBuilder, sql } from 'kysely';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../database/schema.ts';
import type { KeyKind } from '../segments/filter.ts';
import type { Segments } from '../segments/segments.ts';
import { everywhere, headSegments, type KeyPlaces, rowOfKey, segmentsText } from '../segments/store.ts';

export interface SealedRow {
  readonly docketNumber: number;
  readonly position: number;
  readonly leaf: Buffer;
  readonly payloadHashForm: string;
  readonly record: Buffer;
  readonly payload: Buffer;
}

/** What a list needs of a row; payloads stay where they are. */
export type SealedItem = Omit<SealedRow, 'leaf' | 'payload'>;

/** Where a row stands: larger is newer. */
export interface Place {
  readonly docketNumber: number;
  readonly position: number;
}

export interface SealedFacts extends Place {
  readonly type: string;
}

export interface Filter {
  readonly registerNo: number;
  readonly senderAddress?: string | undefined;
  readonly fromMicros?: number | undefined;
  /** exclusive */
  readonly untilMicros?: number | undefined;
  readonly before?: Place | undefined;
}

type Db = Reader<RegisterSchema>;

const bytesOf = (id: string) => Buffer.from(id, 'hex');

/** A register, and where its keys are looked for. */
export interface KeyedRegister {
  readonly registerNo: number;
  readonly places: KeyPlaces;
}

const place = sql`docket_number, position`;

/** SQL for columns of the transaction at `i`. The limit keeps the planner from reading more of the register for it. */
const rowAt = (
  columns: RawBuilder<unknown>,
  registerNo: RawBuilder<unknown>,
) => sql`(select ${columns} from transactions
  where register_no = ${registerNo} and docket_number = i.docket_number and position = i.position limit 1)`;

/** SQL for the place `i` of one id. */
function fromKey({ registerNo, places }: KeyedRegister, txId: string): RawBuilder<unknown> {
  const id = bytesOf(txId);
  const register = sql`${registerNo}::integer`;
  const head = headSegments(register, sql`${places.from}::integer`);
  const others = sql`(${segmentsText(places.before('id', id))}::integer[] || h.unknown)`;
  const found = rowOfKey('id', place, { registerNo: register, open: sql`h.open`, others, key: sql`${id}` });
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

export async function findPlace(db: Db, register: KeyedRegister, txId: string): Promise<Place | undefined> {
  const { rows } = await sql<Place>`select i.docket_number as "docketNumber", i.position
    from ${fromKey(register, txId)}`.execute(db);
  return rows[0];
}

/** Id of the transaction that stands at a place. */
export async function findIdAt(
  db: Db,
  registerNo: number,
  place: Pick<Place, 'docketNumber' | 'position'>,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('transactions')
    .select('tx_id')
    .where('register_no', '=', registerNo)
    .where('docket_number', '=', place.docketNumber)
    .where('position', '=', place.position)
    .executeTakeFirst();
  return row?.tx_id.toString('hex');
}

/** Places and types of those ids that are sealed. */
export async function sealedFacts(
  db: Db,
  { registerNo, places }: KeyedRegister,
  txIds: readonly string[],
): Promise<Map<string, SealedFacts>> {
  if (txIds.length === 0) return new Map();
  const ids = txIds.map(bytesOf);
  const register = sql`${registerNo}::integer`;
  const others = sql`(q.sealed::integer[] || h.unknown)`;
  const found = rowOfKey('id', place, { registerNo: register, open: sql`h.open`, others, key: sql`q.tx_id` });
  const rows = await sql<{ tx_id: Buffer; docket_number: number; position: number; type: string }>`
    select q.tx_id, i.docket_number, i.position, t.type
    from ${headSegments(register, sql`${places.from}::integer`)} h,
      unnest(${ids}::bytea[], ${ids.map((id) => segmentsText(places.before('id', id)))}::text[]) as q(tx_id, sealed)
    cross join lateral ${found} i
    cross join lateral ${rowAt(sql`type`, register)} t`.execute(db);
  return new Map(
    rows.rows.map((row) => [
      row.tx_id.toString('hex'),
      { docketNumber: row.docket_number, position: row.position, type: row.type },
    ]),
  );
}

export interface LookupQuestion {
  readonly registerId: string;
  readonly txId: string;
  readonly previousTxId: string;
  /** hex; empty when the question is not asked */
  readonly replayKey: string;
}

export interface LookupRow {
  /** null: there is no such register */
  readonly registerNo: number | null;
  readonly segment: number | null;
  readonly leaf: Buffer | null;
  readonly docketNumber: number | null;
  readonly previousType: string | null;
  readonly successor: Buffer | null;
  /** id of the sealed transaction with the replay key */
  readonly replay: Buffer | null;
}

/** The keys of one kind that a batch asks for, with the sealed segments where each may be, as arrays of one length or none. */
function keysAsked(
  places: readonly KeyPlaces[],
  kind: KeyKind,
  texts: readonly string[],
): { readonly keys: RawBuilder<unknown>; readonly sealed: RawBuilder<unknown> } {
  const keys = texts.map((text) => (text === '' ? null : bytesOf(text)));
  const sealed = keys.map((key, n) => (key === null ? [] : (places[n]?.before(kind, key) ?? [])));
  const isAny = sealed.some((some) => some.length > 0);
  return { keys: sql`${keys}::bytea[]`, sealed: sql`${isAny ? sealed.map(segmentsText) : []}::text[]` };
}

/**
 * One statement for a whole batch of questions; rows come in the order of the questions (D16). Each key is looked up on its
 * own: joined as tables they may be read whole, by a plan made while they were small and kept while they grow. It is planned
 * for every batch, so it holds only what is asked.
 */
export async function lookup(
  db: Db,
  segments: Pick<Segments, 'of' | 'named'>,
  questions: readonly LookupQuestion[],
): Promise<LookupRow[]> {
  const registerIds = [...new Set(questions.map((one) => one.registerId))];
  const known = new Map(registerIds.map((id, n) => [id, { ord: n + 1, places: segments.named(id) }]));
  const ofQuestion = questions.map((one) => known.get(one.registerId) ?? { ord: 0, places: everywhere });
  const places = ofQuestion.map((one) => one.places);
  const previousIds = questions.map((one) => one.previousTxId);
  const txIds = questions.map((one) => one.txId);
  const replayKeys = questions.map((one) => one.replayKey);
  const own = keysAsked(places, 'id', txIds);
  const same = keysAsked(places, 'replay', replayKeys);
  const prior = keysAsked(places, 'id', previousIds);
  const followed = keysAsked(places, 'successor', previousIds);
  const registerNo = sql`r.register_no`;
  const row = (kind: KeyKind, columns: RawBuilder<unknown>, key: string, sealed: string) =>
    rowOfKey(kind, columns, {
      registerNo,
      open: sql`r.open`,
      others: sql`(${sql.ref(sealed)}::integer[] || r.unknown)`,
      key: sql.ref(key),
    });
  const predecessors = previousIds.some((id) => id !== '')
    ? {
        columns: sql`prior.type as "previousType", s.tx_id as successor`,
        joins: sql`left join lateral (
      select t.type from ${row('id', place, 'q.previous', 'q.prior')} i
      cross join lateral ${rowAt(sql`type`, registerNo)} t
    ) prior on true
    left join lateral ${row('successor', sql`tx_id`, 'q.previous', 'q.followed')} s on true`,
      }
    : { columns: sql`null as "previousType", null as successor`, joins: sql`` };
  const { rows } = await sql<LookupRow>`
    with r as materialized (
      select d.ord, g.register_no, h.open, h.unknown
      from unnest(${registerIds}::text[], ${[...known.values()].map((one) => one.places.from)}::integer[])
        with ordinality as d(register_id, known, ord)
      cross join lateral (select register_no from registers where register_id = d.register_id limit 1) g
      cross join lateral ${headSegments(sql`g.register_no`, sql`d.known`)} h
    )
    select r.register_no as "registerNo", r.open as segment, own.leaf, own.docket_number as "docketNumber",
      same.tx_id as replay, ${predecessors.columns}
    from unnest(${ofQuestion.map((one) => one.ord)}::integer[], ${own.keys}, ${own.sealed}, ${same.keys}, ${same.sealed},
      ${prior.keys}, ${prior.sealed}, ${followed.sealed})
      with ordinality as q(register, tx_id, own, replay_key, same, previous, prior, followed, ord)
    left join r on r.ord = q.register
    left join lateral (
      select i.docket_number, t.leaf from ${row('id', place, 'q.tx_id', 'q.own')} i
      cross join lateral ${rowAt(sql`leaf`, registerNo)} t
    ) own on true
    left join lateral ${row('replay', sql`tx_id`, 'q.replay_key', 'q.same')} same on true
    ${predecessors.joins}
    order by q.ord`.execute(db);
  for (const [index, { registerNo, segment }] of rows.entries()) {
    const registerId = questions[index]?.registerId ?? '';
    if (registerNo !== null && segment !== null) segments.of({ registerNo, registerId, segment });
  }
  return rows;
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

/** Newest first with a filter. `offset` is bounded by the caller; `before` is the cursor for what lies deeper. */
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

/** Counts what a filter matches, at most `atMost`. */
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

/** Leaf hashes of one docket in docket order: the records were hashed into them when the docket was verified. */
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
