import { z } from 'zod';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import { readableText } from '#core/encoding/readable.ts';
import type { Caller } from '#core/identity/claims.ts';
import { type App, addRoute, answer, empty, json } from '#kit/http/http.ts';
import { fieldErrors } from '../actions/schemas.ts';
import { getDraft, scopeOf } from '../definitions/drafts/drafts.ts';
import { refusal, refusals, validatorRefusals } from '../errors.ts';
import { startRehearsal } from './start.ts';
import { actAs, discard, lookAt, type Rehearsed, type StepDeps, takeStep } from './steps.ts';
import { findRehearsal, type Rehearsal, rehearsalStatuses } from './store.ts';
import { logKinds, stepStatuses } from './walk.ts';

const text = z.string();
const instant = text.describe('ISO 8601, UTC.');

const routeSchema = z.object({
  actionId: z.int(),
  routeId: text,
  nextActionIds: z.array(z.int()),
});

const rehearsalSchema = z
  .object({
    rehearsalId: text,
    blueprintId: text,
    execDefHash: text.describe('What the draft did at the start; a pass counts for it.'),
    mode: z.literal('full'),
    sandboxRegisterId: text,
    instanceId: text,
    currentActingRole: text.describe('Participant; behind each step the sender of the next action.'),
    status: z.enum(rehearsalStatuses),
    outcome: z.enum(rehearsalStatuses).describe('The same as status.'),
    steps: z.array(
      z.object({ actionId: z.int(), title: text, actingRole: text, status: z.enum(stepStatuses) }),
    ),
    log: z.array(z.object({ at: instant, kind: z.enum(logKinds), message: text, txId: text.optional() })),
    routesTaken: z.array(routeSchema).describe('In the order of the steps.'),
    routesNotTaken: z.array(routeSchema).describe('Routes that no step has taken.'),
    startedAt: instant,
    endedAt: instant.optional(),
  })
  .meta({ id: 'Rehearsal' });

const startBody = z.strictObject({ mode: text.min(1).max(64).describe('full: every role is played.') });
const roleBody = z.strictObject({ role: text.min(1).max(64).describe('A participant.') });
const stepBody = z.strictObject({
  actionId: z.int().min(0).max(1_000_000),
  payload: z
    .custom<JsonObject>(isJsonObject, 'an object')
    .default({})
    .describe('Data of the action; of a rejection, what its schema takes.'),
  rejection: z
    .strictObject({ reason: readableText.min(1).max(1_000).optional(), fieldErrors })
    .optional()
    .describe('Rejects what the action decides on.'),
});

const shared = { tag: 'Rehearsals', policy: 'CanManageBlueprints', rateLimit: 'Api' } as const;
const params = z.object({ id: text, rehearsalId: z.uuid().transform((id) => id.toLowerCase()) });
const answers = { 200: json('The rehearsal.', rehearsalSchema) };
const ofOne = refusals(
  'REHEARSAL_NOT_FOUND',
  'ORGANIZATION_REQUIRED',
  'PIN_UNRESOLVABLE',
  'INSTANCES_REBUILDING',
);

/** Mounts the rehearsal of drafts. */
export function mountRehearsalRoutes(app: App, deps: StepDeps): void {
  const resource = ({ caller, params: named }: { readonly caller: Caller; readonly params: Named }) =>
    getRehearsal(deps, caller, named);
  const path = '/api/blueprints/:id/rehearsals/:rehearsalId';
  mountStart(app, deps);
  addRoute(app, {
    ...shared,
    method: 'GET',
    path,
    operationId: 'getRehearsal',
    summary: 'A rehearsal: what was done, what happened, and which routes were never taken',
    params,
    resource,
    noStore: true,
    answers,
    refusals: ofOne,
    handle: async ({ resource: found }) => present(await lookAt(deps, found)),
  });
  addRoute(app, {
    ...shared,
    method: 'DELETE',
    path,
    operationId: 'stopRehearsal',
    summary: 'Abandon a rehearsal; the sandbox register stays',
    params,
    resource,
    answers: { 204: empty('The rehearsal has ended.') },
    refusals: ofOne,
    handle: ({ resource: found }) => discard(deps, found),
  });
  addRoute(app, {
    ...shared,
    method: 'POST',
    path: `${path}/role`,
    operationId: 'switchRehearsalRole',
    summary: 'Choose the participant that acts next',
    params,
    body: { schema: roleBody, example: { role: 'applicant' } },
    resource,
    noStore: true,
    answers,
    refusals: [...ofOne, ...refusals('REHEARSAL_ENDED', 'ROLE_UNKNOWN')],
    handle: async ({ resource: found, body }) => present(await actAs(deps, found, body.role)),
  });
  mountSteps(app, deps);
}

