import { z } from 'zod';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { decide } from '#core/identity/policies.ts';
import { findDocketHash } from '#core/ledger/register-id.ts';
import type { Database } from '#kit/db/db.ts';
import {
  type App,
  addRoute,
  answer,
  decimal,
  json,
  page,
  pageSchema,
  pageWindow,
  paging,
} from '#kit/http/http.ts';
import type { Validators } from '../../clients/validators.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { ofInvalidDocket, ofVisibleRegister, ofWritableRegister, refusal, refusals } from '../../errors.ts';
import type { FindMembers } from '../../registers/directory/ask.ts';
import { anyRegister, getWritableRegister, visibleRegister } from '../../registers/state/access.ts';
import type { Register } from '../../registers/state/store.ts';
import { presentDocket } from '../dockets/present.ts';
import { docketSchema } from '../dockets/schemas.ts';
import { attestationsOf, findDocket, listDockets, type StoredDocket } from '../dockets/store.ts';
import { everyPosition, listOfDocket, transactionIdsOfDocket } from '../sealed/store.ts';
import { presentSealed } from '../transactions/present.ts';
import { transactionSchema } from '../transactions/schemas.ts';
import { violationsOf, type WriteDocket, type WriteResult } from '../writing/write.ts';
import { bundleOfBody, docketBody, docketExample } from './parse.ts';
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

async function present(
  deps: DocketsDeps,
  register: Register,
  dockets: readonly StoredDocket[],
): Promise<ReturnType<typeof presentDocket>[]> {
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

async function presentOne(deps: DocketsDeps, register: Register, docket: StoredDocket) {
  const { read } = deps.database;
  const votes = await attestationsOf(read, register.registerNo, [docket.docket_number]);
  return presentDocket(
    register.registerId,
    docket,
    votes.map((vote) => vote.attestation),
  );
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

const ofDocket = [...ofVisibleRegister, ...refusals('DOCKET_NOT_FOUND')];

const route = { tag: 'Dockets', policy: 'RequireAuthenticated' } as const;
const docketWithTransactions = docketSchema.extend({
  transactionIds: z.array(z.string()),
  transactions: z.array(transactionSchema).optional().describe('With include=transactions.'),
});
const docketTransaction = transactionSchema.extend({
  record: z.string().optional().describe('Base64 of the sealed record, with include=record.'),
});

function mountLists(app: App, deps: DocketsDeps): void {
  const lists = {
    ...route,
    method: 'GET',
    rateLimit: 'Api',
    resource: visibleRegister(() => deps.database.read),
  } as const;

  addRoute(app, {
    ...lists,
    path: '/api/registers/:registerId/dockets',
    operationId: 'listDockets',
    summary: 'Dockets, newest first',
    params: registerParams,
    query: listQuery,
    answers: { 200: json('A page of dockets.', pageSchema(docketSchema)) },
    refusals: ofVisibleRegister,
    handle: async ({ query, resource }) => {
      const { total, range } = rangeOf(resource, query);
      const { read } = deps.database;
      const dockets = total === 0 ? [] : await listDockets(read, resource.registerNo, range);
      return page(await present(deps, resource, dockets), query, total);
    },
  });

  addRoute(app, {
    ...lists,
    path: '/api/registers/:registerId/dockets/:docketId',
    operationId: 'getDocket',
    summary: 'One docket by number, hash or latest, with the ids of its transactions',
    params: docketParams,
    query: z.object({ include: z.enum(['transactions']).optional() }),
    answers: { 200: json('The docket.', docketWithTransactions) },
    refusals: ofDocket,
    handle: async ({ params, query, resource }) => {
      const { read } = deps.database;
      const docket = await getDocket(deps, resource, params.docketId);
      const { registerNo } = resource;
      const docketNumber = docket.docket_number;
      const presented = await presentOne(deps, resource, docket);
      const transactionIds = await transactionIdsOfDocket(read, { registerNo, docketNumber }, everyPosition);
      if (query.include === undefined) return { ...presented, transactionIds };
      const rows = await listOfDocket(read, { registerNo, docketNumber }, { offset: 0, limit: 10_000 });
      return { ...presented, transactionIds, transactions: rows.map(presentSealed) };
    },
  });

  addRoute(app, {
    ...lists,
    path: '/api/registers/:registerId/dockets/:docketId/transactions',
    operationId: 'listDocketTransactions',
    summary: 'Transactions of a docket in docket order',
    params: docketParams,
    query: paging({ maxSize: 1_000 }).extend({
      include: z.enum(['record']).optional().describe('record adds the base64 of each sealed record.'),
    }),
    answers: { 200: json('A page of transactions.', pageSchema(docketTransaction)) },
    refusals: ofDocket,
    handle: async ({ params, query, resource }) => {
      const docket = await getDocket(deps, resource, params.docketId);
      const at = { registerNo: resource.registerNo, docketNumber: docket.docket_number };
      const rows = await listOfDocket(deps.database.read, at, pageWindow(query));
      const items = rows.map((row) =>
        query.include === undefined
          ? presentSealed(row)
          : { ...presentSealed(row), record: encodeBase64(row.record) },
      );
      return page(items, query, docket.transaction_count);
    },
  });
}

function mountSeal(app: App, deps: DocketsDeps): void {
  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/registers/:registerId/dockets/seal',
    operationId: 'sealDocket',
    summary: 'Seal the pending transactions now',
    rateLimit: 'Strict',
    params: registerParams,
    body: {
      schema: z.object({ maxTransactions: z.int().min(1).max(10_000).optional() }).nullish(),
      example: { maxTransactions: 100 },
    },
    resource: async ({ caller, params }) => {
      assertMaySeal(deps, caller);
      return getWritableRegister(deps.database.read, caller, params.registerId);
    },
    answers: { 201: json('The docket that was sealed.', docketSchema) },
    refusals: [
      ...ofWritableRegister,
      ...refusals('NO_PENDING_TRANSACTIONS', 'QUORUM_UNAVAILABLE', 'CONSENSUS_TIMEOUT', 'DOCKET_NOT_FOUND'),
      ...refusals('VALIDATOR_UNAVAILABLE'),
    ],
    handle: async ({ body, resource }) => {
      const docketNumber = await seal(deps, resource, body?.maxTransactions ?? 0);
      return presentOne(deps, resource, await getDocket(deps, resource, String(docketNumber)));
    },
  });
}

