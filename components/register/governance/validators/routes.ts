import { z } from 'zod';
import { readableLine, readableText } from '#core/encoding/readable.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { decide } from '#core/identity/policies.ts';
import { type App, addRoute, bearerOf, json } from '#kit/http/http.ts';
import { ofPossession, ofSubmission, ofVisibleRegister, ofWritableRegister, refusals } from '../../errors.ts';
import { writableRegister } from '../../registers/state/access.ts';
import { reasonText } from '../../registers/state/texts.ts';
import { mayForce, viewsOf } from '../liveness/operational.ts';
import { presentOperational } from '../liveness/present.ts';
import { operationalSchema } from '../liveness/schemas.ts';
import { forceQuery } from '../proposals/operation.ts';
import { visibleRules } from '../rules/load.ts';
import { presentApproved, presentValidator } from './present.ts';
import { changeSet, getValidator, registerValidator, type SetAct, type SetDeps } from './register.ts';
import {
  approvedSchema,
  countsSchema,
  refreshedSchema,
  registrationSchema,
  submittedChangeSchema,
  validatorOfRegisterSchema,
  validatorsSchema,
} from './schemas.ts';

export type ValidatorsDeps = SetDeps;

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

const tag = 'Validators';

const read = {
  method: 'GET',
  tag,
  policy: 'RequireAuthenticated',
  rateLimit: 'Api',
} as const;
const ofRules = [...ofVisibleRegister, ...refusals('REGISTER_NOT_READY')];

/** What routes about the validators of a visible register share. */
function ofRegister(deps: ValidatorsDeps) {
  return { ...read, params: registerParams, refusals: ofRules, resource: visibleRules(deps) } as const;
}

function mountOfRegister(app: App, deps: ValidatorsDeps): void {
  const common = ofRegister(deps);
  addRoute(app, {
    ...common,
    path: '/api/registers/:registerId/validators/approved',
    operationId: 'listApprovedValidators',
    summary: 'Approved validators of the ledger',
    answers: { 200: json('The validators.', approvedSchema) },
    handle: ({ resource: { rules } }) => presentApproved(rules),
  });
  addRoute(app, {
    ...common,
    path: '/api/registers/:registerId/validators/operational',
    operationId: 'listOperationalValidators',
    summary: 'Which validators are alive',
    answers: { 200: json('The validators.', operationalSchema) },
    handle: async ({ resource: { register, rules } }) =>
      presentOperational(rules, await viewsOf(deps, register), deps.clock.nowMs()),
  });
  addRoute(app, {
    ...common,
    method: 'POST',
    path: '/api/validators/:registerId/refresh',
    operationId: 'refreshOperationalValidators',
    summary: 'Query again which validators are alive',
    answers: { 200: json('The validators.', refreshedSchema) },
    handle: async ({ resource: { register, rules } }) => {
      const nowMs = deps.clock.nowMs();
      const operational = presentOperational(rules, await viewsOf(deps, register), nowMs);
      return { ...operational, refreshedAt: apiTimestamp(nowMs) };
    },
  });
}

function mountLists(app: App, deps: ValidatorsDeps): void {
  const common = ofRegister(deps);
  addRoute(app, {
    ...common,
    path: '/api/validators/:registerId',
    operationId: 'listRegisterValidators',
    summary: 'Validators of a register in any status',
    answers: { 200: json('The validators.', validatorsSchema) },
    handle: ({ resource: { register, rules } }) => {
      const validators = rules.validators.map(presentValidator);
      return { registerId: register.registerId, validators, count: validators.length };
    },
  });
  addRoute(app, {
    ...common,
    path: '/api/validators/:registerId/count',
    operationId: 'countRegisterValidators',
    summary: 'Number of validators by status',
    answers: { 200: json('The counts.', countsSchema) },
    handle: ({ resource: { register, rules } }) => {
      const byStatus: Record<string, number> = {};
      for (const { status } of rules.validators) {
        const name = status.toLowerCase();
        byStatus[name] = (byStatus[name] ?? 0) + 1;
      }
      return { registerId: register.registerId, count: byStatus['active'] ?? 0, byStatus };
    },
  });
  addRoute(app, {
    ...common,
    path: '/api/validators/:registerId/pending',
    operationId: 'listPendingValidators',
    summary: 'Validators that are pending approval',
    answers: { 200: json('The validators.', validatorsSchema) },
    handle: ({ resource: { register, rules } }) => {
      const waiting = rules.validators.filter(({ status }) => status === 'Pending');
      return {
        registerId: register.registerId,
        validators: waiting.map(presentValidator),
        count: waiting.length,
      };
    },
  });
  addRoute(app, {
    ...common,
    path: '/api/validators/:registerId/:validatorId',
    operationId: 'getRegisterValidator',
    summary: 'One validator of a register',
    params: validatorParams,
    answers: { 200: json('The validator.', validatorOfRegisterSchema) },
    refusals: [...ofRules, ...refusals('VALIDATOR_NOT_FOUND')],
    handle: ({ params, resource: { register, rules } }) => {
      const validator = getValidator(rules, params.validatorId);
      return { registerId: register.registerId, ...presentValidator(validator) };
    },
  });
}

