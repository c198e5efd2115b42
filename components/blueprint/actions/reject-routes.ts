import { z } from 'zod';
import { parseRouting } from '#core/blueprint/steps/routing.ts';
import { type App, addRoute, answer, bearerOf, decimal, json } from '#kit/http/http.ts';
import type { Subject } from '../definitions/publications/visibility.ts';
import { refusal, refusals, storedRefusal } from '../errors.ts';
import { delegationHeaders, delegationIn } from '../instances/authority.ts';
import { getAction, rejectionTargets } from '../instances/definitions.ts';
import { currentActions, walletsOf } from '../instances/instance.ts';
import { findInstance, findStepInstance } from '../instances/store.ts';
import type { LeasedOperation } from '../operations/operation.ts';
import { presentStarted } from './present.ts';
import { type ActionRouteDeps, stepRefusals } from './routes.ts';
import { operationStartedSchema, rejectBody, rejectByTransactionBody, rejectExample } from './schemas.ts';
import { type StepRequest, type SubmitOptions, submitStep } from './submit.ts';
import { readSubmission } from './transaction.ts';

const route = { tag: 'Actions', policy: 'RequireAuthenticated', rateLimit: 'Api' } as const;
const text = z.string();

const rejectionSchema = z
  .object({
    transactionHash: text,
    instanceId: text,
    targetActionId: z.int().nullable().describe('The action to take again; null when the workflow ended.'),
    targetParticipantId: text.nullable(),
    isTerminal: z.boolean(),
    timestamp: text.describe('ISO 8601, UTC.'),
  })
  .meta({ id: 'ActionRejection' });

const rejectParams = z.object({
  instanceId: z.uuid().transform((id) => id.toLowerCase()),
  actionId: decimal({ min: 0, max: 1_000_000 }),
});

const answers = {
  200: json('The rejection, accepted by the register.', rejectionSchema),
  202: json('An operation carries the rejection out.', operationStartedSchema, {
    location: 'Path of the operation.',
  }),
};

const rejectRefusals = [...stepRefusals, ...refusals('REJECTION_NOT_ALLOWED', 'REJECTION_REASON_REQUIRED')];

/** Mounts the rejection of actions. */
export function mountRejectionRoutes(app: App, deps: ActionRouteDeps): void {
  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/instances/:instanceId/actions/:actionId/reject',
    operationId: 'rejectAction',
    summary: 'Reject what an action of an instance decides on',
    params: rejectParams,
    headers: delegationHeaders,
    body: { schema: rejectBody, example: rejectExample },
    idempotency: 'handler',
    noStore: true,
    answers,
    refusals: rejectRefusals,
    handle: async ({ caller, params, body, request, idempotencyKey }) => {
      const { senderWallet: wallet, branchKey, data, reason, fieldErrors } = body;
      const input = { data, externalRecipientKeys: {}, reason, fieldErrors };
      const place = { registerId: undefined, blueprintId: undefined };
      const step = { kind: 'Rejection' as const, ...params, ...place, wallet, branchKey, input };
      const options = { idempotencyKey, delegationToken: delegationIn(request.headers) };
      return reject(deps, { caller, bearer: bearerOf(request) }, step, options);
    },
  });
  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/actions/reject',
    operationId: 'rejectTransaction',
    summary: 'Reject the action that follows a transaction',
    headers: delegationHeaders,
    body: {
      schema: rejectByTransactionBody,
      example: {
        ...rejectExample,
        transactionHash: '7c1d9a4e5f60718293a4b5c6d7e8f90112233445566778899aabbccddeeff001',
        senderWallet: 'w1qdf3q6tl433zl3al00lzv4uqgyy0lucqpq2nf2tsv9txnyqjgr3ss2uttek',
        registerAddress: '0123456789abcdef0123456789abcdef',
      },
    },
    idempotency: 'handler',
    noStore: true,
    answers,
    refusals: rejectRefusals,
    handle: async ({ caller, body, request, idempotencyKey }) => {
      const { senderWallet: wallet, registerAddress: registerId, reason, fieldErrors } = body;
      const place = await findRejected(deps, { registerId, txId: body.transactionHash, wallet });
      const input = { data: {}, externalRecipientKeys: {}, reason, fieldErrors };
      const step = {
        kind: 'Rejection' as const,
        ...place,
        registerId,
        blueprintId: undefined,
        wallet,
        input,
      };
      const options = { idempotencyKey, delegationToken: delegationIn(request.headers) };
      return reject(deps, { caller, bearer: bearerOf(request) }, step, options);
    },
  });
}

/** The action that a transaction made current and that a wallet takes. */
async function findRejected(
  deps: ActionRouteDeps,
  {
    registerId,
    txId,
    wallet,
  }: { readonly registerId: string; readonly txId: string; readonly wallet: string },
): Promise<{ readonly instanceId: string; readonly actionId: number }> {
  const found = await findStepInstance(deps.db.read, registerId, txId);
  if (found === undefined) throw refusal('INSTANCE_NOT_FOUND');
  const { instanceId, next } = found;
  const instance = await findInstance(deps.db.read, registerId, instanceId, new Date(deps.clock.nowMs()));
  if (instance === undefined) throw refusal('INSTANCE_NOT_FOUND');
  const { workflow } = await deps.definitions.get(registerId, instance.pin);
  const roles = walletsOf(instance, workflow);
  const own = currentActions(instance, workflow).find(({ actionId }) => {
    const sender = workflow.actions.get(actionId)?.sender;
    return next.includes(actionId) && sender !== undefined && roles.get(sender) === wallet;
  });
  // Judged like every other action, so that an outsider learns no more than by naming one.
  return { instanceId, actionId: own?.actionId ?? next[0] ?? 0 };
}

async function reject(deps: ActionRouteDeps, subject: Subject, step: StepRequest, options: SubmitOptions) {
  const { operation } = await submitStep(deps, subject, step, options);
  const { id } = operation;
  const ended = await deps.runner.waitForEnd(id, deps.boundedWaitMs);
  const result = ended && (await resultOf(deps, ended));
  if (result !== undefined) return answer(200, result);
  return answer(202, presentStarted(operation), { location: `/api/operations/${id}` });
}

async function resultOf(
  deps: ActionRouteDeps,
  operation: LeasedOperation,
): Promise<z.output<typeof rejectionSchema> | undefined> {
  const { failure, registerId, instanceId, actionId, submission, txId, isAccepted } = operation;
  if (failure !== undefined) throw storedRefusal(failure.code, failure.message);
  if (submission === undefined || txId === undefined || !isAccepted) return undefined;
  const { routing: routingText, createdAt } = readSubmission(submission);
  const routing = parseRouting(routingText);
  if (routing === undefined) throw new Error('a stored routing cannot be parsed');
  const pinned = await deps.definitions.get(registerId, routing.blueprintDefinitionTxId);
  const action = getAction(pinned, actionId);
  const isTerminal = routing.ended === 'Rejected';
  return {
    transactionHash: txId,
    instanceId,
    targetActionId: isTerminal ? null : (action.rejectionConfig?.targetActionId ?? null),
    targetParticipantId: rejectionTargets(pinned, action)[0] ?? null,
    isTerminal,
    timestamp: new Date(createdAt).toISOString(),
  };
}
