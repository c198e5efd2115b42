import { z } from 'zod';
import { isWalletAddress } from '#core/crypto/address.ts';
import { apiTimestamp, findTimestamp, ticksToMicros } from '#core/encoding/timestamp.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import {
  type App,
  callerOf,
  decimal,
  idempotencyHeaders,
  jsonAnswer,
  page,
  pageWindow,
  paging,
} from '#kit/http/http.ts';
import { bearerOf } from '../../bearer.ts';
import { refusal } from '../../errors.ts';
import { sendAnswer } from '../../governance/control/answer.ts';
import { getVisibleRegister, getWritableRegister } from '../../registers/state/access.ts';
import type { Register } from '../../registers/state/store.ts';
import { findSealed } from '../sealed/store.ts';
import type { Confirmations } from './confirmations.ts';
import { type ListDeps, type ListQuery, listTransactions } from './list.ts';
import { presentSealed, presentUnsealed } from './present.ts';
import { getSealed, getTransaction, keyed, listPending, type ReadDeps, txIdOf } from './read.ts';
import { type SubmitDeps, type SubmitRequest, submit } from './submit.ts';

export interface TransactionsDeps extends ReadDeps, SubmitDeps, ListDeps {
  readonly idempotency: Idempotency;
  readonly confirmations: Confirmations;
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

const acceptedBody = z.object({ txId: z.string() });

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
const tags = ['Transactions'];

/** A larger body is not a transaction; between the limit of a record and this limit the answer can say so. */
const bodyLimitBytes = 4 * 1024 * 1024;

interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly retryAfterSeconds?: number;
}

async function accept(
  deps: TransactionsDeps,
  register: Register,
  request: { readonly body: SubmitRequest; readonly token: string },
): Promise<Answer> {
  const { txId, answer } = await submit(deps, register, request.body, request.token);
  if (answer.status >= 300) {
    const { status, body, retryAfterSeconds } = answer;
    return { status, body, ...(retryAfterSeconds > 0 && { retryAfterSeconds }) };
  }
  const timestamp = apiTimestamp(deps.clock.nowMs());
  return { status: 202, body: { transactionId: txId, txId, status: 'pending', timestamp } };
}

/** Waits for the docket that seals a transaction; undefined when the time is up. */
async function confirmed(deps: TransactionsDeps, register: Register, txId: string, timeoutMs: number) {
  const key = { registerId: register.registerId, txId };
  const find = () => findSealed(deps.db, keyed(deps, register), txId);
  return deps.confirmations.wait(key, { timeoutMs, find });
}

function mountSubmit(app: App, deps: TransactionsDeps): void {
  app.post(
    '/api/registers/:registerId/transactions',
    {
      bodyLimit: bodyLimitBytes,
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'submitTransaction',
        tags,
        summary: 'Submit a transaction, signed by the wallet service or by you',
        params: registerParams,
        querystring: submitQuery,
        body: submitBody,
        headers: idempotencyHeaders,
        response: {
          ...jsonAnswer('The transaction is sealed (with wait=confirmed).'),
          ...jsonAnswer('The transaction is pending.', 202),
        },
      },
    },
    async (request, reply) => {
      const caller = callerOf(request);
      const { body, query } = request;
      const register = await getWritableRegister(deps.db, caller, request.params.registerId);
      const token = bearerOf(request);
      const key = request.headers['idempotency-key'];
      const scope = [`transactions:${register.registerId}:${caller.subject}`];
      const answer = await deps.idempotency.once(
        { key, scope, body },
        () => accept(deps, register, { body, token }),
        ({ status }) => status < 300,
      );
      if (answer.status >= 300) return sendAnswer(reply, answer);
      const { txId } = acceptedBody.parse(answer.body);
      const row =
        query.wait === undefined ? undefined : await confirmed(deps, register, txId, query.timeout * 1000);
      return row === undefined
        ? reply.code(answer.status).send(answer.body)
        : reply.code(200).send(presentSealed(row));
    },
  );
}

function pageOf(query: ListQuery, found: Awaited<ReturnType<typeof listTransactions>>) {
  return {
    ...page(found.items, query, found.totalCount),
    ...(!found.exact && { totalCountIsLowerBound: true }),
    hasMore: found.hasMore,
    ...(found.next !== undefined && { next: found.next }),
  };
}

export function mountTransactions(app: App, deps: TransactionsDeps): void {
  mountSubmit(app, deps);
  app.get(
    '/api/registers/:registerId/transactions',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'listTransactions',
        tags,
        summary: 'Sealed transactions, newest first, or pending ones, oldest first',
        params: registerParams,
        querystring: listQuery,
        response: jsonAnswer('A page of transactions.'),
      },
    },
    async (request) => {
      const register = await getVisibleRegister(deps.db, callerOf(request), request.params.registerId);
      const { query } = request;
      if (query.status === 'confirmed') return pageOf(query, await listTransactions(deps, register, query));
      if (query.$filter !== undefined)
        throw refusal('QUERY_NOT_SUPPORTED', { message: '$filter is for confirmed transactions.' });
      const waiting = await listPending(deps, register);
      const { offset, limit } = pageWindow(query);
      const items = waiting.slice(offset, offset + limit);
      return page(
        items.map((one) => presentUnsealed(register.registerId, one)),
        query,
        waiting.length,
      );
    },
  );
  app.get(
    '/api/registers/:registerId/transactions/:txId',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'getTransaction',
        tags,
        summary: 'One transaction, sealed or pending',
        params: transactionParams,
        response: jsonAnswer('The transaction.'),
      },
    },
    async (request) => {
      const register = await getVisibleRegister(deps.db, callerOf(request), request.params.registerId);
      const found = await getTransaction(deps, register, txIdOf(request.params.txId));
      return found.kind === 'sealed'
        ? presentSealed(found.row)
        : presentUnsealed(register.registerId, found.transaction);
    },
  );
  app.get(
    '/api/registers/:registerId/transactions/:txId/record',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'getTransactionRecord',
        tags,
        summary: 'The sealed record, exactly the hashed bytes',
        params: transactionParams,
        response: jsonAnswer('The record.'),
      },
    },
    async (request, reply) => {
      const register = await getVisibleRegister(deps.db, callerOf(request), request.params.registerId);
      const row = await getSealed(deps, register, txIdOf(request.params.txId));
      return reply.type('application/json').send(row.record);
    },
  );
}
