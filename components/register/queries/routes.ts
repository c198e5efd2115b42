import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import type { Caller } from '#core/identity/claims.ts';
import { type App, callerOf, page, paging } from '#kit/http/http.ts';
import { refusal } from '../errors.ts';
import { ENTITY_SETS } from '../odata/model.ts';
import { parseStart, printStart } from '../odata/options.ts';
import { MOST_EXAMINED, type Search, search, searchRegister } from '../odata/search.ts';
import { sealedItemOf, visibleRegisters, withinTime } from '../odata/store.ts';
import { allOf, textTerm } from '../odata/terms.ts';
import type { Typed } from '../odata/typed.ts';
import { getVisibleRegister, scopeOf } from '../registers/access.ts';
import { presentItem } from '../transactions/present.ts';
import { type GraphDeps, graphOf } from './graph.ts';
import { MOST_ADDRESSES, statisticsOf, titlesOf } from './store.ts';

export type QueriesDeps = GraphDeps;

const tags = ['Queries'];
const label = z.string().min(1).max(256);
const registerId = z.string().optional().describe('One register; without it all that you see.');
const cursor = z.string().max(512).optional().describe('`next` of the page before.');
const listQuery = paging().extend({ registerId, cursor });
type ListQuery = z.output<typeof listQuery>;

const route = { config: { policy: 'RequireAuthenticated', rateLimit: 'Api' } } as const;

interface Wanted {
  readonly terms: readonly Typed[];
  readonly wallet?: string;
}

function searchFor(query: ListQuery, { terms, wallet }: Wanted): Search {
  const offset = (query.page - 1) * query.pageSize;
  if (offset > MOST_EXAMINED)
    throw refusal('PAGE_TOO_DEEP', { message: 'Pages go to 10000 items; go on with the cursor of "next".' });
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

/** A page of transactions of one register, or of all that the caller sees, each with its register (L-124). */
async function listPage(deps: QueriesDeps, caller: Caller, query: ListQuery, wanted: Wanted) {
  const asked = searchFor(query, wanted);
  const one =
    query.registerId === undefined ? undefined : await getVisibleRegister(deps.db, caller, query.registerId);
  const found =
    one === undefined
      ? await search(deps.database, scopeOf(caller), asked)
      : await searchRegister(deps.database, one, asked);
  const transactions = found.rows.map((row) => presentItem(sealedItemOf(row)));
  const ids = one === undefined ? [...new Set(transactions.map((each) => each.registerId))] : [];
  const titles = await titlesOf(deps.db, ids);
  const items =
    one !== undefined
      ? transactions
      : transactions.map((transaction) => {
          const { registerId: id } = transaction;
          return { transaction, registerId: id, registerName: titles.get(id) ?? '' };
        });
  const { next, count } = found;
  return {
    ...page<object>(items, query, count?.total ?? 0),
    ...(count?.exact === false && { totalCountIsLowerBound: true }),
    hasMore: next !== undefined,
    ...(next !== undefined && { next: printStart(next) }),
  };
}

function mountLists(app: App, deps: QueriesDeps): void {
  app.get(
    '/api/query/wallets/:address/transactions',
    {
      ...route,
      schema: {
        tags,
        summary: 'What an address sent or received, newest first in each register',
        params: z.object({ address: label }),
        querystring: listQuery,
      },
    },
    (request) =>
      listPage(deps, callerOf(request), request.query, { terms: [], wallet: request.params.address }),
  );
  app.get(
    '/api/query/senders/:address/transactions',
    {
      ...route,
      schema: {
        tags,
        summary: 'What an address sent, newest first in each register',
        params: z.object({ address: label }),
        querystring: listQuery,
      },
    },
    (request) => {
      const terms = [textTerm('senderAddress', 'eq', request.params.address)];
      return listPage(deps, callerOf(request), request.query, { terms });
    },
  );
  app.get(
    '/api/query/blueprints/:blueprintId/transactions',
    {
      ...route,
      schema: {
        tags,
        summary: 'Transactions of a blueprint or of one of its instances, newest first in each register',
        params: z.object({ blueprintId: label }),
        querystring: listQuery.extend({ instanceId: label.optional() }),
      },
    },
    (request) => {
      const { instanceId } = request.query;
      const terms = [
        textTerm('blueprintId', 'eq', request.params.blueprintId),
        ...(instanceId === undefined ? [] : [textTerm('instanceId', 'eq', instanceId)]),
      ];
      return listPage(deps, callerOf(request), request.query, { terms });
    },
  );
}

/** Registers that a caller's statistics are about. */
async function registersFor(deps: QueriesDeps, caller: Caller, id: string | undefined): Promise<number[]> {
  if (id !== undefined) return [(await getVisibleRegister(deps.db, caller, id)).registerNo];
  const limit = MOST_EXAMINED + 1;
  const seen = await visibleRegisters(deps.db, scopeOf(caller), { registerIds: undefined, limit });
  if (seen.length > MOST_EXAMINED)
    throw refusal('QUERY_TOO_BROAD', { message: 'You see too many registers; name one with registerId.' });
  return seen.map(({ registerNo }) => registerNo);
}

function mountStatistics(app: App, deps: QueriesDeps): void {
  app.get(
    '/api/query/stats',
    {
      ...route,
      schema: {
        tags,
        summary: 'Statistics of one register, or of all that you see',
        querystring: z.object({ registerId }),
      },
    },
    async (request) => {
      const registers = await registersFor(deps, callerOf(request), request.query.registerId);
      const found = await withinTime(deps.database, (db) => statisticsOf(db, registers));
      const { transactions = 0, senders = 0, recipients = 0, wallets = 0 } = found ?? {};
      const timeOf = (micros: number | null | undefined) =>
        micros === null || micros === undefined ? null : apiTimestamp(Math.floor(micros / 1_000));
      const bounded = senders > MOST_ADDRESSES || recipients > MOST_ADDRESSES;
      return {
        totalTransactions: transactions,
        uniqueWallets: wallets,
        uniqueSenders: senders,
        uniqueRecipients: recipients,
        totalPayloads: transactions,
        earliestTransaction: timeOf(found?.earliest),
        latestTransaction: timeOf(found?.latest),
        ...(bounded && { uniqueCountsAreLowerBounds: true }),
      };
    },
  );
}

function mountGraph(app: App, deps: QueriesDeps): void {
  app.get(
    '/api/registers/:registerId/transactions/graph',
    {
      ...route,
      schema: {
        tags,
        summary: 'Transactions as nodes with their links, newest first',
        params: z.object({ registerId: z.string() }),
        querystring: z.object({
          limit: z.coerce.number().int().min(1).max(1_000).default(200),
          before: z.string().max(64).optional().describe('Cursor: the last transaction of the page before.'),
        }),
      },
    },
    async (request) => {
      const register = await getVisibleRegister(deps.db, callerOf(request), request.params.registerId);
      return graphOf(deps, register, request.query);
    },
  );
}

/** Questions to the ledger beside the lists of one register (document 2, section 4; notes/ledger.md L-124 and L-127). */
export function mountQueries(app: App, deps: QueriesDeps): void {
  mountLists(app, deps);
  mountStatistics(app, deps);
  mountGraph(app, deps);
}
