import { z } from 'zod';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { AppError } from '#core/errors/errors.ts';
import { decide } from '#core/identity/policies.ts';
import { findDocketHash } from '#core/ledger/register-id.ts';
import type { Database } from '#kit/db/db.ts';
import { type App, callerOf, decimal, jsonAnswer, page, paging } from '#kit/http/http.ts';
import type { Validators } from '../../clients/validators.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { FindMembers } from '../../registers/directory/ask.ts';
import { getRegister, getVisibleRegister, getWritableRegister } from '../../registers/state/access.ts';
import type { Register } from '../../registers/state/store.ts';
import { presentDocket } from '../dockets/present.ts';
import { attestationsOf, findDocket, listDockets, type StoredDocket } from '../dockets/store.ts';
import { listOfDocket, transactionIdsOfDocket } from '../sealed/store.ts';
import { presentSealed } from '../transactions/present.ts';
import { violationsOf, type WriteDocket, type WriteResult } from '../writing/write.ts';
import { bundleOfBody, docketBody } from './parse.ts';
import { seal } from './seal.ts';

export interface DocketsDeps {
  readonly database: Database<RegisterSchema>;
  readonly validators: Validators;
  readonly findMembers: FindMembers;
  readonly writeDocket: WriteDocket;
  readonly sealAdministratorOnly: boolean;
}

const registerParams = z.object({ registerId: z.string() });
const docketParams = z.object({ registerId: z.string(), docketId: z.string() });
const tags = ['Dockets'];

const listQuery = paging().extend({
  from: decimal().optional().describe('First docket number.'),
  to: decimal().optional().describe('Last docket number, inclusive.'),
  order: z.enum(['asc', 'desc']).default('desc'),
});

/** A docket's number, its hash, or `latest`. */
function docketKeyOf(text: string): Parameters<typeof findDocket>[2] {
  if (text === 'latest') return text;
  if (/^(0|[1-9]\d{0,15})$/.test(text) && Number.isSafeInteger(Number(text)))
    return { docketNumber: Number(text) };
  const hash = findDocketHash(text);
  if (hash === undefined) throw refusal('DOCKET_NOT_FOUND');
  return { hash };
}

async function getDocket(deps: DocketsDeps, register: Register, docketId: string): Promise<StoredDocket> {
  const docket = await findDocket(deps.database.read, register.registerNo, docketKeyOf(docketId));
  if (docket === undefined) throw refusal('DOCKET_NOT_FOUND');
  return docket;
}

async function present(deps: DocketsDeps, register: Register, dockets: readonly StoredDocket[]) {
  const numbers = dockets.map((docket) => docket.docket_number);
  const votes = await attestationsOf(deps.database.read, register.registerNo, numbers);
  return dockets.map((docket) => {
    const own = votes.filter((vote) => vote.docketNumber === docket.docket_number);
    return presentDocket(
      register.registerId,
      docket,
      own.map((vote) => vote.attestation),
    );
  });
}

/** Dockets are numbered without gaps, so a page is a range of numbers. */
function rangeOf(register: Register, query: z.output<typeof listQuery>) {
  const first = query.from ?? 0;
  const last = Math.min(query.to ?? register.height - 1, register.height - 1);
  const total = Math.max(0, last - first + 1);
  const skipped = (query.page - 1) * query.pageSize;
  const { order, pageSize: limit } = query;
  return order === 'asc'
    ? { total, range: { from: first + skipped, to: last, order, limit } }
    : { total, range: { from: first, to: last - skipped, order, limit } };
}

