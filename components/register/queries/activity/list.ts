import { z } from 'zod';
import type { Caller } from '#core/identity/claims.ts';
import type { Database, Reader } from '#kit/db/db.ts';
import { type AnswerHeaders, answer, page, paging, type ReadonlyDeep } from '#kit/http/http.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { itemsOfRows } from '../../ledger/sealed/store.ts';
import { presentItem } from '../../ledger/transactions/present.ts';
import { getVisibleRegister, scopeOf } from '../../registers/state/access.ts';
import type { Register } from '../../registers/state/store.ts';
import { ENTITY_SETS } from '../language/model.ts';
import type { Typed } from '../language/typed.ts';
import type { Freshness } from '../projection/freshness.ts';
import { parseStart, printStart } from '../scan/options.ts';
import { mostExamined, readableRegisters, type Search, search, searchRegister } from '../scan/search.ts';
import { listedRowOf } from '../scan/store.ts';
import { allOf } from '../scan/terms.ts';
import type { transactionsPageSchema } from './schemas.ts';
import { titlesOf } from './store.ts';

interface ListDeps {
  readonly database: Pick<Database<RegisterSchema>, 'transact'>;
  readonly db: Reader<RegisterSchema>;
  readonly freshness: Freshness;
}

/** Who asks, with the headers of the request. */
export interface Asking {
  readonly caller: Caller;
  readonly headers: Readonly<Record<string, unknown>>;
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

/** Waits for the index rows of one register or of all that the caller sees. */
async function settled(
  { freshness }: Pick<ListDeps, 'freshness'>,
  one: Register | undefined,
  { caller, headers }: Asking,
): Promise<AnswerHeaders> {
  if (one !== undefined) return freshness.settle(one, headers);
  await freshness.settleAll(scopeOf(caller));
  return {};
}

/** A page of transactions of one register, or of all that the caller sees, each with its register. */
export async function listPage(deps: ListDeps, asking: Asking, query: ListQuery, pageQuery: PageQuery) {
  const { caller } = asking;
  const request = searchFor(query, pageQuery);
  const one =
    query.registerId === undefined ? undefined : await getVisibleRegister(deps.db, caller, query.registerId);
  const headers = await settled(deps, one, asking);
  const found =
    one === undefined
      ? await search(deps.database, scopeOf(caller), request)
      : await searchRegister(deps.database, one, request);
  const transactions = (await itemsOfRows(deps.db, found.rows.map(listedRowOf))).map(presentItem);
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
  const body = {
    ...page(items, query, count?.total ?? 0),
    ...(count?.exact === false && { totalCountIsLowerBound: true }),
    hasMore: next !== undefined,
    ...(next !== undefined && { next: printStart(next) }),
  };
  return answer(200, body, headers);
}

/** Registers that the caller's statistics cover. */
export async function registersFor(
  deps: Pick<ListDeps, 'db' | 'freshness'>,
  asking: Asking,
  id: string | undefined,
): Promise<{ readonly registers: readonly number[]; readonly headers: AnswerHeaders }> {
  const { caller } = asking;
  const one = id === undefined ? undefined : await getVisibleRegister(deps.db, caller, id);
  const headers = await settled(deps, one, asking);
  if (one !== undefined) return { registers: [one.registerNo], headers };
  const readable = await readableRegisters(deps.db, scopeOf(caller), undefined);
  return { registers: readable.map(({ registerNo }) => registerNo), headers };
}
