import { z } from 'zod';
import { readableLine } from '#core/encoding/readable.ts';
import { identifier } from '#core/identity/identifier.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import { type App, addRoute, answer, json } from '#kit/http/http.ts';
import { refusals } from '../errors.ts';
import { originOf } from '../requests/origin.ts';
import { type CreateOrganizationDeps, createOrganization } from './create.ts';
import { getOpenOrganization, getVisibleOrganization, listVisibleOrganizations } from './list.ts';
import { newOrganizationSchema, organizationSchema, presentOrganization } from './schemas.ts';

interface OrganizationDeps extends CreateOrganizationDeps {
  readonly idempotency: Idempotency;
}

const tag = 'Organizations';

export function mountOrganizations(app: App, deps: OrganizationDeps): void {
  mountReads(app, deps);
  addRoute(app, {
    method: 'POST',
    path: '/api/organizations',
    operationId: 'createOrganization',
    tag,
    summary: 'Create an organisation with the caller as its administrator',
    policy: 'RequireAuthenticated',
    rateLimit: 'Strict',
    body: {
      schema: newOrganizationSchema,
      example: { name: 'Analytical Engines', subdomain: 'engines', branding: { primaryColor: '#1a2b3c' } },
    },
    idempotency: deps.idempotency,
    answers: { 201: json('The organisation; Location has its path.', organizationSchema) },
    refusals: [
      ...refusals('SUBDOMAIN_RESERVED', 'SUBDOMAIN_CONFLICT', 'EMAIL_NOT_VERIFIED', 'ORG_LIMIT_REACHED'),
      ...refusals('USER_NOT_FOUND'),
    ],
    handle: async ({ caller, body, request }) => {
      const created = await createOrganization(deps, caller, { ...body, origin: originOf(request) });
      return answer(201, presentOrganization(created), { location: `/api/organizations/${created.id}` });
    },
  });
}

function mountReads(app: App, deps: OrganizationDeps): void {
  addRoute(app, {
    method: 'GET',
    path: '/api/organizations',
    operationId: 'listOrganizations',
    tag,
    summary: 'Organisations of the caller; all for a system administrator',
    policy: 'RequireAdministrator',
    rateLimit: 'Api',
    answers: { 200: json('The organisations.', z.object({ organizations: z.array(organizationSchema) })) },
    refusals: [],
    handle: async ({ caller }) => {
      const organizations = await listVisibleOrganizations(deps.db.read, caller);
      return { organizations: organizations.map(presentOrganization) };
    },
  });
  addRoute(app, {
    method: 'GET',
    path: '/api/organizations/:id',
    operationId: 'getOrganization',
    tag,
    summary: 'One organisation, for its members',
    policy: 'RequireAuthenticated',
    rateLimit: 'Api',
    params: z.object({ id: identifier }),
    resource: ({ caller, params }) => getVisibleOrganization(deps.db.read, caller, params.id),
    answers: { 200: json('The organisation.', organizationSchema) },
    refusals: refusals('ORGANIZATION_NOT_FOUND'),
    handle: ({ resource }) => presentOrganization(resource),
  });
  addRoute(app, {
    method: 'GET',
    path: '/api/organizations/by-subdomain/:subdomain',
    operationId: 'getOrganizationBySubdomain',
    tag,
    summary: 'The active organisation of a subdomain, for a sign-in page',
    policy: 'Anonymous',
    rateLimit: 'Api',
    params: z.object({ subdomain: readableLine.max(64) }),
    resource: ({ params }) => getOpenOrganization(deps.db.read, params.subdomain),
    answers: { 200: json('The organisation.', organizationSchema) },
    refusals: refusals('ORGANIZATION_NOT_FOUND'),
    handle: ({ resource }) => presentOrganization(resource),
  });
}