function mountStart(app: App, deps: StepDeps): void {
  addRoute(app, {
    ...shared,
    method: 'POST',
    path: '/api/blueprints/:id/rehearsals',
    operationId: 'startRehearsal',
    summary: 'Rehearse the draft in the sandbox of your organisation',
    description:
      'Publishes a copy of the definition in a register in development mode, with a new wallet for each role. The ' +
      'rehearsal of the same draft that you have under way is abandoned.',
    params: z.object({ id: text }),
    body: { schema: startBody, example: { mode: 'full' } },
    resource: ({ caller, params: named }) => getDraft(deps, caller, named.id),
    noStore: true,
    answers: { 201: json('The rehearsal.', rehearsalSchema, { location: 'Path of the rehearsal.' }) },
    refusals: [
      {
        code: 'BLUEPRINT_INVALID',
        kind: 'conflict',
        message: 'The definition has faults; `errors` lists them.',
      },
      { code: 'VAL_BP_*', kind: 'unprocessable', message: 'The definition needs a service that is absent.' },
      ...refusals('BLUEPRINT_NOT_FOUND', 'ORGANIZATION_REQUIRED', 'DRAFT_JUDGING_BUSY'),
      ...refusals('REHEARSAL_MODE_UNSUPPORTED', 'REHEARSAL_LIMIT', 'REHEARSAL_ENDED', 'PIN_UNRESOLVABLE'),
      ...refusals('REGISTER_UNAVAILABLE', 'REGISTER_REFUSED', 'GOVERNANCE_ROSTER_NOT_SEALED'),
      ...refusals('WALLETS_UNAVAILABLE', 'REGISTER_NOT_FOUND', 'BLUEPRINT_NOT_AVAILABLE'),
      ...refusals('PUBLISH_ROLE_REQUIRED'),
    ],
    handle: async ({ caller, body, resource: draft }) => {
      if (body.mode !== 'full') throw refusal('REHEARSAL_MODE_UNSUPPORTED');
      const rehearsal = await startRehearsal(deps, caller, draft);
      const location = `/api/blueprints/${draft.id}/rehearsals/${rehearsal.id}`;
      return answer(201, present(await lookAt(deps, rehearsal)), { location });
    },
  });
}

function mountSteps(app: App, deps: StepDeps): void {
  addRoute(app, {
    ...shared,
    method: 'POST',
    path: '/api/blueprints/:id/rehearsals/:rehearsalId/steps',
    operationId: 'submitRehearsalStep',
    summary: 'Take a step as the acting role',
    description:
      'Evaluated, signed, judged and sealed like other steps. The answer waits up to 10 s for the seal.',
    params,
    body: {
      schema: stepBody,
      example: { actionId: 0, payload: { siteReference: 'AB-1234', floorAreaM2: 620 } },
    },
    resource: ({ caller, params: named }) => getRehearsal(deps, caller, named),
    noStore: true,
    answers,
    refusals: [
      ...ofOne,
      ...refusals('REHEARSAL_ENDED', 'STEP_NOT_CURRENT', 'ROLE_MISMATCH', 'PAYLOAD_INVALID'),
      ...refusals('REJECTION_NOT_ALLOWED', 'REJECTION_REASON_REQUIRED', 'PAYLOAD_TOO_LARGE'),
      ...refusals('REGISTER_NOT_FOUND', 'REGISTER_UNAVAILABLE', 'VALIDATOR_TOO_OLD', 'WALLETS_UNAVAILABLE'),
      ...refusals('SIGNING_REFUSED', 'SIGNING_FAILED', 'AUTHORITY_EXPIRED', 'SUBMISSION_EXPIRED'),
      ...refusals('INSTANCE_NOT_FOUND', 'WALLET_NOT_OWNED', 'SENDER_NOT_PARTICIPANT'),
      ...validatorRefusals,
    ],
    handle: async ({ resource: found, body }) => present(await takeStep(deps, found, body)),
  });
}

type Named = z.output<typeof params>;

/** A rehearsal of the draft of a path; callers of another organisation do not find it. */
async function getRehearsal(deps: Pick<StepDeps, 'db'>, caller: Caller, named: Named): Promise<Rehearsal> {
  const { organizationId } = scopeOf(caller);
  const found = await findRehearsal(deps.db.read, named.rehearsalId);
  const isInScope = organizationId === undefined || found?.organizationId === organizationId;
  if (found?.stage === undefined || found.draftId !== named.id || !isInScope)
    throw refusal('REHEARSAL_NOT_FOUND');
  return found;
}

function present({ rehearsal, stage, walk, actingRole }: Rehearsed) {
  const { status, endedAt } = rehearsal;
  return {
    rehearsalId: rehearsal.id,
    blueprintId: rehearsal.blueprintId,
    execDefHash: rehearsal.execDefHash,
    mode: 'full' as const,
    sandboxRegisterId: stage.registerId,
    instanceId: stage.instanceId,
    currentActingRole: actingRole,
    status,
    outcome: status,
    ...walk,
    startedAt: rehearsal.startedAt.toISOString(),
    ...(endedAt !== undefined && { endedAt: endedAt.toISOString() }),
  };
}
