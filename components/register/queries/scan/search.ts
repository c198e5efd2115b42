import type { Database, Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Scope } from '../../registers/state/store.ts';
import type { EntitySet } from '../language/model.ts';
import type { Row } from '../language/row.ts';
import type { Typed } from '../language/typed.ts';
import {
  countRegisterRows,
  listRegisterRows,
  type VisibleRegister,
  visibleRegisters,
} from '../registers/store.ts';
import { type TypedOrdering, translateAll, translateOrderings } from '../translation/store.ts';
import { type Plan, planFilter } from './plan.ts';
import {
  countAll,
  countByIndex,
  examine,
  listAlong,
  listSorted,
  locationOf,
  type Scan,
  type ScanLocation,
  withinTime,
} from './store.ts';

/** Maximum rows that one request reads, and maximum registers that it searches. */
export const mostExamined = 10_000;

/** Where a page begins. `offset` skips matching rows, `after` is a location in the scan. */
export interface Start {
  readonly after:
    | { readonly registerId: string; readonly location: Omit<ScanLocation, 'registerNo'> }
    | undefined;
  readonly offset: number;
}

export interface Search {
  readonly set: EntitySet;
  readonly filter: Typed | undefined;
  readonly orderings: readonly TypedOrdering[];
  readonly start: Start;
  readonly limit: number;
  readonly count: boolean;
  /** Only transactions sent or received by this address; for filters that name neither sender nor blueprint. */
  readonly wallet?: string;
}

export interface Found {
  readonly rows: readonly Row[];
  /** start of the next page; undefined at the end */
  readonly next: Start | undefined;
  readonly count: Count | undefined;
}

interface Count {
  readonly total: number;
  /** false: the number is a lower bound */
  readonly exact: boolean;
}

export type SearchDeps = Pick<Database<RegisterSchema>, 'transact'>;
type Db = Reader<RegisterSchema>;

function planOf({ filter, wallet }: Search): Plan {
  const plan = planFilter(filter);
  return wallet === undefined ? plan : { ...plan, indexCondition: { by: 'wallet', address: wallet } };
}

/** The scan order that satisfies an `$orderby`; undefined: rows must be sorted. */
function scanFor(
  orderings: readonly TypedOrdering[],
  set: Scan['set'],
  registers: number,
): Pick<Scan, 'by' | 'direction'> | undefined {
  const [first, second, ...more] = orderings;
  if (first === undefined) return { by: 'location', direction: 'desc' };
  const column = (one: TypedOrdering | undefined) =>
    one?.by.kind === 'property' ? one.by.property.column : undefined;
  const { direction } = first;
  if (registers > 1 || more.length > 0) return undefined;
  if (second === undefined && set === 'Transactions' && column(first) === 'created_at')
    return { by: 'time', direction };
  const steps = column(second) === 'position' && second?.direction === direction;
  return column(first) === 'docket_number' && (second === undefined || steps)
    ? { by: 'location', direction }
    : undefined;
}

/** A scan by time cannot use another index. */
function narrow(plan: Plan, by: Scan['by']): Plan {
  return by === 'location'
    ? plan
    : {
        ...plan,
        indexCondition: undefined,
        fromDocket: undefined,
        toDocket: undefined,
        rest: plan.unindexed,
      };
}

async function countMatches(db: Db, scan: Scan, plan: Plan): Promise<Count> {
  const { indexCondition, fromDocket, toDocket, rest } = plan;
  const numbers = scan.registers.map(({ registerNo }) => registerNo);
  if (rest.length === 0 && fromDocket === undefined && toDocket === undefined) {
    if (indexCondition === undefined) return { total: await countAll(db, scan.set, numbers), exact: true };
    if (indexCondition.by !== 'txId')
      return { total: await countByIndex(db, numbers, indexCondition), exact: true };
  }
  const whole = { ...scan, after: undefined };
  const { examined, matching } = await examine(db, whole, translateAll(rest), mostExamined + 1);
  return { total: Math.min(matching, mostExamined), exact: examined <= mostExamined };
}

const startOf = (registers: readonly VisibleRegister[], location: ScanLocation, offset: number): Start => ({
  after: {
    registerId: registers.find(({ registerNo }) => registerNo === location.registerNo)?.registerId ?? '',
    location,
  },
  offset,
});

/** A page in scan order: the next one begins after the last row that was read, whether it matched or not. */
async function pageAlong(db: Db, scan: Scan, plan: Plan, search: Search): Promise<Omit<Found, 'count'>> {
  const { start, limit } = search;
  const where = translateAll(plan.rest);
  const needed = start.offset + limit + 1;
  const examined = plan.rest.length === 0 ? needed : mostExamined;
  const found = await listAlong(db, scan, { where, examined, offset: start.offset, limit: limit + 1 });
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  if (found.length > limit && last !== undefined)
    return { rows, next: startOf(scan.registers, locationOf(last), 0) };
  if (plan.rest.length === 0) return { rows, next: undefined };
  const read = await examine(db, scan, where, mostExamined);
  if (read.last === undefined) return { rows, next: undefined };
  return { rows, next: startOf(scan.registers, read.last, Math.max(0, start.offset - read.matching)) };
}

