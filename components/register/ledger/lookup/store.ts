import { CompiledQuery, type RawBuilder, sql } from 'kysely';
import type { KeyKind } from '#core/ledger/key-filter.ts';
import type { Reader } from '#kit/db/db.ts';
import { statement } from '#kit/db/statement.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import type { RegisterLocation } from '../sealed/rows/store.ts';
import {
  leavesAtLocations,
  locationAndFacts,
  routingsAtLocations,
  typesAtLocations,
} from '../sealed/store.ts';
import type { Segments } from '../segments/segments.ts';
import { everywhere, headSegments, type KeySegments, rowOfKey, segmentsText } from '../segments/store.ts';

interface LookupQuestion {
  readonly registerId: string;
  readonly txId: string;
  readonly previousTxId: string;
  /** hex; empty when there is no such question */
  readonly replayKey: string;
  /** id of a publication; empty when there is no such question */
  readonly pin: string;
}

interface LookupRow {
  readonly leaf: Buffer | null;
  readonly docketNumber: number | null;
  readonly previousType: string | null;
  readonly successor: Buffer | null;
  /** id of the sealed transaction with the replay key */
  readonly replay: Buffer | null;
  /** `routing` of a predecessor that is a step */
  readonly previousRouting: string | null;
  readonly isPinKnown: boolean;
}

/** The result of the key look-ups, before any row of a transaction is read. */
interface KeyLookup extends Omit<LookupRow, 'leaf' | 'previousRouting' | 'isPinKnown'> {
  /** null: the register does not exist */
  readonly registerNo: number | null;
  readonly segment: number | null;
  readonly position: number | null;
  readonly previousDocket: number | null;
  readonly previousPosition: number | null;
  /** true when the predecessor is a step */
  readonly isPreviousStep: boolean | null;
}

type Db = Reader<RegisterSchema>;

/** Answers a whole batch of questions, in their order. */
export type Lookup = (questions: readonly LookupQuestion[]) => Promise<readonly LookupRow[]>;

/** The values of a batch: one of each register, and one of each question. */
interface BatchValues {
  readonly registerIds: readonly string[];
  /** first segment whose filter is not cached, by register */
  readonly knownSegments: readonly number[];
  /** place of the question's register in `registerIds`, from 1; 0 for an unknown one */
  readonly registers: readonly number[];
  readonly txIds: readonly (Buffer | null)[];
  readonly txIdSegments: readonly string[];
  readonly replayKeys: readonly (Buffer | null)[];
  readonly replayKeySegments: readonly string[];
}

interface PredecessorValues {
  readonly previousTxIds: readonly (Buffer | null)[];
  readonly previousSegments: readonly string[];
  readonly successorSegments: readonly string[];
}

/** SQL for a named parameter: the text is built once and executed with the values of every batch. */
const given = (name: keyof BatchValues | keyof PredecessorValues, type: string) =>
  sql.raw(`:${name}::${type}`);

/**
 * One statement for the keys of a batch. Each key is looked up on its own: with a join, a generic plan made while the
 * tables were small would read them whole later. The statement is planned for every batch, so it contains only what the
 * batch needs, and no row of `transactions`, each partition of which would be planned.
 */
