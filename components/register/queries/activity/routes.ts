import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { type App, callerOf, decimal, jsonAnswer } from '#kit/http/http.ts';
import { storable } from '../../database/text.ts';
import { getVisibleRegister } from '../../registers/state/access.ts';
import { withinTime } from '../scan/store.ts';
import { textTerm } from '../scan/terms.ts';
import { type GraphDeps, graphOf } from './graph.ts';
import { listPage, listQuery, registerId, registersFor } from './list.ts';
import { statisticsOf } from './store.ts';

export type QueriesDeps = GraphDeps;

const tags = ['Queries'];
const label = storable(256).min(1);
const route = { config: { policy: 'RequireAuthenticated', rateLimit: 'Api' } } as const;

function mountLists(app: App, deps: QueriesDeps): void {
  app.get(
    '/api/query/wallets/:address/transactions',
    {
      ...route,
      schema: {
        operationId: 'listWalletTransactions',
        tags,
        summary: 'What an address sent or received, newest first in each register',
        params: z.object({ address: label }),
        querystring: listQuery,
        response: jsonAnswer('A page of transactions.'),
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
        operationId: 'listSenderTransactions',
        tags,
        summary: 'What an address sent, newest first in each register',
        params: z.object({ address: label }),
        querystring: listQuery,
        response: jsonAnswer('A page of transactions.'),
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
        operationId: 'listBlueprintTransactions',
        tags,
        summary: 'Transactions of a blueprint or of one of its instances, newest first in each register',
        params: z.object({ blueprintId: label }),
        querystring: listQuery.extend({ instanceId: label.optional() }),
        response: jsonAnswer('A page of transactions.'),
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

function mountStatistics(app: App, deps: QueriesDeps): void {
  app.get(
    '/api/query/stats',
    {
      ...route,
      schema: {
        operationId: 'getTransactionStatistics',
        tags,
        summary: 'Statistics of one register, or of all that you see',
        querystring: z.object({ registerId }),
        response: jsonAnswer('The statistics.'),
      },
    },
    async (request) => {
      const registers = await registersFor(deps, callerOf(request), request.query.registerId);
      const found = await withinTime(deps.database, (db) => statisticsOf(db, registers));
      const { transactions = 0, senders = 0, recipients = 0, wallets = 0 } = found ?? {};
      const timeOf = (micros: number | null | undefined) =>
        micros === null || micros === undefined ? null : apiTimestamp(Math.floor(micros / 1_000));
      return {
        totalTransactions: transactions,
        uniqueWallets: wallets,
        uniqueSenders: senders,
        uniqueRecipients: recipients,
        totalPayloads: transactions,
        earliestTransaction: timeOf(found?.earliest),
        latestTransaction: timeOf(found?.latest),
        ...(found?.bounded === true && { uniqueCountsAreLowerBounds: true }),
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
        operationId: 'getTransactionGraph',
        tags,
        summary: 'Transactions as nodes with their links, newest first',
        params: z.object({ registerId: z.string() }),
        querystring: z.object({
          limit: decimal({ min: 1, max: 1_000 }).default(200).describe('Nodes, 1 to 1000; 200 when absent.'),
          before: z
            .string()
            .max(64)
            .optional()
            .describe('Cursor: the last transaction of the previous page.'),
        }),
        response: jsonAnswer('Nodes and links.'),
      },
    },
    async (request) => {
      const register = await getVisibleRegister(deps.db, callerOf(request), request.params.registerId);
      return graphOf(deps, register, request.query);
    },
  );
}

/** Queries that complement the lists of one register (specification document 2, section 4). */
export function mountQueries(app: App, deps: QueriesDeps): void {
  mountLists(app, deps);
  mountStatistics(app, deps);
  mountGraph(app, deps);
}
