import type { Clock } from '#kit/clock/clock.ts';
import type { Reader } from '#kit/db/db.ts';
import type { PageQuery } from '#kit/http/http.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { ENTITY_SETS } from '../../queries/language/model.ts';
import type { Typed } from '../../queries/language/typed.ts';
import { readFilter } from '../../queries/scan/options.ts';
import { type SearchDeps, searchRegister } from '../../queries/scan/search.ts';
import { listedRowOf } from '../../queries/scan/store.ts';
import { allOf, textTerm, timeTerm } from '../../queries/scan/terms.ts';
import type { Register } from '../../registers/state/store.ts';
import type { Location } from '../sealed/rows/store.ts';
import {
  countFiltered,
  type Filter,
  findIdAt,
  findLocation,
  itemsOfRows,
  listFiltered,
  listFromOrdinal,
  senderCount,
} from '../sealed/store.ts';
import { presentItem } from './present.ts';
import { keyed, type ReadDeps } from './read.ts';

export interface ListQuery extends PageQuery {
  readonly senderAddress?: string | undefined;
  /** microseconds since the epoch, inclusive */
  readonly startTime?: number | undefined;
  /** microseconds since the epoch, exclusive */
  readonly endTime?: number | undefined;
  readonly before?: string | undefined;
  readonly $filter?: string | undefined;
}

export interface ListDeps extends Pick<ReadDeps, 'db' | 'segments'> {
  readonly database: SearchDeps;
  readonly clock: Clock;
}

interface TransactionPage {
  readonly items: ReturnType<typeof presentItem>[];
  readonly totalCount: number;
  /** false: the number is a lower bound */
  readonly exact: boolean;
  readonly hasMore: boolean;
  /** cursor of the next page of a filtered list */
  readonly next: string | undefined;
}

type Db = Reader<RegisterSchema>;

/** Maximum offset of a filtered page; the cursor reaches deeper ones. */
const maxDepth = 10_000;

/** Without a filter a page is a seek by ordinal, and the total is a counter. */
async function listAll(db: Db, register: Register, query: ListQuery): Promise<TransactionPage> {
  const totalCount = register.transactionCount;
  const skipped = (query.page - 1) * query.pageSize;
  const ordinal = totalCount - 1 - skipped;
  const rows = ordinal < 0 ? [] : await listFromOrdinal(db, register.registerNo, ordinal, query.pageSize);
  const hasMore = skipped + rows.length < totalCount;
  return { items: rows.map(presentItem), totalCount, exact: true, hasMore, next: undefined };
}

async function totalOf(db: Db, filter: Filter): Promise<{ totalCount: number; exact: boolean }> {
  const { senderAddress, fromMicros, untilMicros, registerNo } = filter;
  if (senderAddress !== undefined && fromMicros === undefined && untilMicros === undefined) {
    return { totalCount: await senderCount(db, registerNo, senderAddress), exact: true };
  }
  const counted = await countFiltered(db, filter, maxDepth + 1);
  return { totalCount: counted, exact: counted <= maxDepth };
}

/** The location of the transaction that `before` names. */
async function locationBefore(
  deps: ListDeps,
  register: Register,
  query: ListQuery,
): Promise<Location | undefined> {
  if (query.before === undefined) return undefined;
  const location = await findLocation(deps.db, keyed(deps, register), query.before.toLowerCase());
  if (location === undefined) throw refusal('TX_NOT_FOUND');
  return location;
}

/** The named filters as terms of a `$filter`. */
function namedTerms({ senderAddress, startTime, endTime }: ListQuery): Typed[] {
  return [
    ...(senderAddress === undefined ? [] : [textTerm('senderAddress', 'eq', senderAddress)]),
    ...(startTime === undefined ? [] : [timeTerm('ge', startTime)]),
    ...(endTime === undefined ? [] : [timeTerm('lt', endTime)]),
  ];
}

/**
 * Transactions that match a `$filter` and every other filter. A page reads a bounded number of rows, so it may be short
 * and still have a next one.
 */
async function listMatching(
  deps: ListDeps,
  register: Register,
  query: ListQuery & { readonly $filter: string },
): Promise<TransactionPage> {
  const set = ENTITY_SETS.Transactions;
  const typed = readFilter(set, query.$filter, deps.clock.nowMicros());
  const offset = (query.page - 1) * query.pageSize;
  if (offset > maxDepth) throw refusal('PAGE_TOO_DEEP');
  const location = await locationBefore(deps, register, query);
  const named = namedTerms(query);
  const terms = [...named, ...(typed.kind === 'all' ? typed.of : [typed])];
  const found = await searchRegister(deps.database, register, {
    set,
    filter: allOf(terms),
    orderings: [],
    start: {
      after: location && { registerId: register.registerId, location: { ...location, micros: '0' } },
      offset,
    },
    limit: query.pageSize,
    count: true,
  });
  const { rows, next, count } = found;
  if (rows.length === 0 && next !== undefined && next.offset > 0) throw refusal('PAGE_TOO_DEEP');
  const items = (await itemsOfRows(deps.db, rows.map(listedRowOf))).map(presentItem);
  const following = next?.after && (await findIdAt(deps.db, register.registerNo, next.after.location));
  return {
    items,
    totalCount: count?.total ?? 0,
    exact: count?.exact ?? false,
    hasMore: next !== undefined,
    next: following,
  };
}

/** Whether a list is the whole register. */
export function isUnfiltered({ senderAddress, startTime, endTime, before, $filter }: ListQuery): boolean {
  return [senderAddress, startTime, endTime, before, $filter].every((value) => value === undefined);
}

/** Sealed transactions of a register, newest first. */
export async function listTransactions(
  deps: ListDeps,
  register: Register,
  query: ListQuery,
): Promise<TransactionPage> {
  const { db } = deps;
  const { $filter } = query;
  if ($filter !== undefined) return listMatching(deps, register, { ...query, $filter });
  if (isUnfiltered(query)) return listAll(db, register, query);
  const offset = (query.page - 1) * query.pageSize;
  if (offset > maxDepth) throw refusal('PAGE_TOO_DEEP');
  const before = await locationBefore(deps, register, query);
  const filter: Filter = {
    registerNo: register.registerNo,
    senderAddress: query.senderAddress,
    fromMicros: query.startTime,
    untilMicros: query.endTime,
    before,
  };
  const rows = await listFiltered(db, filter, { offset, limit: query.pageSize + 1 });
  const items = rows.slice(0, query.pageSize).map(presentItem);
  const hasMore = rows.length > query.pageSize;
  return { items, ...(await totalOf(db, filter)), hasMore, next: hasMore ? items.at(-1)?.txId : undefined };
}
