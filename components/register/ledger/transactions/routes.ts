import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { isWalletAddress } from '#core/crypto/address.ts';
import { apiTimestamp, findTimestamp, ticksToMicros } from '#core/encoding/timestamp.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import {
  type App,
  addRoute,
  answer,
  bearerOf,
  decimal,
  json,
  jsonText,
  page,
  pageWindow,
  paging,
} from '#kit/http/http.ts';
import { ofSubmission, ofVisibleRegister, ofWritableRegister, refusal, refusals } from '../../errors.ts';
import { assertAccepted } from '../../governance/control/answer.ts';
import { asOf, asOfHeaders, type Freshness, freshnessHeaders } from '../../queries/projection/freshness.ts';
import { getVisibleRegister, visibleRegister, writableRegister } from '../../registers/state/access.ts';
import type { Register } from '../../registers/state/store.ts';
import { findSealed } from '../sealed/store.ts';
import type { Confirmations } from './confirmations.ts';
import { isUnfiltered, type ListDeps, type ListQuery, listTransactions } from './list.ts';
import { presentSealed, presentUnsealed } from './present.ts';
import { getSealed, getTransaction, keyed, listPending, type ReadDeps, txIdOf } from './read.ts';
import {
  acceptedSchema,
  sealedRecordSchema,
  transactionPageSchema,
  transactionSchema,
  unsealedTransactionSchema,
} from './schemas.ts';
import { type SubmitDeps, submit } from './submit.ts';

export interface TransactionsDeps extends ReadDeps, SubmitDeps, ListDeps {
  readonly idempotency: Idempotency;
  readonly confirmations: Confirmations;
  readonly freshness: Freshness;
}

const address = z.string().refine(isWalletAddress, 'expected a wallet address');
const hash = z.string().regex(/^[0-9a-fA-F]{64}$/, 'expected 64 hex characters');

const submitBody = z.object({
  transactionType: z.string().min(1).max(64).default('Action'),
  senderAddress: z.string().min(1).max(128),
  payload: z.string().describe('Base64. JSON is submitted unchanged; other bytes are wrapped.'),
  metadata: z.record(z.string().min(1).max(128), z.string().max(4096)).default({}),
  recipients: z.array(address).max(256).optional(),
  previousTransactionId: hash.optional(),
  expiresAt: z.string().max(64).optional(),
  transactionId: hash.optional(),
  payloadHash: hash.optional(),
  createdAt: z.string().max(64).optional(),
  signatures: z
    .array(
      z.object({
        publicKey: z.string().min(1).max(1024),
        signatureValue: z.string().min(1).max(1024),
        algorithm: z.string().min(1).max(32),
      }),
    )
    .max(16)
    .optional()
    .describe('Ready-made signatures; without them the wallet service signs as senderAddress.'),
});

const submitQuery = z.object({
  wait: z.enum(['confirmed']).optional(),
  timeout: decimal({ max: 60 })
    .default(10)
    .describe('Whole seconds to wait for the confirmation; 10 when absent.'),
});

const instant = z.string().transform((text, context) => {
  const ticks = findTimestamp(text);
  if (ticks !== undefined) return Number(ticksToMicros(ticks));
  context.addIssue({ code: 'custom', message: 'expected an ISO 8601 timestamp with an offset' });
  return z.NEVER;
});

const listQuery = paging().extend({
  senderAddress: address.optional(),
  startTime: instant.optional().describe('Inclusive.'),
  endTime: instant.optional().describe('Exclusive.'),
  status: z.enum(['confirmed', 'pending']).default('confirmed').describe('pending queries the validators.'),
  $filter: z
    .string()
    .max(4096)
    .optional()
    .describe('OData over the properties of Transactions; confirmed only.'),
  before: hash
    .optional()
    .describe('Cursor: the last transaction of the previous page; the filters must be the same.'),
});

const registerParams = z.object({ registerId: z.string() });
const transactionParams = z.object({ registerId: z.string(), txId: z.string() });

/** A larger body is not a transaction; between the limit of a record and this limit the answer can say so. */
const bodyLimitBytes = 4 * 1024 * 1024;

const route = { tag: 'Transactions', policy: 'RequireAuthenticated', rateLimit: 'Api' } as const;

const submitExample = {
  senderAddress: 'w1quj8qvh6u2mlj6fnjx0953fsvlkhcepkg4j9d5f5zfvtnume7ap4q47gykc',
  payload: 'eyJpbnZvaWNlIjoiMjAyNi0wMTcifQ==',
  metadata: { blueprintId: 'invoices', actionId: '1' },
};

/** Waits for the docket that seals a transaction; undefined when the time is up. */
async function confirmed(deps: TransactionsDeps, register: Register, txId: string, timeoutMs: number) {
  const key = { registerId: register.registerId, txId };
  const find = () => findSealed(deps.db, keyed(deps, register), txId);
  return deps.confirmations.wait(key, { timeoutMs, find, fromStored: (row) => row });
}