function assertMaySeal({ sealAdministratorOnly }: DocketsDeps, caller: Caller): void {
  if (!sealAdministratorOnly || decide('RequireAdministrator', caller) === 'allow') return;
  throw new AppError('forbidden', 'FORBIDDEN', 'Sealing on demand needs the role Administrator.');
}

/** The answer to a write: 201 stored, 200 replayed, otherwise a refusal. */
function answerOf(result: WriteResult, docketNumber: number) {
  const { height } = result;
  const at = { docketId: String(docketNumber), docketNumber };
  switch (result.outcome) {
    case 'stored':
      return answer(201, { ...at, status: 'stored' as const, height });
    case 'replayed':
      return answer(200, { ...at, status: 'replayed' as const, height });
    case 'divergent':
      throw refusal('DOCKET_DIVERGENCE', { details: { height } });
    case 'out_of_order':
      throw refusal('DOCKET_OUT_OF_ORDER', { details: { expected: height } });
    case 'invalid': {
      const violations = violationsOf(result);
      const { code = 'UNPROCESSABLE', message = 'The docket is not valid.' } = violations[0] ?? {};
      throw new AppError('unprocessable', code, message, { violations });
    }
  }
}

const writtenSchema = z.object({
  docketId: z.string().describe('The docket number as text.'),
  docketNumber: z.int(),
  status: z.enum(['stored', 'replayed']),
  height: z.int().describe('Height of the register afterwards.'),
});

function mountWrite(app: App, deps: DocketsDeps): void {
  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/registers/:registerId/dockets',
    operationId: 'storeDocket',
    summary: 'Store a sealed docket after verifying all of it',
    policy: 'CanWriteDockets',
    rateLimit: 'none',
    params: registerParams,
    body: { schema: docketBody, example: docketExample },
    bodyLimitBytes: 32 * 1024 * 1024,
    resource: anyRegister(() => deps.database.read),
    answers: {
      200: json('The docket is stored already.', writtenSchema),
      201: json('The docket is stored.', writtenSchema),
    },
    refusals: [
      ...refusals('REGISTER_NOT_FOUND', 'REGISTER_HALTED', 'REGISTER_NOT_READY'),
      ...refusals('DOCKET_DIVERGENCE', 'DOCKET_OUT_OF_ORDER'),
      ...ofInvalidDocket,
    ],
    handle: async ({ body, resource }) => {
      const result = await deps.writeDocket(bundleOfBody(resource.registerId, body));
      return answerOf(result, body.docketNumber);
    },
  });
}

export function mountDockets(app: App, deps: DocketsDeps): void {
  mountLists(app, deps);
  mountSeal(app, deps);
  mountWrite(app, deps);
}
