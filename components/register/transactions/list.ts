import type { Reader } from '#kit/db/db.ts';
import type { PageQuery } from '#kit/http/http.ts';
import type { RegisterSchema } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import type { Register } from '../registers/store.ts';
import { presentItem } from './present.ts';
import {
  countFiltered,
  type Filter,
  findPlace,
  listFiltered,
  listFromOrdinal,
  senderCount,
} from './store.ts';

export interface ListQuery extends PageQuery {
  readonly senderAddress?: string | undefined;
  /** microseconds since the epoch, inclusive */
  readonly startTime?: number | undefined;
  /** microseconds since the epoch, exclusive */
  readonly endTime?: number | undefined;
  readonly before?: string | undefined;
}

export interface TransactionPage {
  readonly items: ReturnType<typeof presentItem>[];
  readonly totalCount: number;
  /** false: there are at least that many */
  readonly exact: boolean;
  readonly hasMore: boolean;
  /** cursor of the next page of a filtered list */
  readonly next: string | undefined;
}

type Db = Reader<RegisterSchema>;

/** Filtered pages skip at most so many rows; what lies deeper is reached by the cursor. */
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

/** Sealed transactions of a register, newest first. */
export async function listTransactions(
  db: Db,
  register: Register,
  query: ListQuery,
): Promise<TransactionPage> {
  const filters = [query.senderAddress, query.startTime, query.endTime, query.before];
  if (filters.every((value) => value === undefined)) return listAll(db, register, query);
  const offset = (query.page - 1) * query.pageSize;
  if (offset > maxDepth) throw refusal('PAGE_TOO_DEEP');
  const before =
    query.before === undefined
      ? undefined
      : await findPlace(db, register.registerNo, query.before.toLowerCase());
  if (query.before !== undefined && before === undefined) throw refusal('TX_NOT_FOUND');
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
