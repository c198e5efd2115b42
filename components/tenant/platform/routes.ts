import { z } from 'zod';
import { identifier } from '#core/identity/identifier.ts';
import { type App, addRoute, empty, json, pageWindow, paging } from '#kit/http/http.ts';
import { refusals } from '../errors.ts';
import { getOrganization } from '../organizations/authority.ts';
import { organizationStatus } from '../organizations/schemas.ts';
import { type StatusDeps, setStatus } from '../organizations/status.ts';
import { pageOrganizations } from '../organizations/store.ts';
import { listUsers } from '../people/memberships/store.ts';
import { presentUser, userSchema } from '../people/users/schemas.ts';
import { originOf } from '../requests/origin.ts';
import { readPlatform, setMaxOrganizations, setPublicOrganization } from './change-settings.ts';
import {
  countedOrganizationSchema,
  presentCountedOrganization,
  presentSettings,
  settingsSchema,
} from './schemas.ts';

const pages = paging({ defaultSize: 25, outOfRange: 'clamp' });
const pageOf = <S extends z.ZodType>(item: S) =>
  z.object({ items: z.array(item), totalCount: z.int(), page: z.int(), pageSize: z.int() });
const ofOrganization = z.object({ orgId: identifier });
const route = { tag: 'Platform', policy: 'RequireSystemAdmin' } as const;
const reads = { ...route, method: 'GET', rateLimit: 'Api' } as const;
const changes = { ...route, method: 'PUT', rateLimit: 'Strict' } as const;

/** Platform governance (specification document 1, section 4). */
export function mountPlatform(app: App, deps: StatusDeps): void {
  mountOrganizations(app, deps);
  mountSettings(app, deps);
}

function mountOrganizations(app: App, deps: StatusDeps): void {
  addRoute(app, {
    ...reads,
    path: '/api/platform/organizations',
    operationId: 'listPlatformOrganizations',
    summary: 'All organisations, with the number of their users',
    query: pages.extend({ status: organizationStatus.optional() }),
    answers: { 200: json('A page of organisations.', pageOf(countedOrganizationSchema)) },
    refusals: [],
    handle: async ({ query }) => {
      const { page, pageSize, status } = query;
      const found = await pageOrganizations(deps.db.read, { status }, pageWindow(query));
      const items = found.organizations.map(presentCountedOrganization);
      return { items, totalCount: found.totalCount, page, pageSize };
    },
  });
  addRoute(app, {
    ...reads,
    path: '/api/platform/organizations/:orgId/users',
    operationId: 'listPlatformOrganizationUsers',
    summary: 'Users of any organisation',
    params: ofOrganization,
    query: pages,
    resource: ({ params }) => getOrganization(deps.db.read, params.orgId),
    answers: { 200: json('A page of users.', pageOf(userSchema)) },
    refusals: refusals('ORGANIZATION_NOT_FOUND'),
    handle: async ({ resource, query }) => {
      const { users, totalCount } = await listUsers(deps.db.read, resource.id, pageWindow(query));
      return { items: users.map(presentUser), totalCount, ...query };
    },
  });
  addRoute(app, {
    ...changes,
    path: '/api/platform/organizations/:orgId/status',
    operationId: 'updateOrganizationStatus',
    summary: 'Suspend or reactivate an organisation',
    params: ofOrganization,
    body: { schema: z.object({ status: organizationStatus }), example: { status: 'Suspended' } },
    answers: { 204: empty('The status is set.') },
    refusals: refusals('ORGANIZATION_NOT_FOUND', 'PLATFORM_ORG_PROTECTED', 'PUBLIC_ORG_DISABLED'),
    handle: ({ caller, params, body, request }) =>
      setStatus(deps, {
        organizationId: params.orgId,
        status: body.status,
        by: caller,
        origin: originOf(request),
      }),
  });
}

function mountSettings(app: App, deps: StatusDeps): void {
  const shared = {
    answers: { 200: json('The settings.', settingsSchema) },
    refusals: refusals('ORGANIZATION_NOT_FOUND'),
  } as const;
  addRoute(app, {
    ...reads,
    ...shared,
    path: '/api/platform/settings',
    operationId: 'getPlatformSettings',
    summary: 'Settings of the platform',
    handle: async () => presentSettings(await readPlatform(deps.db.read)),
  });
  addRoute(app, {
    ...changes,
    ...shared,
    path: '/api/platform/settings/public-org',
    operationId: 'updatePublicOrganization',
    summary: 'Open or close the Public organisation',
    body: { schema: z.object({ enabled: z.boolean() }), example: { enabled: true } },
    handle: async ({ caller, body, request }) => {
      const change = { ...body, by: caller, origin: originOf(request) };
      return presentSettings(await setPublicOrganization(deps, change));
    },
  });
  addRoute(app, {
    ...changes,
    ...shared,
    path: '/api/platform/settings/max-orgs',
    operationId: 'updateOrganizationLimit',
    summary: 'Set how many organisations a person may create',
    body: {
      schema: z.object({ maxOrgsPerUser: z.int().min(1).max(100) }),
      example: { maxOrgsPerUser: 5 },
    },
    handle: async ({ caller, body, request }) => {
      const change = { ...body, by: caller, origin: originOf(request) };
      return presentSettings(await setMaxOrganizations(deps, change));
    },
  });
}
