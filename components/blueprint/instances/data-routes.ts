import { z } from 'zod';
import { type App, addRoute, bearerOf, decimal, json } from '#kit/http/http.ts';
import type { Subject } from '../definitions/publications/visibility.ts';
import { refusal, refusals } from '../errors.ts';
import {
  accumulate,
  type InstanceOf,
  lastSteps,
  type StateDeps,
  type StepView,
  type Viewer,
  viewSteps,
} from './accumulated-state.ts';
import { type AuthorityDeps, delegationHeaders, delegationIn, delegationOf } from './authority.ts';
import { getAction } from './definitions.ts';
import { currentActions } from './instance.ts';
import { pinnedOf, type ReadDeps, readBranches, readInstance } from './read.ts';
import { findInstances, listSteps } from './store.ts';
import { type InstanceView, viewOf } from './view.ts';

export interface DataRouteDeps extends ReadDeps, StateDeps, AuthorityDeps {}

const route = { tag: 'Instances', policy: 'RequireAuthenticated', rateLimit: 'Api', noStore: true } as const;
const text = z.string();
const time = text.describe('ISO 8601, UTC.');
const instanceId = z
  .uuid()
  .transform((id) => id.toLowerCase())
  .describe('The instance, a UUID.');
const data = z.record(text, z.unknown());

const stateSchema = z
  .object({
    instanceId: text,
    actionCount: z.int().describe('Actions that were taken, without rejections.'),
    previousTransactionId: text.nullable(),
    actions: z.record(text, z.object({ txId: text, sealedAt: time, data })),
    merged: data.describe('All of it; members of later actions replace those of earlier ones.'),
    branchStates: z.record(text, text),
    missing: z.array(z.int()).describe('Actions of which you read nothing.'),
  })
  .meta({ id: 'InstanceData' });

const disclosuresSchema = z
  .object({
    instanceId: text,
    actionId: z.int().nullable(),
    registerId: text,
    recipientResolved: z.boolean(),
    disclosures: z.array(z.object({ actionId: z.int(), actionTitle: text, disclosedAt: time, data })),
    disclosedFields: data,
    warnings: z.array(z.object({ actionId: z.int(), code: z.literal('DECRYPT_FAILED') })),
  })
  .meta({ id: 'Disclosures' });

const access = refusals(
  'INSTANCES_REBUILDING',
  'INSTANCE_NOT_FOUND',
  'PIN_UNRESOLVABLE',
  'WALLETS_UNAVAILABLE',
  'REGISTER_UNAVAILABLE',
  'DELEGATION_INVALID',
);

/** Mounts what callers read of the data of instances: their own view alone. */
export function mountDataRoutes(app: App, deps: DataRouteDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/instances/:instanceId/state',
    operationId: 'getInstanceState',
    summary: 'The data of the instance that was disclosed to you',
    params: z.object({ instanceId }),
    headers: delegationHeaders,
    answers: { 200: json('Your view of the data.', stateSchema) },
    refusals: [...access, ...refusals('INSTANCE_ACCESS_DENIED')],
    handle: async ({ caller, params, request }) => {
      const subject = { caller, bearer: bearerOf(request) };
      const view = await readInstance(deps, subject, params.instanceId);
      const where = { instance: view.instance, pinned: pinnedOf(view) };
      return readState(deps, where, viewerOf(deps, subject, view, delegationIn(request.headers)));
    },
  });
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/workflows/:instanceId/disclosures',
    operationId: 'listDisclosures',
    summary: 'What earlier actions disclosed to you',
    params: z.object({ instanceId }),
    headers: delegationHeaders,
    answers: { 200: json('Disclosures, the oldest first.', disclosuresSchema) },
    refusals: access,
    handle: ({ caller, params, request }) =>
      readDisclosures(deps, { caller, bearer: bearerOf(request) }, params, delegationIn(request.headers)),
  });
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/workflows/:instanceId/actions/:actionId/disclosures',
    operationId: 'listActionDisclosures',
    summary: 'What actions before this one disclosed to you',
    params: z.object({ instanceId, actionId: decimal({ min: 0, max: 1_000_000 }) }),
    headers: delegationHeaders,
    answers: { 200: json('Disclosures, the oldest first.', disclosuresSchema) },
    refusals: [...access, ...refusals('ACTION_NOT_FOUND')],
    handle: ({ caller, params, request }) =>
      readDisclosures(deps, { caller, bearer: bearerOf(request) }, params, delegationIn(request.headers)),
  });
}

