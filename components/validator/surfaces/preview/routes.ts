import type { Verifier } from '#core/crypto/verify.ts';
import { AppError, isAppError, type Violation } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { LedgerRules } from '#core/ledger/governance/rules.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { VerifyItem } from '#kit/crypto/verify-pool.ts';
import {
  type App,
  addRoute,
  answer,
  bearerOf,
  json,
  page,
  pageSchema,
  pageWindow,
  paging,
  problemAnswer,
} from '#kit/http/http.ts';
import type { RegisterState } from '../../chain/state/state.ts';
import { ofCalls, ofJudgedDockets, ofSubmissions, refusals } from '../../errors.ts';
import { answerHeaders } from '../../intake/admission/answer.ts';
import type { ReportClient } from '../reports/clients.ts';
import { getVisibleRegister, registerParams, visibleRegister } from '../reports/register-path.ts';
import { answerSubmission, originOf, type SubmissionDeps } from '../submissions/answer-submission.ts';
import { assertMaySeal, type BuiltDocket, buildLocally, notSealedInTime, presentBuilt } from './build.ts';
import type { PreviewClient } from './clients.ts';
import { clockText, durationText } from './durations.ts';
import { addExample, docketExample } from './examples.ts';
import { isAcceptable, judgeSubmittedDocket } from './judge.ts';
import { callMember, type RegisterAccess } from './register-access.ts';
import { rewrite } from './rewrite-submission.ts';
import { addBody, addedSchema, buildBody, builtSchema, validatedSchema, waitingSchema } from './schemas.ts';
import { type ValidatedBody, validateBody } from './submitted-docket.ts';
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

const validation = { tag: 'Validation', policy: 'RequireAuthenticated' } as const;

/** Refusals of a request that a member of the register answers. */
const ofMembers = [
  ...ofCalls,
  ...refusals('REGISTER_NOT_FOUND', 'REGISTER_NOT_READY', 'QUORUM_UNAVAILABLE', 'VALIDATOR_UNAVAILABLE'),
];

/** The specification's earlier validator routes, implemented on top of the current ones. */
export function mountPreview(app: App, deps: PreviewDeps): void {
  mountBuild(app, deps);
  mountValidate(app, deps);
  mountAdd(app, deps);
  mountWaiting(app, deps);
}

function mountBuild(app: App, deps: PreviewDeps): void {
  addRoute(app, {
    ...validation,
    method: 'POST',
    path: '/api/validation/dockets/build',
    operationId: 'buildDocket',
    summary: 'Builds the docket that would be proposed now; with seal it is proposed',
    rateLimit: 'Strict',
    body: { schema: buildBody, example: { registerId: '0123456789abcdef0123456789abcdef' } },
    resource: ({ caller, body }) => getVisibleRegister(deps, caller, body.registerId),
    answers: { 200: json('The docket; null where nothing can be sealed.', builtSchema) },
    refusals: [...ofMembers, ...refusals('FORBIDDEN', 'NO_PENDING_TRANSACTIONS', 'CONSENSUS_TIMEOUT')],
    handle: async ({ caller, body, resource: registerId, request }) => {
      const { validatorWalletAddress: validatorAddress, maxTransactions = 0, seal } = body;
      if (seal) assertMaySeal(caller);
      const order = { maxTransactions, validatorAddress, seal };
      const peerRequest = { registerId, ...order, subjectToken: bearerOf(request) };
      const built = await callMember(deps, registerId, {
        local: (register) => buildLocally(register, order, deps.clock),
        remote: (validatorId) => buildRemotely(deps, validatorId, peerRequest),
      });
      return presentBuilt(built);
    },
  });
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
  addRoute(app, {
    ...validation,
    method: 'POST',
    path: '/api/validation/dockets/validate',
    operationId: 'validateDocket',
    summary: 'Validates a docket without storing it',
    rateLimit: 'Strict',
    body: { schema: validateBody, example: docketExample },
    answers: { 200: json('The docket is valid.', validatedSchema) },
    refusals: [...ofCalls, ...ofJudgedDockets, ...refusals('REGISTER_NOT_FOUND')],
    handle: async ({ caller, body }) => {
      const since = deps.clock.nowMicros();
      const errors = await judgeFor(deps, caller, body);
      const validationDuration = durationText(Number(deps.clock.nowMicros() - since));
      if (isAcceptable(errors)) return { isValid: true as const, errors, validationDuration };
      const worst = errors.find(({ severity }) => severity !== 'Warning');
      const ordered = [...errors].sort((a, b) => Number(a !== worst) - Number(b !== worst));
      throw new AppError(
        'invalid',
        worst?.code ?? 'INVALID_REQUEST',
        worst?.message ?? 'The docket is invalid',
        { violations: ordered, details: { validationDuration } },
      );
    },
  });
}

/** Judges a docket by the state of its register, if the caller may see the register that it names. */
async function judgeFor(
  deps: PreviewDeps,
  caller: Caller,
  { docket, previousDocket: previous }: ValidatedBody,
): Promise<Violation[]> {
  const registerId = findRegisterId(docket.registerId);
  const isNamed = registerId !== undefined;
  if (isNamed) await getVisibleRegister(deps, caller, registerId);
  const state = isNamed ? await deps.findState(registerId) : undefined;
  const { verifier } = deps;
  const verify = (items: readonly VerifyItem[]) => deps.verify(items);
  return judgeSubmittedDocket(docket, { state, previous, verifier, verify });
}

function mountAdd(app: App, deps: PreviewDeps): void {
  const path = '/api/validation/transactions/add';
  addRoute(app, {
    ...validation,
    method: 'POST',
    path,
    operationId: 'addTransaction',
    summary: 'Submits a signed transaction in the earlier shape',
    rateLimit: 'Api',
    // `rewrite` parses the exact text, which the payload hash covers.
    rawBody: 'only',
    body: { schema: addBody, example: addExample },
    answers: { 200: json('The transaction is verified and on disk.', addedSchema) },
    refusals: [...ofSubmissions, ...refusals('SENDER_NOT_AUTHORIZED')],
    handle: async ({ caller, request }) => {
      const { text: submission, registerId } = rewrite(request.rawBody ?? '');
      const submitted = await answerSubmission(deps, submission, originOf(caller));
      const headers = answerHeaders(submitted);
      if (submitted.status === 200) {
        return answer(
          200,
          { accepted: true as const, ...(await estimateInclusion(deps, registerId)) },
          headers,
        );
      }
      const problem = { ...submitted.body, instance: path, path, traceId: request.traceId };
      return problemAnswer(submitted.status, problem, headers);
    },
  });
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
  addRoute(app, {
    ...validation,
    method: 'GET',
    path: '/api/validation/transactions/:registerId',
    operationId: 'listWaitingTransactions',
    summary: 'Waiting transactions, in the order in which they may be sealed',
    rateLimit: 'Api',
    params: registerParams,
    query: paging(),
    resource: visibleRegister(deps),
    answers: { 200: json('A page of transactions.', pageSchema(waitingSchema)) },
    refusals: ofMembers,
    handle: async ({ resource: registerId, query, request }) => {
      const window = pageWindow(query);
      const peerRequest = { registerId, ...window, subjectToken: bearerOf(request) };
      const { transactions, total } = await callMember(deps, registerId, {
        local: (register) => listWaiting(register, window),
        remote: (validatorId) => deps.peerClients.listWaiting(validatorId, peerRequest),
      });
      return page(transactions.map(presentWaiting), query, total);
    },
  });
}
