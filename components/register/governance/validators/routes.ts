import { z } from 'zod';
import { readableLine, readableText } from '#core/encoding/readable.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { decide } from '#core/identity/policies.ts';
import type { LedgerRules } from '#core/ledger/governance/rules.ts';
import { type App, callerOf, jsonAnswer } from '#kit/http/http.ts';
import { bearerOf } from '../../bearer.ts';
import { getVisibleRegister, getWritableRegister } from '../../registers/state/access.ts';
import type { Register } from '../../registers/state/store.ts';
import { reasonText } from '../../registers/state/texts.ts';
import { sendAnswer } from '../control/answer.ts';
import { mayForce, viewsOf } from '../liveness/operational.ts';
import { presentOperational } from '../liveness/present.ts';
import { forceQuery } from '../proposals/operation.ts';
import { loadRules } from '../rules/load.ts';
import { presentApproved, presentValidator } from './present.ts';
import { changeSet, getValidator, registerValidator, type SetAct, type SetDeps } from './register.ts';

export type ValidatorsDeps = SetDeps;

const tags = ['Validators'];
const registerParams = z.object({ registerId: z.string() });
const validatorParams = z.object({ registerId: z.string(), validatorId: z.string() });
const validatorId = z.string().regex(/^[A-Za-z0-9._-]{1,128}$/);
const text = (maxLength: number) => z.string().min(1).max(maxLength);

const registerBody = z.object({
  registerId: z.string(),
  validatorId,
  publicKey: text(1024).optional(),
  proofOfPossession: text(1024)
    .optional()
    .describe('Together with publicKey; requested from the validator when absent.'),
  grpcEndpoint: text(255).optional().describe('Directory data, which the validator announces itself.'),
  metadata: z.record(readableLine, readableText).optional(),
});
const approveBody = z
  .object({ approvedBy: text(255).optional(), approvalNotes: reasonText.optional() })
  .nullish();
const rejectBody = z.object({ rejectedBy: text(255).optional(), reason: reasonText.optional() }).nullish();
const rotateBody = z
  .object({
    rotatedBy: text(255).optional(),
    reason: reasonText.optional(),
    publicKey: text(1024).optional(),
    proofOfPossession: text(1024)
      .optional()
      .describe("Together with publicKey; the validator's next key is requested when absent."),
  })
  .nullish();
const suspendBody = z.object({ suspendedBy: text(255).optional(), reason: reasonText.optional() }).nullish();

/** Allows services, and people who manage registers. */
function assertManages(caller: Caller): void {
  const manages =
    decide('RequireService', caller) === 'allow' || decide('CanManageRegisters', caller) === 'allow';
  if (!manages) throw new AppError('forbidden', 'FORBIDDEN', 'This needs the role Administrator.');
}

interface VisibleSet {
  readonly register: Register;
  readonly rules: LedgerRules;
}

async function loadVisible(deps: ValidatorsDeps, caller: Caller, registerId: string): Promise<VisibleSet> {
  const register = await getVisibleRegister(deps.database.read, caller, registerId);
  return { register, rules: await loadRules(deps, register) };
}

function mountOfRegister(app: App, deps: ValidatorsDeps): void {
  app.get(
    '/api/registers/:registerId/validators/approved',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'listApprovedValidators',
        tags,
        summary: 'Approved validators of the ledger',
        params: registerParams,
        response: jsonAnswer('The validators.'),
      },
    },
    async (request) => {
      const { rules } = await loadVisible(deps, callerOf(request), request.params.registerId);
      return presentApproved(rules);
    },
  );
  app.get(
    '/api/registers/:registerId/validators/operational',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'listOperationalValidators',
        tags,
        summary: 'Which validators are alive',
        params: registerParams,
        response: jsonAnswer('The validators.'),
      },
    },
    async (request) => {
      const { register, rules } = await loadVisible(deps, callerOf(request), request.params.registerId);
      return presentOperational(rules, await viewsOf(deps, register), deps.clock.nowMs());
    },
  );
}

function mountLists(app: App, deps: ValidatorsDeps): void {
  const config = { policy: 'RequireAuthenticated', rateLimit: 'Api' } as const;
  app.get(
    '/api/validators/:registerId',
    {
      config,
      schema: {
        operationId: 'listRegisterValidators',
        tags,
        summary: 'Validators of a register in any status',
        params: registerParams,
        response: jsonAnswer('The validators.'),
      },
    },
    async (request) => {
      const { register, rules } = await loadVisible(deps, callerOf(request), request.params.registerId);
      const validators = rules.validators.map(presentValidator);
      return { registerId: register.registerId, validators, count: validators.length };
    },
  );
  app.get(
    '/api/validators/:registerId/count',
    {
      config,
      schema: {
        operationId: 'countRegisterValidators',
        tags,
        summary: 'Number of validators by status',
        params: registerParams,
        response: jsonAnswer('The counts.'),
      },
    },
    async (request) => {
      const { register, rules } = await loadVisible(deps, callerOf(request), request.params.registerId);
      const byStatus: Record<string, number> = {};
      for (const { status } of rules.validators) {
        const name = status.toLowerCase();
        byStatus[name] = (byStatus[name] ?? 0) + 1;
      }
      return { registerId: register.registerId, count: byStatus['active'] ?? 0, byStatus };
    },
  );
  app.get(
    '/api/validators/:registerId/pending',
    {
      config,
      schema: {
        operationId: 'listPendingValidators',
        tags,
        summary: 'Validators that are pending approval',
        params: registerParams,
        response: jsonAnswer('The validators.'),
      },
    },
    async (request) => {
      const { register, rules } = await loadVisible(deps, callerOf(request), request.params.registerId);
      const waiting = rules.validators.filter(({ status }) => status === 'Pending');
      return {
        registerId: register.registerId,
        validators: waiting.map(presentValidator),
        count: waiting.length,
      };
    },
  );
}

