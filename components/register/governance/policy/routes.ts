import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { isAppError } from '#core/errors/errors.ts';
import { TRANSITION_MODES } from '#core/ledger/governance/operation.ts';
import { isDefaultPolicy } from '#core/ledger/policy.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import {
  type App,
  callerOf,
  idempotencyHeaders,
  jsonAnswer,
  page,
  pageWindow,
  paging,
} from '#kit/http/http.ts';
import { bearerOf } from '../../bearer.ts';
import { refusal } from '../../errors.ts';
import { getVisibleRegister, getWritableRegister } from '../../registers/state/access.ts';
import { reasonText } from '../../registers/state/texts.ts';
import { type Answer, isAccepted, sendAnswer } from '../control/answer.ts';
import { submittedApproval, word } from '../proposals/operation.ts';
import { presentTime } from '../proposals/present.ts';
import { loadRules } from '../rules/load.ts';
import type { PolicyKind, PolicyVersion } from '../rules/store.ts';
import { type Change, type ChangeDeps, disableDevMode, updateCryptoPolicy, updatePolicy } from './change.ts';
import { listPolicyVersions } from './store.ts';

export interface PolicyDeps extends ChangeDeps {
  readonly idempotency: Idempotency;
}

const tags = ['Policy'];
const registerParams = z.object({ registerId: z.string() });
const json = z.record(z.string(), z.unknown());

const updateBody = z.object({
  policy: json.describe('The next policy; members left out stay unchanged, null removes one.'),
  updatedBy: z.string().min(1).max(255).describe('Your own DID on the roster.'),
  transitionMode: word(TRANSITION_MODES).optional().describe('Required from public to consent.'),
  justification: reasonText.optional(),
  proposedAt: z.string().max(64).optional(),
  approvals: z.array(submittedApproval).max(50).optional(),
});

const cryptoBody = z.object({
  cryptoPolicy: json,
  updatedBy: z.string().min(1).max(255).optional(),
  justification: reasonText.optional(),
  proposedAt: z.string().max(64).optional(),
  approvals: z.array(submittedApproval).max(50).optional(),
});

function presentVersion(member: 'policy' | 'cryptoPolicy', row: PolicyVersion) {
  return {
    version: row.version,
    [member]: JSON.parse(row.document) as unknown,
    txId: row.txId,
    docketNumber: row.docketNumber,
    effectiveFromDocket: row.docketNumber === 0 ? 0 : row.docketNumber + 1,
    updatedAt: presentTime(row.updatedAt),
    updatedBy: row.updatedBy ?? null,
  };
}

/** The versions of a policy, under both member names in use by clients. */
function mountHistory(app: App, deps: PolicyDeps, path: string, kind: PolicyKind): void {
  const operationId = kind === 'policy' ? 'listRegisterPolicyVersions' : 'listRegisterCryptoPolicyVersions';
  const member = kind === 'policy' ? 'policy' : 'cryptoPolicy';
  app.get(
    path,
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId,
        tags,
        summary: 'Versions, newest first',
        params: registerParams,
        querystring: paging(),
        response: jsonAnswer('A page of versions.'),
      },
    },
    async (request) => {
      const { query } = request;
      const { read } = deps.database;
      const { registerId } = registerParams.parse(request.params);
      const register = await getVisibleRegister(read, callerOf(request), registerId);
      await loadRules(deps, register);
      const of = { registerNo: register.registerNo, kind };
      const { items, total } = await listPolicyVersions(read, of, pageWindow(query));
      const versions = items.map((row) => presentVersion(member, row));
      return { registerId: register.registerId, versions, ...page(versions, query, total) };
    },
  );
}