function statementFor(hasPredecessors: boolean): RawBuilder<KeyLookup> {
  const registerNo = sql`r.register_no`;
  const row = (kind: KeyKind, columns: RawBuilder<unknown>, key: string, sealed: string) =>
    rowOfKey(kind, columns, {
      registerNo,
      open: sql`r.open`,
      others: sql`(${sql.ref(sealed)}::integer[] || r.unknown)`,
      key: sql.ref(key),
    });
  const predecessors = {
    columns: sql`prior.docket_number as "previousDocket", prior.position as "previousPosition",
      prior.type as "previousType", prior.is_step as "isPreviousStep", s.tx_id as successor`,
    keys: sql`, ${given('previousTxIds', 'bytea[]')}, ${given('previousSegments', 'text[]')}, ${given('successorSegments', 'text[]')}`,
    names: sql`, previous, prior, followed`,
    joins: sql`left join lateral ${row('id', locationAndFacts, 'q.previous', 'q.prior')} prior on true
      left join lateral ${row('successor', sql`tx_id`, 'q.previous', 'q.followed')} s on true`,
  };
  const none = {
    columns: sql`null as "previousDocket", null as "previousPosition", null as "previousType", null as "isPreviousStep", null as successor`,
    keys: sql``,
    names: sql``,
    joins: sql``,
  };
  const { columns, keys, names, joins } = hasPredecessors ? predecessors : none;
  return sql<KeyLookup>`
    with r as materialized (
      select d.ord, g.register_no, h.open, h.unknown
      from unnest(${given('registerIds', 'text[]')}, ${given('knownSegments', 'integer[]')}) with ordinality as d(register_id, known, ord)
      cross join lateral (select register_no from registers where register_id = d.register_id limit 1) g
      cross join lateral ${headSegments(sql`g.register_no`, sql`d.known`)} h
    )
    select r.register_no as "registerNo", r.open as segment, own.docket_number as "docketNumber", own.position,
      same.tx_id as replay, ${columns}
    from unnest(${given('registers', 'integer[]')}, ${given('txIds', 'bytea[]')}, ${given('txIdSegments', 'text[]')}, ${given('replayKeys', 'bytea[]')},
        ${given('replayKeySegments', 'text[]')}${keys})
      with ordinality as q(register, tx_id, own, replay_key, same${names}, ord)
    left join r on r.ord = q.register
    left join lateral ${row('id', sql`docket_number, position`, 'q.tx_id', 'q.own')} own on true
    left join lateral ${row('replay', sql`tx_id`, 'q.replay_key', 'q.same')} same on true
    ${joins}
    order by q.ord`;
}

/**
 * The keys of one kind in a batch, with the sealed segments that may hold each, as arrays of equal length; undefined
 * without keys.
 */
function keysInSegments(
  keySegments: readonly KeySegments[],
  kind: KeyKind,
  texts: readonly string[],
): { readonly keys: readonly (Buffer | null)[]; readonly sealed: readonly string[] } {
  const keys = texts.map((text) => (text === '' ? null : Buffer.from(text, 'hex')));
  const sealed = keys.map((key, n) => (key === null ? [] : (keySegments[n]?.before(kind, key) ?? [])));
  const isAny = sealed.some((some) => some.length > 0);
  return { keys, sealed: isAny ? sealed.map(segmentsText) : [] };
}

function valuesOf(
  segments: Pick<Segments, 'named'>,
  questions: readonly LookupQuestion[],
  hasPredecessors: boolean,
): BatchValues | (BatchValues & PredecessorValues) {
  const registerIds = [...new Set(questions.map((one) => one.registerId))];
  const known = new Map(registerIds.map((id, n) => [id, { ord: n + 1, keySegments: segments.named(id) }]));
  const ofQuestion = questions.map((one) => known.get(one.registerId) ?? { ord: 0, keySegments: everywhere });
  const keySegments = ofQuestion.map((one) => one.keySegments);
  const keysOf = (kind: KeyKind, keyOf: (one: LookupQuestion) => string) =>
    keysInSegments(keySegments, kind, questions.map(keyOf));
  const own = keysOf('id', (one) => one.txId);
  const same = keysOf('replay', (one) => one.replayKey);
  const values: BatchValues = {
    registerIds,
    knownSegments: [...known.values()].map((one) => one.keySegments.from),
    registers: ofQuestion.map((one) => one.ord),
    txIds: own.keys,
    txIdSegments: own.sealed,
    replayKeys: same.keys,
    replayKeySegments: same.sealed,
  };
  if (!hasPredecessors) return values;
  const prior = keysOf('id', (one) => one.previousTxId);
  const followed = keysOf('successor', (one) => one.previousTxId);
  return {
    ...values,
    previousTxIds: prior.keys,
    previousSegments: prior.sealed,
    successorSegments: followed.sealed,
  };
}