/** The authority is obtained once, and only when something has to be decrypted. */
function viewerOf(
  deps: DataRouteDeps,
  subject: Subject,
  { wallets }: Pick<InstanceView, 'wallets'>,
  given: string | undefined,
): Viewer {
  let delegated: Promise<string> | undefined;
  const authority = () => {
    delegated ??= delegationOf(deps, subject, given).then(({ token }) => token);
    return delegated;
  };
  return { wallets, authority };
}

async function readState(
  deps: DataRouteDeps,
  where: InstanceOf,
  viewer: Viewer,
): Promise<z.output<typeof stateSchema>> {
  const { instance } = where;
  const steps = await listSteps(deps.db.read, instance.registerId, instance.instanceId);
  const state = accumulate(await viewSteps(deps, where, lastSteps(steps, undefined), viewer));
  const actions = [...state.actions].map(([id, { step, data: own }]) => [
    String(id),
    { txId: step.txId, sealedAt: step.sealedAt.toISOString(), data: own },
  ]);
  const branches = await readBranches(deps, instance);
  return {
    instanceId: instance.instanceId,
    actionCount: instance.completedCount,
    previousTransactionId: instance.lastTxId ?? null,
    actions: Object.fromEntries(actions),
    merged: state.merged,
    branchStates: Object.fromEntries(branches.map((branch) => [branch.id, branch.state])),
    missing: [...state.missing],
  };
}

/**
 * What was disclosed to the caller; a caller who is no recipient gets an empty answer.
 * @throws AppError not_found INSTANCE_NOT_FOUND, ACTION_NOT_FOUND, conflict PIN_UNRESOLVABLE
 */
async function readDisclosures(
  deps: DataRouteDeps,
  subject: Subject,
  { instanceId: id, actionId }: { readonly instanceId: string; readonly actionId?: number },
  given: string | undefined,
): Promise<z.output<typeof disclosuresSchema>> {
  const view = await findOwnView(deps, subject, id);
  const { instance, participants } = view;
  const pinned = pinnedOf(view);
  if (actionId !== undefined) getAction(pinned, actionId);
  const [current] = currentActions(instance, pinned.workflow);
  const isRecipient = participants.length > 0;
  const steps = isRecipient ? await listSteps(deps.db.read, instance.registerId, instance.instanceId) : [];
  const viewer = viewerOf(deps, subject, view, given);
  const views = await viewSteps(deps, { instance, pinned }, steps, viewer);
  const disclosures = views.flatMap(({ step, data: own }) =>
    own === undefined
      ? []
      : [
          {
            actionId: step.actionId,
            actionTitle: getAction(pinned, step.actionId).title,
            disclosedAt: step.sealedAt.toISOString(),
            data: own,
          },
        ],
  );
  return {
    instanceId: instance.instanceId,
    actionId: actionId ?? current?.actionId ?? null,
    registerId: instance.registerId,
    recipientResolved: isRecipient,
    disclosures,
    disclosedFields: mergedOf(views),
    warnings: views.flatMap(({ step, isUnopened }) =>
      isUnopened ? [{ actionId: step.actionId, code: 'DECRYPT_FAILED' as const }] : [],
    ),
  };
}

/** The data of actions; what rejections say is no field of the workflow. */
function mergedOf(views: readonly StepView[]) {
  return accumulate(views.filter(({ step }) => !step.isRejection)).merged;
}

/** The instance that the caller takes part in, else the first one of the id. */
async function findOwnView(deps: DataRouteDeps, { bearer }: Subject, id: string): Promise<InstanceView> {
  const candidates = await findInstances(deps.db.read, id, new Date(deps.clock.nowMs()));
  const wallets = await deps.listOwn(bearer);
  const views = await Promise.all(candidates.map((instance) => viewOf(deps, instance, wallets)));
  const view = views.find(({ participants }) => participants.length > 0) ?? views[0];
  if (view === undefined) throw refusal('INSTANCE_NOT_FOUND');
  return view;
}
