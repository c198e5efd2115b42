import { z } from 'zod';
import { drawMermaid } from '#core/blueprint/diagram/mermaid.ts';
import { drawDiagram } from '#core/blueprint/diagram/svg.ts';
import {
  type App,
  addRoute,
  answer,
  bearerOf,
  decimal,
  json,
  media,
  pageWindow,
  paging,
} from '#kit/http/http.ts';
import { findPublication } from '../definitions/publications/store.ts';
import { refusal, refusals } from '../errors.ts';
import { delegationHeaders, delegationIn } from './authority.ts';
import { type CreateDeps, createInstance } from './create.ts';
import { type PrefillDeps, readPrefill } from './prefill.ts';
import { presentAction, presentDefinition, presentInstance, presentNextActions } from './present.ts';
import { pinnedOf, type ReadDeps, readBranches, readInstance, readMarks, resolve } from './read.ts';
import {
  cancelBody,
  createBody,
  createExample,
  definitionSchema,
  instanceListSchema,
  instanceSchema,
  instanceStates,
  nextActionsSchema,
  ownActionSchema,
} from './schemas.ts';
import { cancelStart, findInstance, listInstances } from './store.ts';
import { creatorOf } from './view.ts';

export type InstanceRouteDeps = ReadDeps & CreateDeps & PrefillDeps;

const route = { tag: 'Instances', policy: 'RequireAuthenticated', rateLimit: 'Api' } as const;
const access = refusals(
  'INSTANCE_NOT_FOUND',
  'INSTANCE_ACCESS_DENIED',
  'INSTANCES_REBUILDING',
  'WALLETS_UNAVAILABLE',
);

const instanceId = z
  .uuid()
  .transform((text) => text.toLowerCase())
  .describe('The instance, a UUID.');
const instanceParams = z.object({ instanceId });
const actionParams = z.object({ instanceId, actionId: decimal({ min: 0, max: 1_000_000 }) });
const listQuery = paging().extend({ status: z.enum(instanceStates).optional() });
const diagramQuery = z.object({
  format: z.enum(['svg', 'mermaid']).default('svg').describe('svg: a picture; mermaid: its text form.'),
});

/** Mounts the creation and the reads of instances. */
export function mountInstanceRoutes(app: App, deps: InstanceRouteDeps): void {
  mountCreation(app, deps);
  mountReads(app, deps);
  mountActionReads(app, deps);
}

function mountCreation(app: App, deps: InstanceRouteDeps): void {
  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/instances/',
    operationId: 'createInstance',
    summary: 'Start an instance of a published workflow',
    description: 'Nothing is written to the register before the first action.',
    body: { schema: createBody, example: createExample },
    idempotency: 'handler',
    answers: { 201: json('The instance.', instanceSchema, { location: 'Path of the instance.' }) },
    refusals: refusals(
      'REGISTER_NOT_FOUND',
      'REGISTER_UNAVAILABLE',
      'NOT_PUBLISHED',
      'BLUEPRINT_NOT_AVAILABLE',
      'PIN_UNRESOLVABLE',
      'INSTANCE_NOT_FOUND',
      'INSTANCES_REBUILDING',
    ),
    handle: async ({ caller, body, request, idempotencyKey }) => {
      const subject = { caller, bearer: bearerOf(request) };
      const created = await createInstance(deps, subject, body, idempotencyKey);
      const now = new Date(deps.clock.nowMs());
      const instance = await findInstance(deps.db.read, created.registerId, created.instanceId, now);
      if (instance === undefined) throw refusal('INSTANCE_NOT_FOUND');
      const location = `/api/instances/${created.instanceId}`;
      return answer(201, presentInstance(instance, await resolve(deps, instance), { nowMs: now.getTime() }), {
        location,
      });
    },
  });
  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/instances/:instanceId/cancel',
    operationId: 'cancelInstance',
    summary: 'Give up an instance that has no step yet',
    params: instanceParams,
    body: { schema: cancelBody, example: { reason: 'created by mistake' } },
    answers: { 200: json('The instance.', instanceSchema) },
    refusals: [...access, ...refusals('INSTANCE_STARTED', 'INSTANCE_TERMINAL')],
    handle: async ({ caller, params, body, request }) => {
      const { instance } = await readInstance(deps, { caller, bearer: bearerOf(request) }, params.instanceId);
      const { start, state } = instance;
      const isOwn =
        start !== undefined &&
        (start.createdBy === creatorOf(caller) ||
          (start.organizationId !== undefined && start.organizationId === caller.organizationId));
      if (!isOwn) throw refusal('INSTANCE_ACCESS_DENIED');
      if (state === 'Completed' || state === 'Failed') throw refusal('INSTANCE_TERMINAL');
      const at = new Date(deps.clock.nowMs());
      const cancelled =
        state === 'Pending' &&
        (await deps.db.transact((tx) => cancelStart(tx, instance.instanceId, { reason: body.reason, at })));
      if (!cancelled) throw refusal('INSTANCE_STARTED');
      const after = await findInstance(deps.db.read, instance.registerId, instance.instanceId, at);
      return presentInstance(after ?? instance, await resolve(deps, instance), { nowMs: at.getTime() });
    },
  });
}

