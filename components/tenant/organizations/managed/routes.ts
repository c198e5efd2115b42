import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Caller } from '#core/identity/claims.ts';
import { identifier } from '#core/identity/identifier.ts';
import type { Reader } from '#kit/db/db.ts';
import { type App, addRoute, answer, empty, json } from '#kit/http/http.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal, refusals } from '../../errors.ts';
import { originOf } from '../../requests/origin.ts';
import { organizationStatus } from '../schemas.ts';
import type { Act, StatusDeps } from '../status.ts';
import type { ManagedOrganization } from './organization.ts';
import { deletionPolicies, releaseOrganization, setManagedStatus } from './release.ts';
import { managedSchema, presentManaged, specSchema } from './schemas.ts';
import { findManaged, type ManagedKey } from './store.ts';
import { upsertOrganization } from './upsert.ts';

const base = '/api/internal/organizations';
const route = {
  tag: 'Internal',
  policy: 'RequireOperator',
  rateLimit: 'none',
  scope: 'organizations:write',
} as const;
const exampleUid = 'c0a8012e-6f0d-4c58-9d5e-2b7f3a1e9c44';

/** Organisations of custom resources, for the operator only. */
export function mountManaged(app: App, deps: StatusDeps): void {
  mountUpsert(app, deps);
  mountReads(app, deps);
  mountChanges(app, deps);
}

function mountUpsert(app: App, deps: StatusDeps): void {
  addRoute(app, {
    ...route,
    method: 'POST',
    path: base,
    operationId: 'upsertManagedOrganization',
    summary: 'Create, adopt or update the organisation of a custom resource',
    body: {
      schema: specSchema,
      example: { resourceUid: exampleUid, name: 'Analytical Engines', subdomain: 'engines' },
    },
    answers: {
      200: json('The organisation existed.', managedSchema),
      201: json('The organisation is created.', managedSchema),
    },
    refusals: [
      ...refusals('SUBDOMAIN_RESERVED', 'SUBDOMAIN_CONFLICT', 'IMMUTABLE_FIELD', 'ADOPTION_MISMATCH'),
      ...refusals('ORGANIZATION_NOT_FOUND', 'ORGANIZATION_BOUND', 'ORGANIZATION_DELETED'),
      ...refusals('PLATFORM_ORG_PROTECTED', 'PUBLIC_ORG_DISABLED'),
    ],
    handle: async ({ caller, body, request }) => {
      const { organization, created } = await upsertOrganization(deps, body, actorOf({ caller, request }));
      return answer(created ? 201 : 200, presentManaged(organization));
    },
  });
}

function mountReads(app: App, deps: StatusDeps): void {
  const reads = {
    ...route,
    method: 'GET',
    answers: { 200: json('The organisation; a deleted one is Terminating.', managedSchema) },
    refusals: refusals('ORGANIZATION_NOT_FOUND'),
  } as const;
  addRoute(app, {
    ...reads,
    path: `${base}/:organizationId`,
    operationId: 'getManagedOrganization',
    summary: 'One organisation by its id',
    params: z.object({ organizationId: identifier }),
    resource: managedOrganization(() => deps.db.read),
    handle: ({ resource }) => presentManaged(resource),
  });
  addRoute(app, {
    ...reads,
    path: `${base}/by-uid/:resourceUid`,
    operationId: 'getManagedOrganizationByUid',
    summary: 'The organisation of a custom resource',
    params: z.object({ resourceUid: identifier }),
    resource: managedOrganization(() => deps.db.read),
    handle: ({ resource }) => presentManaged(resource),
  });
}

function mountChanges(app: App, deps: StatusDeps): void {
  addRoute(app, {
    ...route,
    method: 'PUT',
    path: `${base}/by-uid/:resourceUid/status`,
    operationId: 'updateManagedOrganizationStatus',
    summary: 'Suspend or reactivate the organisation of a custom resource',
    params: z.object({ resourceUid: identifier }),
    body: { schema: z.object({ status: organizationStatus }), example: { status: 'Suspended' } },
    answers: { 200: json('The organisation.', managedSchema) },
    refusals: [
      ...refusals('ORGANIZATION_NOT_FOUND', 'ORGANIZATION_DELETED'),
      ...refusals('PLATFORM_ORG_PROTECTED', 'PUBLIC_ORG_DISABLED'),
    ],
    handle: async ({ caller, params, body, request }) => {
      const change = { ...params, status: body.status };
      return presentManaged(await setManagedStatus(deps, change, actorOf({ caller, request })));
    },
  });
  addRoute(app, {
    ...route,
    method: 'DELETE',
    path: `${base}/by-uid/:resourceUid`,
    operationId: 'releaseManagedOrganization',
    summary: 'Release the organisation of a deleted custom resource',
    params: z.object({ resourceUid: identifier }),
    query: z.object({ policy: z.enum(deletionPolicies) }),
    answers: { 204: empty('The organisation is released.') },
    refusals: refusals('PLATFORM_ORG_PROTECTED'),
    handle: async ({ caller, params, query, request }) => {
      await releaseOrganization(deps, { ...params, policy: query.policy }, actorOf({ caller, request }));
    },
  });
}

interface OperatorRequest {
  readonly caller: Caller;
  readonly request: FastifyRequest;
}

function actorOf({ caller, request }: OperatorRequest): Pick<Act, 'by' | 'origin'> {
  return { by: caller, origin: originOf(request) };
}

/** `resource` of a route: the organisation that the path names by id or uid, also a deleted one. */
function managedOrganization(db: () => Reader<TenantDatabase>) {
  return async ({ params }: { readonly params: ManagedKey }): Promise<ManagedOrganization> => {
    const organization = await findManaged(db(), params);
    if (organization === undefined) throw refusal('ORGANIZATION_NOT_FOUND');
    return organization;
  };
}