function mountOne(app: App, deps: ValidatorsDeps): void {
  const config = { policy: 'RequireAuthenticated', rateLimit: 'Api' } as const;
  app.get(
    '/api/validators/:registerId/:validatorId',
    {
      config,
      schema: {
        operationId: 'getRegisterValidator',
        tags,
        summary: 'One validator of a register',
        params: validatorParams,
        response: jsonAnswer('The validator.'),
      },
    },
    async (request) => {
      const { params } = request;
      const { register, rules } = await loadVisible(deps, callerOf(request), params.registerId);
      const validator = getValidator(rules, params.validatorId);
      return { registerId: register.registerId, ...presentValidator(validator) };
    },
  );
  app.post(
    '/api/validators/:registerId/refresh',
    {
      config,
      schema: {
        operationId: 'refreshOperationalValidators',
        tags,
        summary: 'Query again which validators are alive',
        params: registerParams,
        response: jsonAnswer('The validators.'),
      },
    },
    async (request) => {
      const { register, rules } = await loadVisible(deps, callerOf(request), request.params.registerId);
      const nowMs = deps.clock.nowMs();
      const operational = presentOperational(rules, await viewsOf(deps, register), nowMs);
      return { ...operational, refreshedAt: apiTimestamp(nowMs) };
    },
  );
}

function mountRegistration(app: App, deps: ValidatorsDeps): void {
  app.post(
    '/api/validators/register',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
      schema: {
        operationId: 'registerValidator',
        tags,
        summary: 'Register a validator for a register',
        body: registerBody,
        response: jsonAnswer('The transaction was submitted.', 202),
      },
    },
    async (request, reply) => {
      const caller = callerOf(request);
      assertManages(caller);
      const { body } = request;
      const register = await getWritableRegister(deps.database.read, caller, body.registerId);
      return sendAnswer(reply, await registerValidator(deps, register, body));
    },
  );
}

interface ActBody {
  readonly did?: string | undefined;
  readonly reason?: string | undefined;
  readonly key?: { readonly publicKey?: string | undefined; readonly proofOfPossession?: string | undefined };
}

function mountAct<S extends z.ZodType>(
  app: App,
  deps: ValidatorsDeps,
  act: { readonly name: SetAct; readonly id: string; readonly summary: string; readonly body: S },
  read: (body: z.output<S>) => ActBody,
): void {
  app.post(
    `/api/validators/:registerId/:validatorId/${act.name}`,
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
      schema: {
        operationId: act.id,
        tags,
        summary: act.summary,
        params: validatorParams,
        querystring: forceQuery,
        body: act.body,
        response: jsonAnswer('The transaction was submitted.', 202),
      },
    },
    async (request, reply) => {
      const subject = { caller: callerOf(request), token: bearerOf(request) };
      assertManages(subject.caller);
      const params = validatorParams.parse(request.params);
      const register = await getWritableRegister(deps.database.read, subject.caller, params.registerId);
      const isForced = mayForce(subject.caller, z.object({ force: z.boolean() }).parse(request.query).force);
      const { key, ...by } = read(act.body.parse(request.body));
      const change = { register, subject, validatorId: params.validatorId, act: act.name, isForced, key };
      const answer = await changeSet(deps, change, by);
      return sendAnswer(reply, answer);
    },
  );
}

/** Validators of a register: approval, liveness, changes of the set. */
export function mountValidators(app: App, deps: ValidatorsDeps): void {
  mountOfRegister(app, deps);
  mountLists(app, deps);
  mountOne(app, deps);
  mountRegistration(app, deps);
  mountAct(
    app,
    deps,
    { name: 'approve', id: 'approveValidator', summary: 'Approve a validator', body: approveBody },
    (body) => ({
      did: body?.approvedBy,
      reason: body?.approvalNotes,
    }),
  );
  mountAct(
    app,
    deps,
    { name: 'reject', id: 'rejectValidator', summary: 'Reject or remove a validator', body: rejectBody },
    (body) => ({ did: body?.rejectedBy, reason: body?.reason }),
  );
  mountAct(
    app,
    deps,
    {
      name: 'suspend',
      id: 'suspendValidator',
      summary: 'Suspend a validator',
      body: suspendBody,
    },
    (body) => ({ did: body?.suspendedBy, reason: body?.reason }),
  );
  const rotate = {
    name: 'rotate-key',
    id: 'rotateValidatorKey',
    summary: 'Rotate the key of a validator',
    body: rotateBody,
  } as const;
  mountAct(app, deps, rotate, (body) => ({
    did: body?.rotatedBy,
    reason: body?.reason,
    key: { publicKey: body?.publicKey, proofOfPossession: body?.proofOfPossession },
  }));
}