function mountSubmit(app: App, deps: TransactionsDeps): void {
  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/registers/:registerId/transactions',
    operationId: 'submitTransaction',
    summary: 'Submit a transaction, signed by the wallet service or by you',
    params: registerParams,
    query: submitQuery,
    body: { schema: submitBody, example: submitExample },
    bodyLimitBytes,
    resource: writableRegister(() => deps.db),
    idempotency: deps.idempotency,
    answers: {
      200: json('The transaction is sealed (with wait=confirmed).', transactionSchema),
      202: json('The transaction is pending.', acceptedSchema),
    },
    refusals: [...ofWritableRegister, ...refusals('TRANSACTION_TOO_LARGE'), ...ofSubmission],
    handle: async ({ body, resource, request }) => {
      const { txId, answer: verdict } = await submit(deps, resource, body, bearerOf(request));
      assertAccepted(verdict);
      const timestamp = apiTimestamp(deps.clock.nowMs());
      return answer(202, { transactionId: txId, txId, status: 'pending' as const, timestamp });
    },
    finish: async (first, { query, resource }) => {
      const accepted = acceptedSchema.parse(first.body);
      if (query.wait === undefined) return answer(202, accepted);
      const row = await confirmed(deps, resource, accepted.txId, query.timeout * 1000);
      return row === undefined ? answer(202, accepted) : answer(200, presentSealed(row));
    },
  });
}

function pageOf(query: ListQuery, found: Awaited<ReturnType<typeof listTransactions>>) {
  return {
    ...page(found.items, query, found.totalCount),
    ...(!found.exact && { totalCountIsLowerBound: true }),
    hasMore: found.hasMore,
    ...(found.next !== undefined && { next: found.next }),
  };
}

/** The list without filters needs no index rows, and covers everything that is sealed. */
async function listConfirmed(
  deps: TransactionsDeps,
  register: Register,
  query: ListQuery,
  { caller, request: { headers } }: { readonly caller: Caller; readonly request: FastifyRequest },
) {
  const isWhole = isUnfiltered(query);
  const isAhead = Number(headers['x-min-docket'] ?? -1) >= register.height;
  const settled = isWhole && !isAhead ? {} : await deps.freshness.settle(register, headers);
  const current = isAhead ? await getVisibleRegister(deps.db, caller, register.registerId) : register;
  const found = await listTransactions(deps, current, query);
  return answer(200, pageOf(query, found), isWhole ? asOf(current.height) : settled);
}

function mountList(app: App, deps: TransactionsDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/registers/:registerId/transactions',
    operationId: 'listTransactions',
    summary: 'Sealed transactions, newest first, or pending ones, oldest first',
    params: registerParams,
    query: listQuery,
    headers: freshnessHeaders,
    resource: visibleRegister(() => deps.db),
    answers: { 200: json('A page of transactions.', transactionPageSchema, asOfHeaders) },
    refusals: [
      ...ofVisibleRegister,
      ...refusals('TX_NOT_FOUND', 'PAGE_TOO_DEEP', 'VALIDATOR_UNAVAILABLE'),
      ...refusals('QUERY_INVALID', 'QUERY_NOT_SUPPORTED', 'QUERY_TOO_BROAD', 'QUERY_TIMEOUT'),
    ],
    handle: async ({ caller, query, resource, request }) => {
      if (query.status === 'confirmed') return listConfirmed(deps, resource, query, { caller, request });
      if (query.$filter !== undefined)
        throw refusal('QUERY_NOT_SUPPORTED', { message: '$filter is for confirmed transactions.' });
      const waiting = await listPending(deps, resource);
      const { offset, limit } = pageWindow(query);
      const items = waiting.slice(offset, offset + limit);
      return page(
        items.map((one) => presentUnsealed(resource.registerId, one)),
        query,
        waiting.length,
      );
    },
  });
}

function mountOne(app: App, deps: TransactionsDeps): void {
  const one = {
    ...route,
    method: 'GET',
    params: transactionParams,
    resource: visibleRegister(() => deps.db),
  } as const;
  const unknown = [...ofVisibleRegister, ...refusals('TX_NOT_FOUND', 'VALIDATOR_UNAVAILABLE')];
  addRoute(app, {
    ...one,
    path: '/api/registers/:registerId/transactions/:txId',
    operationId: 'getTransaction',
    summary: 'One transaction, sealed or pending',
    answers: { 200: json('The transaction.', z.union([transactionSchema, unsealedTransactionSchema])) },
    refusals: unknown,
    handle: async ({ params, resource }) => {
      const found = await getTransaction(deps, resource, txIdOf(params.txId));
      return found.kind === 'sealed'
        ? presentSealed(found.row)
        : presentUnsealed(resource.registerId, found.transaction);
    },
  });

  addRoute(app, {
    ...one,
    path: '/api/registers/:registerId/transactions/:txId/record',
    operationId: 'getTransactionRecord',
    summary: 'The sealed record, exactly the hashed bytes',
    answers: { 200: json('The record.', sealedRecordSchema) },
    refusals: [...unknown, ...refusals('TX_NOT_SEALED')],
    handle: async ({ params, resource }) => {
      const row = await getSealed(deps, resource, txIdOf(params.txId));
      return answer(200, jsonText(row.record), { 'content-type': 'application/json' });
    },
  });
}

export function mountTransactions(app: App, deps: TransactionsDeps): void {
  mountSubmit(app, deps);
  mountList(app, deps);
  mountOne(app, deps);
}
