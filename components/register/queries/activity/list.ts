import { z } from 'zod';
import type { Caller } from '#core/identity/claims.ts';
import type { Database, Reader } from '#kit/db/db.ts';
import { page, paging, type ReadonlyDeep } from '#kit/http/http.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { presentItem } from '../../ledger/transactions/present.ts';
import { getVisibleRegister, scopeOf } from '../../registers/state/access.ts';
import { ENTITY_SETS } from '../language/model.ts';
import type { Typed } from '../language/typed.ts';
import { parseStart, printStart } from '../scan/options.ts';
import { mostExamined, readableRegisters, type Search, search, searchRegister } from '../scan/search.ts';
import { sealedItemOf } from '../scan/store.ts';
import { allOf } from '../scan/terms.ts';
import type { transactionsPageSchema } from './schemas.ts';
import { titlesOf } from './store.ts';

interface ListDeps {
  readonly database: Pick<Database<RegisterSchema>, 'transact'>;
  readonly db: Reader<RegisterSchema>;
}

export const registerId = z.string().optional().describe('One register; without it all that you see.');
const cursor = z.string().max(512).optional().describe('`next` of the previous page.');
export const listQuery = paging().extend({ registerId, cursor });
type ListQuery = z.output<typeof listQuery>;

type Items = ReadonlyDeep<z.output<typeof transactionsPageSchema>>['items'];

interface PageQuery {
  readonly terms: readonly Typed[];
  readonly wallet?: string;
}

function searchFor(query: ListQuery, { terms, wallet }: PageQuery): Search {
  const offset = (query.page - 1) * query.pageSize;
  if (offset > mostExamined)
    throw refusal('PAGE_TOO_DEEP', {
      message: 'Lists page to 10000 items; continue with the cursor of "next".',
    });
  return {
    set: ENTITY_SETS.Transactions,
    filter: allOf(terms),
    orderings: [],
    start: query.cursor === undefined ? { after: undefined, offset } : parseStart(query.cursor, 'cursor'),
    limit: query.pageSize,
    count: true,
    ...(wallet !== undefined && { wallet }),
  };
}

/** A page of transactions of one register, or of all that the caller sees, each with its register. */
export async function listPage(deps: ListDeps, caller: Caller, query: ListQuery, pageQuery: PageQuery) {
  const request = searchFor(query, pageQuery);
  const one =
    query.registerId === undefined ? undefined : await getVisibleRegister(deps.db, caller, query.registerId);
  const found =
    one === undefined
      ? await search(deps.database, scopeOf(caller), request)
      : await searchRegister(deps.database, one, request);
  const transactions = found.rows.map((row) => presentItem(sealedItemOf(row)));
  const ids = one === undefined ? [...new Set(transactions.map((each) => each.registerId))] : [];
  const titles = await titlesOf(deps.db, ids);
  const items: Items =
    one !== undefined
      ? transactions
      : transactions.map((transaction) => {
          const { registerId: id } = transaction;
          return { transaction, registerId: id, registerName: titles.get(id) ?? '' };
        });
  const { next, count } = found;
  return {
    ...page(items, query, count?.total ?? 0),
    ...(count?.exact === false && { totalCountIsLowerBound: true }),
    hasMore: next !== undefined,
    ...(next !== undefined && { next: printStart(next) }),
  };
}

/** Registers that the caller's statistics cover. */
export async function registersFor(
  { db }: Pick<ListDeps, 'db'>,
  caller: Caller,
  id: string | undefined,
): Promise<number[]> {
  if (id !== undefined) return [(await getVisibleRegister(db, caller, id)).registerNo];
  return (await readableRegisters(db, scopeOf(caller), undefined)).map(({ registerNo }) => registerNo);
}
