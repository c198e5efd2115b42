import { z } from 'zod';
import { type App, addRoute, answer, bearerOf, decimal, json } from '#kit/http/http.ts';
import type { CanRead, Subject } from '../definitions/publications/visibility.ts';
import { invalid, refusal, refusals, storedRefusal, validatorRefusals } from '../errors.ts';
import { listFileIds } from '../files/uploads/store.ts';
import { delegationHeaders, delegationIn } from '../instances/authority.ts';
import { findInstance } from '../instances/store.ts';
import type { LeasedOperation } from '../operations/operation.ts';
import { presentResult, presentStarted } from './present.ts';
import {
  executeBody,
  executeExample,
  operationStartedSchema,
  resultSchema,
  submitBody,
  submitExample,
} from './schemas.ts';
import { type StepRequest, type SubmitDeps, type SubmitOptions, submitStep } from './submit.ts';

export interface ActionRouteDeps extends SubmitDeps {
  readonly canRead: CanRead;
  /** How long an answer waits for the seal on a register of development, milliseconds. */
  readonly boundedWaitMs: number;
}

const route = { tag: 'Actions', policy: 'RequireAuthenticated', rateLimit: 'Api' } as const;
/** As much as the gateway takes: files of 6 MiB in base64, and the payload. */
const bodyLimitBytes = 10 * 1024 ** 2;
/** JSON text of a payload without the contents of inline files, UTF-16 units. */
const mostPayloadCharacters = 2 * 1024 ** 2;
const executeParams = z.object({
  instanceId: z.uuid().transform((id) => id.toLowerCase()),
  actionId: decimal({ min: 0, max: 1_000_000 }),
});

/** Refusals of a step before there is an operation, in the order in which they are judged. */
export const stepRefusals = [
  ...refusals(
    'INSTANCES_REBUILDING',
    'INSTANCE_NOT_FOUND',
    'INSTANCE_ACCESS_DENIED',
    'PIN_UNRESOLVABLE',
    'WALLET_NOT_OWNED',
    'WALLETS_UNAVAILABLE',
    'STALE_PREDECESSOR',
    'DELEGATION_INVALID',
    'ACTION_NOT_FOUND',
    'INSTANCE_TERMINAL',
    'ACTION_NOT_CURRENT',
    'ACTION_BLOCKED',
    'SENDER_NOT_PARTICIPANT',
    'STATE_INCOMPLETE',
    'SCHEMA_REFUSED',
    'INLINE_FILE_INVALID',
    'INLINE_FILE_TOO_LARGE',
    'INLINE_FILE_ABSENT',
    'INLINE_FILE_UNPLACED',
    'FILE_QUOTA',
    'PAYLOAD_INVALID',
    'CALC_CYCLE',
    'CALC_NOT_FINITE',
    'LOGIC_BUDGET_EXCEEDED',
    'NO_ROUTE',
    'REGISTER_NOT_FOUND',
    'REGISTER_UNAVAILABLE',
    'VALIDATOR_TOO_OLD',
    'RECIPIENT_REVOKED',
    'RECIPIENT_KEY_UNRESOLVED',
    'ROUTING_TOO_LARGE',
    'PAYLOAD_TOO_LARGE',
    'SIGNING_REFUSED',
    'SIGNING_FAILED',
    'AUTHORITY_EXPIRED',
    'VAL_CHAIN_FORK',
    'SUBMISSION_REFUSED',
    'SUBMISSION_EXPIRED',
  ),
  ...validatorRefusals,
];

const stepAnswers = {
  200: json('The step, on a register of development.', resultSchema),
  202: json('An operation carries the step out.', operationStartedSchema, {
    location: 'Path of the operation.',
  }),
};