function mountReads(app: App, deps: InstanceRouteDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/instances',
    operationId: 'listInstances',
    summary: 'Instances that your wallets take part in or that you created, newest first',
    query: listQuery,
    answers: { 200: json('A page of instances.', instanceListSchema) },
    refusals: refusals('INSTANCES_REBUILDING', 'WALLETS_UNAVAILABLE'),
    handle: async ({ caller, query, request }) => {
      const wallets = await deps.listOwn(bearerOf(request));
      const wanted = { wallets, createdBy: creatorOf(caller), state: query.status, ...pageWindow(query) };
      const nowMs = deps.clock.nowMs();
      const { items, total } = await listInstances(deps.db.read, wanted, new Date(nowMs));
      const shown = await Promise.all(
        items.map(async (instance) => presentInstance(instance, await resolve(deps, instance), { nowMs })),
      );
      return { items: shown, totalCount: total, pageNumber: query.page, pageSize: query.pageSize };
    },
  });
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/instances/:instanceId',
    operationId: 'getInstance',
    summary: 'The instance',
    params: instanceParams,
    answers: { 200: json('The instance.', instanceSchema) },
    refusals: access,
    handle: async ({ caller, params, request }) => {
      const { instance } = await readInstance(deps, { caller, bearer: bearerOf(request) }, params.instanceId);
      // one moment for all of the answer: a deadline may pass while it is made
      const nowMs = deps.clock.nowMs();
      const branches = await readBranches(deps, instance, nowMs);
      return presentInstance(instance, await resolve(deps, instance), { nowMs, branches });
    },
  });
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/instances/:instanceId/definition',
    operationId: 'getInstanceDefinition',
    summary: 'The publication that the instance runs by',
    params: instanceParams,
    answers: { 200: json('The pin and its definition.', definitionSchema) },
    refusals: access,
    handle: async ({ caller, params, request }) => {
      const { instance } = await readInstance(deps, { caller, bearer: bearerOf(request) }, params.instanceId);
      const { registerId, blueprintId } = instance;
      const { publication } = await resolve(deps, instance);
      return presentDefinition(
        instance,
        publication,
        await findPublication(deps.db.read, { registerId, blueprintId }),
      );
    },
  });
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/instances/:instanceId/diagram',
    operationId: 'getInstanceDiagram',
    summary: 'The workflow as a picture, with the actions that are done, current, blocked or timed out',
    params: instanceParams,
    query: diagramQuery,
    answers: { 200: media('image/svg+xml', 'The picture.', { 'text/vnd.mermaid': z.string() }) },
    refusals: [...access, ...refusals('PIN_UNRESOLVABLE')],
    handle: async ({ caller, params, query, request }) => {
      const view = await readInstance(deps, { caller, bearer: bearerOf(request) }, params.instanceId);
      const pinned = pinnedOf(view);
      const marks = await readMarks(deps, view.instance, pinned);
      return query.format === 'svg'
        ? answer(200, drawDiagram(pinned.blueprint, marks), {
            'content-type': 'image/svg+xml; charset=utf-8',
          })
        : answer(200, drawMermaid(pinned.blueprint, marks), {
            'content-type': 'text/vnd.mermaid; charset=utf-8',
          });
    },
  });
}

function mountActionReads(app: App, deps: InstanceRouteDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/instances/:instanceId/next-actions',
    operationId: 'listNextActions',
    summary: 'The actions that may be taken next',
    params: instanceParams,
    answers: { 200: json('Current actions, ascending.', nextActionsSchema) },
    refusals: [...access, ...refusals('PIN_UNRESOLVABLE')],
    handle: async ({ caller, params, request }) => {
      const view = await readInstance(deps, { caller, bearer: bearerOf(request) }, params.instanceId);
      return presentNextActions(view.instance, pinnedOf(view), deps.clock.nowMs());
    },
  });
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/instances/:instanceId/actions/:actionId',
    operationId: 'getInstanceAction',
    summary: 'An action of the instance, from the definition that it runs by',
    params: actionParams,
    headers: delegationHeaders,
    noStore: true,
    answers: { 200: json('The action.', ownActionSchema) },
    refusals: [
      ...access,
      ...refusals('PIN_UNRESOLVABLE', 'ACTION_NOT_FOUND', 'REGISTER_UNAVAILABLE', 'DELEGATION_INVALID'),
    ],
    handle: async ({ caller, params: { instanceId: id, actionId }, request }) => {
      const subject = { caller, bearer: bearerOf(request) };
      const view = await readInstance(deps, subject, id);
      const action = presentAction(view.instance, pinnedOf(view), actionId, deps.clock.nowMs());
      const given = delegationIn(request.headers);
      const prefill = await readPrefill(deps, subject, { view, actionId }, given);
      return { ...action, prefill };
    },
  });
}
