import { z } from 'zod';
import type { Verifier } from '#core/crypto/verify.ts';
import { AppError, isAppError } from '#core/errors/errors.ts';
import type { LedgerRules } from '#core/ledger/governance/rules.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { VerifyItem } from '#kit/crypto/verify-pool.ts';
import { type App, callerOf, page, pageSchema, pageWindow, paging, problemSchema } from '#kit/http/http.ts';
import type { RegisterState } from '../../chain/state/state.ts';
import { answerHeaders } from '../../intake/admission/answer.ts';
import type { ReportClient } from '../reports/clients.ts';
import { answerSubmission, originOf, type SubmissionDeps } from '../submissions/answer-submission.ts';
import { assertMaySeal, type BuiltDocket, buildLocally, notSealedInTime, presentBuilt } from './build.ts';
import type { PreviewClient } from './clients.ts';
import { clockText, durationText } from './durations.ts';
import { isAcceptable, judgeSubmittedDocket } from './judge.ts';
import { callMember, type RegisterAccess, visibleRegister } from './register-access.ts';
import { rewrite } from './rewrite-submission.ts';
import { validateBody } from './submitted-docket.ts';
import { listWaiting, presentWaiting } from './waiting.ts';

export interface PreviewDeps extends RegisterAccess, SubmissionDeps {
  readonly peerClients: ReportClient & PreviewClient;
  readonly clock: Clock;
  readonly verifier: Verifier;
  verify(items: readonly VerifyItem[]): Promise<readonly boolean[]>;
  /** A register after its last docket; undefined when there is none. */
  findState(registerId: string): Promise<RegisterState | undefined>;
  findRules(registerId: string): Promise<LedgerRules | undefined>;
}

const text = z.string();
const count = z.int().min(0);
const optional = text.nullable();
const tags = ['Validation'];
const findingSchema = z.object({
  code: text,
  message: text,
  field: text.optional(),
  severity: z.enum(['Warning', 'Error', 'Critical']),
});
const docketSchema = z.object({
  docketId: text,
  registerId: text,
  docketNumber: count,
  hash: text,
  previousHash: text,
  merkleRoot: text,
  logRoot: text,
  transactionCount: count,
  timestamp: text,
  validatorAddress: text,
  transactionIds: z.array(text),
  isGenesis: z.boolean(),
  genesisConfig: text.optional(),
  state: z.enum(['Init', 'Sealed']),
  consensusState: z.enum(['Pending', 'Achieved']),
  validatorSetHash: text,
  sizeBytes: count,
});
const builtSchema = z.object({
  isSuccess: z.boolean().describe('false when no waiting transaction may be sealed'),
  docket: docketSchema.nullable(),
  metrics: z.object({
    transactionsProcessed: count,
    transactionsIncluded: count,
    transactionsRejected: count,
    buildDuration: text.describe('hh:mm:ss.fffffff'),
    docketSizeBytes: count,
  }),
});
const waitingSchema = z.object({
  transactionId: text,
  txId: text,
  registerId: text,
  transactionType: text,
  senderAddress: text,
  recipients: z.array(text),
  timestamp: text,
  docketId: text.nullable().describe('null until the transaction is sealed'),
  docketNumber: count.nullable().describe('null until the transaction is sealed'),
  status: z.literal('pending'),
  previousTransactionId: optional,
  blueprintId: optional,
  actionId: optional,
  payloadHash: text,
  payloadSize: count,
  metadata: z.record(text, text),
  addedAt: text,
  expiresAt: optional,
});
const addBody = z.object({
  transaction: z.object({
    txId: text,
    registerId: text,
    senderAddress: text,
    payload: z.unknown().describe('any JSON value'),
    payloadHash: text.optional().describe('hash of the canonical payload when absent'),
    timestamp: text,
    signature: z.object({ publicKey: text, signatureValue: text, algorithm: text }),
    previousTxId: text.optional(),
    blueprintId: text.optional(),
    actionId: text.optional(),
    expiresAt: text.optional(),
    metadata: z.record(text, text).optional(),
    recipients: z.array(text).optional(),
  }),
});
const addedSchema = z.object({
  accepted: z.literal(true),
  memPoolSize: count,
  estimatedInclusionTime: text.describe('hh:mm:ss'),
});

/** The specification's earlier validator routes, implemented on top of the current ones. */
export function mountPreview(app: App, deps: PreviewDeps): void {
  mountBuild(app, deps);
  mountValidate(app, deps);
  mountAdd(app, deps);
  mountWaiting(app, deps);
}

function mountBuild(app: App, deps: PreviewDeps): void {
  app.post(
    '/api/validation/dockets/build',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
      schema: {
        operationId: 'buildDocket',
        summary: 'Builds the docket that would be proposed now; with seal it is proposed',
        tags,
        body: z.strictObject({
          registerId: text,
          validatorWalletAddress: text.max(128).default(''),
          maxTransactions: z.int().min(1).max(10_000).optional(),
          seal: z
            .boolean()
            .default(false)
            .describe('requires the permission to manage registers; services have it'),
        }),
        response: {
          200: builtSchema,
          403: problemSchema,
          404: problemSchema,
          409: problemSchema,
          503: problemSchema,
          504: problemSchema,
        },
      },
    },
    async (request) => {
      const { validatorWalletAddress: validatorAddress, maxTransactions = 0, seal } = request.body;
      const caller = callerOf(request);
      const registerId = await visibleRegister(deps, caller, request.body.registerId);
      if (seal) assertMaySeal(caller);
      const order = { maxTransactions, validatorAddress, seal };
      const peerRequest = { registerId, ...order, subjectToken: tokenOf(request) };
      const built = await callMember(deps, registerId, {
        local: (register) => buildLocally(register, order, deps.clock),
        remote: (validatorId) => buildRemotely(deps, validatorId, peerRequest),
      });
      return presentBuilt(built);
    },
  );
}