/** Mounts the submission of actions. */
export function mountActionRoutes(app: App, deps: ActionRouteDeps): void {
  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/instances/:instanceId/actions/:actionId/execute',
    operationId: 'executeAction',
    summary: 'Take an action of an instance',
    description:
      'Everything that is wrong with the step is refused before there is an operation. On a register of development ' +
      'the answer waits for the seal, up to 3 s.',
    params: executeParams,
    headers: delegationHeaders,
    body: { schema: executeBody, example: executeExample },
    bodyLimitBytes,
    idempotency: 'handler',
    noStore: true,
    answers: stepAnswers,
    refusals: stepRefusals,
    handle: async ({ caller, params, body, request, idempotencyKey }) => {
      if (body.instanceId !== undefined && body.instanceId !== params.instanceId)
        throw invalid('instanceId is not that of the path');
      if (body.actionId !== undefined && body.actionId !== params.actionId)
        throw invalid('actionId is not that of the path');
      const step = { ...params, ...stepOf(body), registerId: body.registerAddress };
      const subject = { caller, bearer: bearerOf(request) };
      const options = { idempotencyKey, delegationToken: delegationIn(request.headers) };
      return take(deps, subject, { ...step, blueprintId: body.blueprintId }, options);
    },
  });
  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/actions',
    operationId: 'submitAction',
    summary: 'Take an action; a starting one without an instance begins one',
    headers: delegationHeaders,
    body: { schema: submitBody, example: submitExample },
    bodyLimitBytes,
    idempotency: 'handler',
    noStore: true,
    answers: stepAnswers,
    refusals: [...stepRefusals, ...refusals('INSTANCE_REQUIRED', 'NOT_PUBLISHED', 'BLUEPRINT_NOT_AVAILABLE')],
    handle: async ({ caller, body, request, idempotencyKey }) => {
      const { instanceId, actionId, blueprintId, registerAddress } = body;
      const names = { instanceId: instanceId ?? undefined, actionId, blueprintId };
      const step = { ...names, ...stepOf(body), registerId: registerAddress };
      const subject = { caller, bearer: bearerOf(request) };
      const options = { idempotencyKey, delegationToken: delegationIn(request.headers) };
      return take(deps, subject, step, options);
    },
  });
}

type SharedBody = Pick<
  z.output<typeof executeBody>,
  'senderWallet' | 'previousTransactionHash' | 'payloadData' | 'files' | 'branchKey' | 'externalRecipientKeys'
>;

/** @throws AppError too_large PAYLOAD_TOO_LARGE */

function stepOf(body: SharedBody) {
  if (JSON.stringify(body.payloadData).length > mostPayloadCharacters) throw refusal('PAYLOAD_TOO_LARGE');
  return {
    kind: 'Action' as const,
    wallet: body.senderWallet,
    branchKey: body.branchKey,
    previousTxId: body.previousTransactionHash ?? undefined,
    input: { data: body.payloadData, externalRecipientKeys: body.externalRecipientKeys },
    // Repetitions are recognised by the whole request: without files it is what it was before there were any.
    ...(body.files.length > 0 && { files: body.files }),
  };
}

async function take(deps: ActionRouteDeps, subject: Subject, step: StepRequest, options: SubmitOptions) {
  const { operation, isDevelopment } = await submitStep(deps, subject, step, options);
  const { id } = operation;
  if (isDevelopment) {
    const ended = await deps.runner.waitForEnd(id, deps.boundedWaitMs);
    const result = ended && (await resultOf(deps, ended));
    if (result !== undefined) return answer(200, result);
  }
  return answer(202, presentStarted(operation), { location: `/api/operations/${id}` });
}

/** @throws AppError the one that the operation failed with */
async function resultOf(deps: ActionRouteDeps, operation: LeasedOperation) {
  const { failure, registerId, instanceId } = operation;
  if (failure !== undefined) throw storedRefusal(failure.code, failure.message);
  const pin = await findPin(deps, registerId, instanceId);
  if (pin === undefined) return undefined;
  const fileIds = await listFileIds(deps.db.read, operation.id);
  return presentResult(operation, await deps.definitions.get(registerId, pin), fileIds);
}

async function findPin(deps: ActionRouteDeps, registerId: string, instanceId: string) {
  const now = new Date(deps.clock.nowMs());
  return (await findInstance(deps.db.read, registerId, instanceId, now))?.pin;
}