/** Refusals of a change of a set. */
const ofChanges = [...ofWritableRegister, ...ofSubmission, ...ofPossession];

function mountRegistration(app: App, deps: ValidatorsDeps): void {
  const findRegister = writableRegister(() => deps.database.read);
  addRoute(app, {
    method: 'POST',
    path: '/api/validators/register',
    operationId: 'registerValidator',
    tag,
    summary: 'Register a validator for a register',
    policy: 'RequireAuthenticated',
    rateLimit: 'Strict',
    body: {
      schema: registerBody,
      example: { registerId: '5f0c6f7d2f0a4f0fb8d1f7c1c3a2e9b4', validatorId: 'validator-3' },
    },
    answers: { 202: json('The transaction was submitted.', registrationSchema) },
    refusals: ofChanges,
    resource: ({ caller, body }) => {
      assertManages(caller);
      return findRegister({ caller, params: body });
    },
    handle: ({ body, resource: register }) => registerValidator(deps, register, body),
  });
}

interface ActBody {
  readonly did?: string | undefined;
  readonly reason?: string | undefined;
  readonly key?: { readonly publicKey?: string | undefined; readonly proofOfPossession?: string | undefined };
}

/** A change of the validator set: the last part of its path, and how its body is read. */
interface ActRoute<S extends z.ZodType> {
  readonly name: SetAct;
  readonly operationId: string;
  readonly summary: string;
  readonly body: { readonly schema: S; readonly example: z.input<S> };
  read(body: z.output<S>): ActBody;
}

function mountAct<S extends z.ZodType>(app: App, deps: ValidatorsDeps, act: ActRoute<S>): void {
  const { name, operationId, summary, body: declared } = act;
  const findRegister = writableRegister(() => deps.database.read);
  addRoute(app, {
    method: 'POST',
    path: `/api/validators/:registerId/:validatorId/${name}`,
    operationId,
    tag,
    summary,
    policy: 'RequireAuthenticated',
    rateLimit: 'Strict',
    params: validatorParams,
    query: forceQuery,
    body: declared,
    answers: { 202: json('The transaction was submitted.', submittedChangeSchema) },
    refusals: [...ofChanges, ...refusals('NOT_ON_ROSTER')],
    resource: (request) => {
      assertManages(request.caller);
      return findRegister(request);
    },
    handle: ({ caller, params, query, body, resource: register, request }) => {
      const subject = { caller, token: bearerOf(request) };
      const isForced = mayForce(caller, query.force);
      const { key, ...by } = act.read(body);
      const { validatorId: id } = params;
      return changeSet(deps, { register, subject, validatorId: id, act: name, isForced, key }, by);
    },
  });
}

/** Validators of a register: approval, liveness, changes of the set. */
export function mountValidators(app: App, deps: ValidatorsDeps): void {
  mountOfRegister(app, deps);
  mountLists(app, deps);
  mountRegistration(app, deps);
  mountAct(app, deps, {
    name: 'approve',
    operationId: 'approveValidator',
    summary: 'Approve a validator',
    body: { schema: approveBody, example: { approvalNotes: 'Its operator signed the agreement' } },
    read: (body) => ({ did: body?.approvedBy, reason: body?.approvalNotes }),
  });
  mountAct(app, deps, {
    name: 'reject',
    operationId: 'rejectValidator',
    summary: 'Reject or remove a validator',
    body: { schema: rejectBody, example: { reason: 'Its operator left' } },
    read: (body) => ({ did: body?.rejectedBy, reason: body?.reason }),
  });
  mountAct(app, deps, {
    name: 'suspend',
    operationId: 'suspendValidator',
    summary: 'Suspend a validator',
    body: { schema: suspendBody, example: { reason: 'It misses its slots' } },
    read: (body) => ({ did: body?.suspendedBy, reason: body?.reason }),
  });
  mountAct(app, deps, {
    name: 'rotate-key',
    operationId: 'rotateValidatorKey',
    summary: 'Rotate the key of a validator',
    body: { schema: rotateBody, example: { reason: 'Yearly rotation' } },
    read: (body) => ({
      did: body?.rotatedBy,
      reason: body?.reason,
      key: { publicKey: body?.publicKey, proofOfPossession: body?.proofOfPossession },
    }),
  });
}