/** Location of a transaction that is sealed already. */
function ownLocation({ registerNo, docketNumber, position }: KeyLookup): RegisterLocation | undefined {
  if (registerNo === null || docketNumber === null || position === null) return undefined;
  return { registerNo, docketNumber, position };
}

function previousLocation(found: KeyLookup): RegisterLocation | undefined {
  return ownLocation({ ...found, docketNumber: found.previousDocket, position: found.previousPosition });
}

/** Location of a predecessor whose key has no stored type. */
function untypedLocation(found: KeyLookup): RegisterLocation | undefined {
  return found.previousType === null ? previousLocation(found) : undefined;
}

/** Location of a predecessor that is a step. */
function stepLocation(found: KeyLookup): RegisterLocation | undefined {
  return found.isPreviousStep === true ? previousLocation(found) : undefined;
}

/** Which of the pins that are asked about are known, by index of the question; no statement without pins. */
async function knownPins(
  db: Db,
  questions: readonly LookupQuestion[],
  all: readonly KeyLookup[],
): Promise<ReadonlySet<number>> {
  const asked = questions.flatMap(({ pin }, n) => {
    const registerNo = all[n]?.registerNo ?? null;
    return pin === '' || registerNo === null ? [] : [{ n, pin, registerNo }];
  });
  if (asked.length === 0) return new Set();
  const { rows } = await sql<{ readonly n: number }>`select q.n
    from unnest(${asked.map((one) => one.n)}::integer[], ${asked.map((one) => one.registerNo)}::integer[],
      ${asked.map((one) => Buffer.from(one.pin, 'hex'))}::bytea[]) as q(n, register_no, pin)
    where exists (select 1 from blueprint_publications p
      where p.register_no = q.register_no and p.tx_id = q.pin)`.execute(db);
  return new Set(rows.map(({ n }) => n));
}

/** Usually reads nothing: most submissions are new, and no steps. */
async function withRowFacts(
  db: Db,
  questions: readonly LookupQuestion[],
  all: readonly KeyLookup[],
): Promise<readonly LookupRow[]> {
  const own = await leavesAtLocations(db, all.map(ownLocation));
  const prior = await typesAtLocations(db, all.map(untypedLocation));
  const routings = await routingsAtLocations(db, all.map(stepLocation));
  const pins = await knownPins(db, questions, all);
  return all.map((found, n) => ({
    leaf: own[n] ?? null,
    docketNumber: own[n] === undefined ? null : found.docketNumber,
    previousType: found.previousType ?? prior[n] ?? null,
    successor: found.successor,
    replay: found.replay,
    previousRouting: routings[n] ?? null,
    isPinKnown: pins.has(n),
  }));
}

/** Looks submissions up: whether they are sealed, their predecessors, and which keys they repeat. */
export function createLookup(db: Db, segments: Pick<Segments, 'of' | 'named'>): Lookup {
  const compiled = (hasPredecessors: boolean) =>
    statement<BatchValues>(statementFor(hasPredecessors).compile(db).sql);
  const statements = { alone: compiled(false), following: compiled(true) };
  return async (questions) => {
    const hasPredecessors = questions.some((one) => one.previousTxId !== '');
    const bind = hasPredecessors ? statements.following : statements.alone;
    const { text, values } = bind(valuesOf(segments, questions, hasPredecessors));
    const { rows } = await db.getExecutor().executeQuery<KeyLookup>(CompiledQuery.raw(text, values));
    for (const [index, { registerNo, segment }] of rows.entries()) {
      const registerId = questions[index]?.registerId ?? '';
      if (registerNo !== null && segment !== null) segments.of({ registerNo, registerId, segment });
    }
    return withRowFacts(db, questions, rows);
  };
}