function mountReads(app: App, deps: PolicyDeps): void {
  app.get(
    '/api/registers/:registerId/policy',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'getRegisterPolicy',
        tags,
        summary: 'The policy in force',
        params: registerParams,
        response: jsonAnswer('The policy.'),
      },
    },
    async (request) => {
      const register = await getVisibleRegister(
        deps.database.read,
        callerOf(request),
        request.params.registerId,
      );
      const { policy } = await loadRules(deps, register);
      return { registerId: register.registerId, policy, isDefault: isDefaultPolicy(policy) };
    },
  );
  app.get(
    '/api/registers/:registerId/crypto-policy',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'getRegisterCryptoPolicy',
        tags,
        summary: 'The crypto policy in force',
        params: registerParams,
        response: jsonAnswer('The crypto policy.'),
      },
    },
    async (request) => {
      const register = await getVisibleRegister(
        deps.database.read,
        callerOf(request),
        request.params.registerId,
      );
      const { cryptoPolicy } = await loadRules(deps, register);
      return { registerId: register.registerId, cryptoPolicy };
    },
  );
  mountHistory(app, deps, '/api/registers/:registerId/policy/history', 'policy');
  mountHistory(app, deps, '/api/registers/:registerId/crypto-policy/history', 'crypto');
}

interface PolicyChangeRequest {
  readonly name: string;
  readonly registerId: string;
  readonly act: (change: Change) => Promise<Answer>;
}

/** Submits a change of a register, once per Idempotency-Key if there is one. */
async function changeOnce(
  deps: PolicyDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  change: PolicyChangeRequest,
) {
  const subject = { caller: callerOf(request), token: bearerOf(request) };
  const register = await getWritableRegister(deps.database.read, subject.caller, change.registerId);
  const key = request.headers['idempotency-key'];
  const scope = [`${change.name}:${register.registerId}:${subject.caller.subject}`];
  const act = () => change.act({ register, subject });
  return sendAnswer(reply, await deps.idempotency.once({ key, scope, body: request.body }, act, isAccepted));
}

function mountUpdates(app: App, deps: PolicyDeps): void {
  app.post(
    '/api/registers/:registerId/policy/update',
    {
      config: { policy: 'CanManageRegisters', rateLimit: 'Strict' },
      schema: {
        operationId: 'proposeRegisterPolicy',
        tags,
        summary: 'Propose the next policy',
        params: registerParams,
        body: updateBody,
        headers: idempotencyHeaders,
        response: jsonAnswer('The transaction was submitted.', 202),
      },
    },
    (request, reply) =>
      changeOnce(deps, request, reply, {
        name: 'policy',
        registerId: request.params.registerId,
        act: (change) => updatePolicy(deps, change, request.body),
      }),
  );
  app.post(
    '/api/registers/:registerId/governance/crypto-policy',
    {
      config: { policy: 'CanManageRegisters', rateLimit: 'Strict' },
      schema: {
        operationId: 'proposeRegisterCryptoPolicy',
        tags,
        summary: 'Propose the next crypto policy',
        params: registerParams,
        body: cryptoBody,
        headers: idempotencyHeaders,
        response: jsonAnswer('The transaction was submitted.', 202),
      },
    },
    (request, reply) =>
      changeOnce(deps, request, reply, {
        name: 'crypto-policy',
        registerId: request.params.registerId,
        act: (change) => updateCryptoPolicy(deps, change, request.body),
      }),
  );
  app.post(
    '/api/registers/:registerId/disable-dev-mode',
    {
      config: { policy: 'CanManageRegisters', rateLimit: 'Strict' },
      schema: {
        operationId: 'disableDevelopmentMode',
        tags,
        summary: 'Turn development mode off permanently',
        params: registerParams,
        response: jsonAnswer('The transaction was submitted.'),
      },
    },
    async (request, reply) => {
      const register = await getWritableRegister(
        deps.database.read,
        callerOf(request),
        request.params.registerId,
      );
      const answer = await disableDevMode(deps, register).catch((error: unknown) => {
        // These routes answer 502 when no validator can be reached.
        if (isAppError(error) && error.code === 'VALIDATOR_UNAVAILABLE')
          throw refusal('VALIDATORS_UNREACHABLE', { cause: error });
        throw error;
      });
      return sendAnswer(reply, answer);
    },
  );
}

/** Policies of a register: in force, history, next version. */
export function mountPolicy(app: App, deps: PolicyDeps): void {
  mountReads(app, deps);
  mountUpdates(app, deps);
}
