import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { type App, addRoute, answer, decimal, json } from '#kit/http/http.ts';
import { storable } from '../../database/text.ts';
import { ofVisibleRegister, refusals } from '../../errors.ts';
import { visibleRegister } from '../../registers/state/access.ts';
import { asOfHeaders, freshnessHeaders } from '../projection/freshness.ts';
import { withinTime } from '../scan/store.ts';
import { textTerm } from '../scan/terms.ts';
import { type GraphDeps, graphOf } from './graph.ts';
import { listPage, listQuery, registerId, registersFor } from './list.ts';
import { graphSchema, statisticsSchema, transactionsPageSchema } from './schemas.ts';
import { statisticsOf } from './store.ts';

export type QueriesDeps = GraphDeps;

const label = storable(256).min(1);
const common = {
  method: 'GET',
  tag: 'Queries',
  policy: 'RequireAuthenticated',
  rateLimit: 'Api',
} as const;

function mountLists(app: App, deps: QueriesDeps): void {
  const list = {
    ...common,
    headers: freshnessHeaders,
    answers: { 200: json('A page of transactions.', transactionsPageSchema, asOfHeaders) },
    refusals: [
      ...ofVisibleRegister,
      ...refusals('PAGE_TOO_DEEP', 'QUERY_INVALID', 'QUERY_TOO_BROAD', 'QUERY_TIMEOUT'),
    ],
  } as const;
  addRoute(app, {
    ...list,
    path: '/api/query/wallets/:address/transactions',
    operationId: 'listWalletTransactions',
    summary: 'What an address sent or received, newest first in each register',
    params: z.object({ address: label }),
    query: listQuery,
    handle: ({ caller, params, query, request }) =>
      listPage(deps, { caller, headers: request.headers }, query, { terms: [], wallet: params.address }),
  });
  addRoute(app, {
    ...list,
    path: '/api/query/senders/:address/transactions',
    operationId: 'listSenderTransactions',
    summary: 'What an address sent, newest first in each register',
    params: z.object({ address: label }),
    query: listQuery,
    handle: ({ caller, params, query, request }) => {
      const terms = [textTerm('senderAddress', 'eq', params.address)];
      return listPage(deps, { caller, headers: request.headers }, query, { terms });
    },
  });
  addRoute(app, {
    ...list,
    path: '/api/query/blueprints/:blueprintId/transactions',
    operationId: 'listBlueprintTransactions',
    summary: 'Transactions of a blueprint or of one of its instances, newest first in each register',
    params: z.object({ blueprintId: label }),
    query: listQuery.extend({ instanceId: label.optional() }),
    handle: ({ caller, params, query, request }) => {
      const { instanceId } = query;
      const terms = [
        textTerm('blueprintId', 'eq', params.blueprintId),
        ...(instanceId === undefined ? [] : [textTerm('instanceId', 'eq', instanceId)]),
      ];
      return listPage(deps, { caller, headers: request.headers }, query, { terms });
    },
  });
}

function mountStatistics(app: App, deps: QueriesDeps): void {
  addRoute(app, {
    ...common,
    path: '/api/query/stats',
    operationId: 'getTransactionStatistics',
    summary: 'Statistics of one register, or of all that you see',
    query: z.object({ registerId }),
    headers: freshnessHeaders,
    answers: { 200: json('The statistics.', statisticsSchema, asOfHeaders) },
    refusals: [...ofVisibleRegister, ...refusals('QUERY_TOO_BROAD', 'QUERY_TIMEOUT')],
    handle: async ({ caller, query, request }) => {
      const { registers, headers } = await registersFor(
        deps,
        { caller, headers: request.headers },
        query.registerId,
      );
      const found = await withinTime(deps.database, (db) => statisticsOf(db, registers));
      const { transactions = 0, senders = 0, recipients = 0, wallets = 0 } = found ?? {};
      const timeOf = (micros: number | null | undefined) =>
        micros === null || micros === undefined ? null : apiTimestamp(Math.floor(micros / 1_000));
      const body = {
        totalTransactions: transactions,
        uniqueWallets: wallets,
        uniqueSenders: senders,
        uniqueRecipients: recipients,
        totalPayloads: transactions,
        earliestTransaction: timeOf(found?.earliest),
        latestTransaction: timeOf(found?.latest),
        ...(found?.bounded === true && { uniqueCountsAreLowerBounds: true }),
      };
      return answer(200, body, headers);
    },
  });
}

function mountGraph(app: App, deps: QueriesDeps): void {
  addRoute(app, {
    ...common,
    path: '/api/registers/:registerId/transactions/graph',
    operationId: 'getTransactionGraph',
    summary: 'Transactions as nodes with their links, newest first',
    params: z.object({ registerId: z.string() }),
    query: z.object({
      limit: decimal({ min: 1, max: 1_000 }).default(200).describe('Nodes, 1 to 1000; 200 when absent.'),
      before: z.string().max(64).optional().describe('Cursor: the last transaction of the previous page.'),
    }),
    headers: freshnessHeaders,
    answers: { 200: json('Nodes and links.', graphSchema, asOfHeaders) },
    refusals: [...ofVisibleRegister, ...refusals('CURSOR_UNKNOWN', 'VALIDATOR_UNAVAILABLE', 'QUERY_TIMEOUT')],
    resource: visibleRegister(() => deps.db),
    handle: async ({ caller, resource: register, query, request: { headers } }) => {
      const found = await graphOf(deps, register, query, { caller, headers });
      return answer(200, found.body, found.headers);
    },
  });
}

/** Queries that complement the lists of one register (specification document 2, section 4). */
export function mountQueries(app: App, deps: QueriesDeps): void {
  mountLists(app, deps);
  mountStatistics(app, deps);
  mountGraph(app, deps);
}
