import { z } from 'zod';
import { type App, addRoute, bearerOf, decimal, json } from '#kit/http/http.ts';
import { refusals } from '../errors.ts';
import { accumulate, type InstanceOf, lastSteps, type Viewer, viewSteps } from './accumulated-state.ts';
import { delegationHeaders, delegationIn, viewerOf } from './authority.ts';
import { type DisclosureDeps, disclosureQuery, disclosuresSchema, readDisclosures } from './disclosures.ts';
import { pinnedOf, type ReadDeps, readBranches, readInstance } from './read.ts';
import { listSteps } from './store.ts';

export interface DataRouteDeps extends ReadDeps, DisclosureDeps {}

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

const access = refusals(
  'INSTANCES_REBUILDING',
  'INSTANCE_NOT_FOUND',
  'PIN_UNRESOLVABLE',
  'WALLETS_UNAVAILABLE',
  'REGISTER_UNAVAILABLE',
  'DELEGATION_INVALID',
);

const ofDisclosures = [...access, ...refusals('TX_NOT_FOUND')];
const proofText =
  'With `proof=true` each disclosure has files that `chancery disclosure` verifies offline: they show your groups of ' +
  'the step to others. A register in development mode encrypts nothing, and has none.';

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
    description: proofText,
    params: z.object({ instanceId }),
    query: disclosureQuery,
    headers: delegationHeaders,
    answers: { 200: json('Disclosures, the oldest first.', disclosuresSchema) },
    refusals: ofDisclosures,
    handle: ({ caller, params, query, request }) => {
      const subject = { caller, bearer: bearerOf(request) };
      return readDisclosures(deps, subject, { ...params, ...query }, delegationIn(request.headers));
    },
  });
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/workflows/:instanceId/actions/:actionId/disclosures',
    operationId: 'listActionDisclosures',
    summary: 'What actions before this one disclosed to you',
    description: proofText,
    params: z.object({ instanceId, actionId: decimal({ min: 0, max: 1_000_000 }) }),
    query: disclosureQuery,
    headers: delegationHeaders,
    answers: { 200: json('Disclosures, the oldest first.', disclosuresSchema) },
    refusals: [...ofDisclosures, ...refusals('ACTION_NOT_FOUND')],
    handle: ({ caller, params, query, request }) => {
      const subject = { caller, bearer: bearerOf(request) };
      return readDisclosures(deps, subject, { ...params, ...query }, delegationIn(request.headers));
    },
  });
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
  const branches = await readBranches(deps, instance, deps.clock.nowMs());
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