/** A timeout may leave a docket in progress at that member, so sealing is not requested from another member too. */
async function buildRemotely(
  { peerClients }: Pick<PreviewDeps, 'peerClients'>,
  validatorId: string,
  request: Parameters<PreviewClient['buildDocket']>[1],
): Promise<BuiltDocket> {
  try {
    return await peerClients.buildDocket(validatorId, request);
  } catch (error) {
    throw request.seal && isAppError(error, 'timeout') ? notSealedInTime() : error;
  }
}

function mountValidate(app: App, deps: PreviewDeps): void {
  app.post(
    '/api/validation/dockets/validate',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
      schema: {
        operationId: 'validateDocket',
        summary: 'Validates a docket without storing it',
        tags,
        body: validateBody,
        response: {
          200: z.object({
            isValid: z.literal(true),
            errors: z.array(findingSchema).describe('warnings'),
            validationDuration: text,
          }),
          400: problemSchema,
          404: problemSchema,
          503: problemSchema,
        },
      },
    },
    async (request) => {
      const { docket, previousDocket: previous } = request.body;
      const since = deps.clock.nowMicros();
      const registerId = findRegisterId(docket.registerId);
      const isNamed = registerId !== undefined;
      if (isNamed) await visibleRegister(deps, callerOf(request), registerId);
      const state = isNamed ? await deps.findState(registerId) : undefined;
      const { verifier } = deps;
      const verify = (items: readonly VerifyItem[]) => deps.verify(items);
      const errors = await judgeSubmittedDocket(docket, { state, previous, verifier, verify });
      const validationDuration = durationText(Number(deps.clock.nowMicros() - since));
      if (isAcceptable(errors)) return { isValid: true as const, errors, validationDuration };
      const worst = errors.find(({ severity }) => severity !== 'Warning');
      const ordered = [...errors].sort((a, b) => Number(a !== worst) - Number(b !== worst));
      throw new AppError(
        'invalid',
        worst?.code ?? 'INVALID_REQUEST',
        worst?.message ?? 'The docket is invalid',
        {
          violations: ordered,
          details: { validationDuration },
        },
      );
    },
  );
}

function mountAdd(app: App, deps: PreviewDeps): void {
  const path = '/api/validation/transactions/add';
  app.post(
    path,
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api', rawBody: 'only' },
      validatorCompiler: () => (data) => ({ value: data }),
      schema: {
        operationId: 'addTransaction',
        summary: 'Submits a signed transaction in the earlier shape',
        tags,
        body: addBody,
        response: {
          200: addedSchema,
          400: problemSchema,
          403: problemSchema,
          404: problemSchema,
          409: problemSchema,
          413: problemSchema,
          422: problemSchema,
          429: problemSchema,
          503: problemSchema,
        },
      },
    },
    async (request, reply) => {
      const { text: submission, registerId } = rewrite(request.rawBody ?? '');
      const answer = await answerSubmission(deps, submission, originOf(callerOf(request)));
      reply.headers(answerHeaders(answer));
      if (answer.status === 200)
        return { accepted: true as const, ...(await estimateInclusion(deps, registerId)) };
      const problem = { ...answer.body, instance: path, path, traceId: request.traceId };
      return reply
        .code(answer.status as 400)
        .type('application/problem+json')
        .send(JSON.stringify(problem));
    },
  );
}

/**
 * Counts the waiting transactions and estimates their sealing time by the register's policy. Falls back to zero, since the
 * submission is accepted even when this information is unavailable.
 */
async function estimateInclusion(deps: PreviewDeps, registerId: string) {
  const waiting = callMember(deps, registerId, {
    local: ({ pool }) => pool.size,
    remote: async (validatorId) =>
      (await deps.peerClients.report(validatorId, registerId)).registers[0]?.memPoolSize,
  });
  const memPoolSize = (await orUndefined(waiting)) ?? 0;
  const consensus = (await orUndefined(deps.findRules(registerId)))?.policy.consensus;
  const { maxTransactionsPerDocket = 1, docketBuildIntervalMs = 0 } = consensus ?? {};
  const dockets = Math.max(1, Math.ceil(memPoolSize / maxTransactionsPerDocket));
  return { memPoolSize, estimatedInclusionTime: clockText((dockets * docketBuildIntervalMs) / 1000) };
}

async function orUndefined<T>(request: Promise<T>): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (isAppError(error)) return undefined;
    throw error;
  }
}

function mountWaiting(app: App, deps: PreviewDeps): void {
  app.get(
    '/api/validation/transactions/:registerId',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'listWaitingTransactions',
        summary: 'Waiting transactions, in the order in which they may be sealed',
        tags,
        params: z.object({ registerId: text }),
        querystring: paging(),
        response: { 200: pageSchema(waitingSchema), 404: problemSchema, 503: problemSchema },
      },
    },
    async (request) => {
      const registerId = await visibleRegister(deps, callerOf(request), request.params.registerId);
      const window = pageWindow(request.query);
      const peerRequest = { registerId, ...window, subjectToken: tokenOf(request) };
      const { transactions, total } = await callMember(deps, registerId, {
        local: (register) => listWaiting(register, window),
        remote: (validatorId) => deps.peerClients.listWaiting(validatorId, peerRequest),
      });
      return { ...page(transactions.map(presentWaiting), request.query, total) };
    },
  );
}

/** The caller's own token, with which the remote member checks visibility again. */
function tokenOf(request: { readonly headers: { readonly authorization?: string | undefined } }): string {
  return (request.headers.authorization ?? '').replace(/^Bearer /i, '');
}