/** A page in another order: all matches are sorted, so the scan must end within the bound. */
async function pageSorted(db: Db, scan: Scan, plan: Plan, search: Search): Promise<Omit<Found, 'count'>> {
  const where = translateAll(plan.rest);
  const { start, limit } = search;
  const { examined } = await examine(db, scan, where, mostExamined + 1);
  if (examined > mostExamined) {
    throw refusal('QUERY_TOO_BROAD', {
      message: `More than ${mostExamined} rows would have to be sorted; name one register, a sender or a range of dockets.`,
    });
  }
  const rows = await listSorted(db, scan, {
    where,
    examined: mostExamined,
    orderings: translateOrderings(search.orderings),
    offset: start.offset,
    limit: limit + 1,
  });
  const next = rows.length > limit ? { after: undefined, offset: start.offset + limit } : undefined;
  return { rows: rows.slice(0, limit), next };
}

async function searchRegisters(db: Db, scope: Scope, search: Search): Promise<Found> {
  const { filter, orderings, start, limit } = search;
  const where = translateAll(filter === undefined ? [] : [filter]);
  const upTo = start.after?.registerId;
  const [after] =
    upTo === undefined ? [] : await visibleRegisters(db, scope, { registerIds: [upTo], limit: 1 });
  const window = { after: after?.registerNo, offset: start.offset, limit: limit + 1 };
  const found = await listRegisterRows(db, scope, {
    where,
    orderings: translateOrderings(orderings),
    ...window,
  });
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  const location = { docketNumber: 0, position: 0, micros: '0' };
  const following = (row: Row): Start =>
    orderings.length === 0
      ? { after: { registerId: String(row['register_id']), location }, offset: 0 }
      : { after: undefined, offset: start.offset + limit };
  const count = search.count ? await countRegisterRows(db, scope, where) : undefined;
  return {
    rows,
    next: found.length > limit && last !== undefined ? following(last) : undefined,
    count: count === undefined ? undefined : { total: count, exact: true },
  };
}

/** Searches sealed history of the given readable registers, newest first. */
async function searchAmong(
  db: Db,
  readable: readonly VisibleRegister[],
  plan: Plan,
  search: Search,
): Promise<Found> {
  const { orderings, start } = search;
  const set = search.set.name === 'Dockets' ? 'Dockets' : 'Transactions';
  const { registerIds } = plan;
  const all = readable.filter(({ registerId }) => registerIds?.includes(registerId) ?? true);
  const from = all.findIndex(({ registerId }) => registerId === start.after?.registerId);
  const order = scanFor(orderings, set, all.length);
  const { by, direction } = order ?? { by: 'location', direction: 'desc' };
  const narrowed = narrow(plan, by);
  const { indexCondition, fromDocket, toDocket } = narrowed;
  const common = { set, by, direction, indexCondition, fromDocket, toDocket } as const;
  const begin = all[from];
  const scan: Scan = {
    ...common,
    registers: begin === undefined ? all : all.slice(from),
    after: begin && start.after && { registerNo: begin.registerNo, ...start.after.location },
  };
  const page = await (order === undefined ? pageSorted : pageAlong)(db, scan, narrowed, search);
  const count = search.count
    ? await countMatches(db, { ...common, registers: all, after: undefined }, narrowed)
    : undefined;
  return { ...page, count };
}

/**
 * Registers that a scope sees, of these ids or all, up to the limit of one request.
 * @throws AppError invalid QUERY_TOO_BROAD
 */
export async function readableRegisters(
  db: Db,
  scope: Scope,
  registerIds: readonly string[] | undefined,
): Promise<readonly VisibleRegister[]> {
  const readable = await visibleRegisters(db, scope, { registerIds, limit: mostExamined + 1 });
  if (readable.length > mostExamined) {
    throw refusal('QUERY_TOO_BROAD', { message: 'You see too many registers; name some with registerId.' });
  }
  return readable;
}

async function searchLedger(db: Db, scope: Scope, search: Search): Promise<Found> {
  const plan = planOf(search);
  return searchAmong(db, await readableRegisters(db, scope, plan.registerIds), plan, search);
}

/** As `search`, in one register whose visibility was checked. */
export function searchRegister(
  database: SearchDeps,
  register: VisibleRegister,
  query: Search,
): Promise<Found> {
  return withinTime(database, (db) => searchAmong(db, [register], planOf(query), query));
}

/**
 * Finds rows of an entity set in the registers that the scope sees. However large the ledger is, no request reads more
 * than `mostExamined` rows: a page may be short and still have a next one.
 *
 * @throws AppError invalid QUERY_TOO_BROAD, timeout QUERY_TIMEOUT
 */
export function search(database: SearchDeps, scope: Scope, query: Search): Promise<Found> {
  return withinTime(database, (db) =>
    query.set.name === 'Registers' ? searchRegisters(db, scope, query) : searchLedger(db, scope, query),
  );
}