function mountLists(app: App, deps: DocketsDeps): void {
  app.get(
    '/api/registers/:registerId/dockets',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'listDockets',
        tags,
        summary: 'Dockets, newest first',
        params: registerParams,
        querystring: listQuery,
        response: jsonAnswer('A page of dockets.'),
      },
    },
    async (request) => {
      const { read } = deps.database;
      const register = await getVisibleRegister(read, callerOf(request), request.params.registerId);
      const { total, range } = rangeOf(register, request.query);
      const dockets = total === 0 ? [] : await listDockets(read, register.registerNo, range);
      return page(await present(deps, register, dockets), request.query, total);
    },
  );
  app.get(
    '/api/registers/:registerId/dockets/:docketId',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'getDocket',
        tags,
        summary: 'One docket by number, hash or latest, with the ids of its transactions',
        params: docketParams,
        querystring: z.object({ include: z.enum(['transactions']).optional() }),
        response: jsonAnswer('The docket.'),
      },
    },
    async (request) => {
      const { read } = deps.database;
      const register = await getVisibleRegister(read, callerOf(request), request.params.registerId);
      const docket = await getDocket(deps, register, request.params.docketId);
      const { registerNo } = register;
      const docketNumber = docket.docket_number;
      const [presented] = await present(deps, register, [docket]);
      const transactionIds = await transactionIdsOfDocket(read, registerNo, docketNumber);
      if (request.query.include === undefined) return { ...presented, transactionIds };
      const rows = await listOfDocket(read, { registerNo, docketNumber }, { offset: 0, limit: 10_000 });
      return { ...presented, transactionIds, transactions: rows.map(presentSealed) };
    },
  );
  app.get(
    '/api/registers/:registerId/dockets/:docketId/transactions',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'listDocketTransactions',
        tags,
        summary: 'Transactions of a docket in docket order',
        params: docketParams,
        querystring: paging({ maxSize: 1_000 }).extend({
          include: z.enum(['record']).optional().describe('record adds the base64 of each sealed record.'),
        }),
        response: jsonAnswer('A page of transactions.'),
      },
    },
    async (request) => {
      const { query, params } = request;
      const { read } = deps.database;
      const register = await getVisibleRegister(read, callerOf(request), params.registerId);
      const docket = await getDocket(deps, register, params.docketId);
      const at = { registerNo: register.registerNo, docketNumber: docket.docket_number };
      const window = { offset: (query.page - 1) * query.pageSize, limit: query.pageSize };
      const rows = await listOfDocket(read, at, window);
      const items = rows.map((row) =>
        query.include === undefined
          ? presentSealed(row)
          : { ...presentSealed(row), record: encodeBase64(row.record) },
      );
      return page(items, query, docket.transaction_count);
    },
  );
}

function mountSeal(app: App, deps: DocketsDeps): void {
  app.post(
    '/api/registers/:registerId/dockets/seal',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
      schema: {
        operationId: 'sealDocket',
        tags,
        summary: 'Seal the pending transactions now',
        params: registerParams,
        body: z.object({ maxTransactions: z.int().min(1).max(10_000).optional() }).nullish(),
        response: jsonAnswer('The docket that was sealed.', 201),
      },
    },
    async (request, reply) => {
      const caller = callerOf(request);
      if (deps.sealAdministratorOnly && decide('RequireAdministrator', caller) !== 'allow') {
        throw new AppError('forbidden', 'FORBIDDEN', 'Sealing on demand needs the role Administrator.');
      }
      const register = await getWritableRegister(deps.database.read, caller, request.params.registerId);
      const docketNumber = await seal(deps, register, request.body?.maxTransactions ?? 0);
      const docket = await getDocket(deps, register, String(docketNumber));
      const [presented] = await present(deps, register, [docket]);
      return reply.code(201).send(presented);
    },
  );
}

/** The answer to a write: 201 stored, 200 replayed, otherwise a refusal. */
function answerOf(result: WriteResult, docketNumber: number): { status: 200 | 201; body: unknown } {
  const { height } = result;
  switch (result.outcome) {
    case 'stored':
      return {
        status: 201,
        body: { docketId: String(docketNumber), docketNumber, status: 'stored', height },
      };
    case 'replayed':
      return {
        status: 200,
        body: { docketId: String(docketNumber), docketNumber, status: 'replayed', height },
      };
    case 'divergent':
      throw refusal('DOCKET_DIVERGENCE', { details: { height } });
    case 'out_of_order':
      throw refusal('DOCKET_OUT_OF_ORDER', { details: { expected: height } });
    case 'invalid': {
      const violations = violationsOf(result);
      const [first] = violations;
      throw new AppError(
        'unprocessable',
        first?.code ?? 'UNPROCESSABLE',
        first?.message ?? 'The docket is not valid.',
        {
          violations,
        },
      );
    }
  }
}

function mountWrite(app: App, deps: DocketsDeps): void {
  app.post(
    '/api/registers/:registerId/dockets',
    {
      bodyLimit: 32 * 1024 * 1024,
      config: { policy: 'CanWriteDockets' },
      schema: {
        operationId: 'storeDocket',
        tags,
        summary: 'Store a sealed docket after verifying all of it',
        params: registerParams,
        body: docketBody,
        response: {
          ...jsonAnswer('The docket is stored already.'),
          ...jsonAnswer('The docket is stored.', 201),
        },
      },
    },
    async (request, reply) => {
      const register = await getRegister(deps.database.read, request.params.registerId);
      const result = await deps.writeDocket(bundleOfBody(register.registerId, request.body));
      const answer = answerOf(result, request.body.docketNumber);
      return reply.code(answer.status).send(answer.body);
    },
  );
}

export function mountDockets(app: App, deps: DocketsDeps): void {
  mountLists(app, deps);
  mountSeal(app, deps);
  mountWrite(app, deps);
}
