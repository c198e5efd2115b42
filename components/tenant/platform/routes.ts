import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { identifier } from '#core/identity/identifier.ts';
import { type App, callerOf, emptyAnswer, pageWindow, paging } from '#kit/http/http.ts';
import { refusal } from '../errors.ts';
import { organizationStatus } from '../organizations/routes.ts';
import { type StatusDeps, setStatus } from '../organizations/status.ts';
import { type CountedOrganization, findOrganization, pageOrganizations } from '../organizations/store.ts';
import { listUsers } from '../people/memberships/store.ts';
import { presentUser, userSchema } from '../people/users/present.ts';
import { originOf } from '../requests/origin.ts';
import {
  type PlatformState,
  readPlatform,
  setMaxOrganizations,
  setPublicOrganization,
} from './change-settings.ts';

const organizationSchema = z.object({
  id: identifier,
  name: z.string(),
  subdomain: z.string(),
  status: organizationStatus,
  orgType: z.enum(['Standard', 'Public']),
  isPlatformOrg: z.boolean(),
  userCount: z.int(),
  createdAt: z.string().describe('ISO 8601, UTC.'),
});

const settingsSchema = z.object({
  publicOrgEnabled: z.boolean(),
  maxOrgsPerUser: z.int().describe('Organisations that a person may create.'),
  publicOrgId: identifier,
  publicOrgStatus: organizationStatus,
  updatedAt: z.string().describe('ISO 8601, UTC.'),
});

const pages = paging({ defaultSize: 25, outOfRange: 'clamp' });
const pageOf = <S extends z.ZodType>(item: S) =>
  z.object({ items: z.array(item), totalCount: z.int(), page: z.int(), pageSize: z.int() });
const orgId = z.object({ orgId: identifier });
const reads = { policy: 'RequireSystemAdmin', rateLimit: 'Api' } as const;
const writes = { policy: 'RequireSystemAdmin', rateLimit: 'Strict' } as const;
const tags = ['Platform'];

/** Platform governance (specification document 1, section 4). */
export function mountPlatform(app: App, deps: StatusDeps): void {
  mountOrganizations(app, deps);
  mountSettings(app, deps);
}

function mountOrganizations(app: App, deps: StatusDeps): void {
  const filter = { status: organizationStatus.optional() };
  app.get(
    '/api/platform/organizations',
    {
      config: reads,
      schema: {
        operationId: 'listPlatformOrganizations',
        tags,
        querystring: pages.extend(filter),
        response: { 200: pageOf(organizationSchema) },
      },
    },
    async (request) => {
      const { page, pageSize, status } = request.query;
      const found = await pageOrganizations(deps.db.read, { status }, pageWindow(request.query));
      const items = found.organizations.map(presentOrganization);
      return { items, totalCount: found.totalCount, page, pageSize };
    },
  );
  app.get(
    '/api/platform/organizations/:orgId/users',
    {
      config: reads,
      schema: {
        operationId: 'listPlatformOrganizationUsers',
        tags,
        params: orgId,
        querystring: pages,
        response: { 200: pageOf(userSchema) },
      },
    },
    async (request) => {
      const { orgId } = request.params;
      const { read } = deps.db;
      if ((await findOrganization(read, orgId)) === undefined) throw refusal('ORGANIZATION_NOT_FOUND');
      const { users, totalCount } = await listUsers(read, orgId, pageWindow(request.query));
      return { items: users.map(presentUser), totalCount, ...request.query };
    },
  );
  app.put(
    '/api/platform/organizations/:orgId/status',
    {
      config: writes,
      schema: {
        operationId: 'updateOrganizationStatus',
        tags,
        params: orgId,
        body: z.object({ status: organizationStatus }),
        response: emptyAnswer('The status is set.'),
      },
    },
    async (request, reply) => {
      await setStatus(deps, {
        organizationId: request.params.orgId,
        status: request.body.status,
        by: callerOf(request),
        origin: originOf(request),
      });
      return reply.code(204).send();
    },
  );
}

function mountSettings(app: App, deps: StatusDeps): void {
  const response = { 200: settingsSchema };
  app.get(
    '/api/platform/settings',
    { config: reads, schema: { operationId: 'getPlatformSettings', tags, response } },
    async () => presentSettings(await readPlatform(deps.db.read)),
  );
  app.put(
    '/api/platform/settings/public-org',
    {
      config: writes,
      schema: {
        operationId: 'updatePublicOrganization',
        tags,
        body: z.object({ enabled: z.boolean() }),
        response,
      },
    },
    async (request) => {
      const act = { by: callerOf(request), origin: originOf(request) };
      return presentSettings(await setPublicOrganization(deps, { ...request.body, ...act }));
    },
  );
  app.put(
    '/api/platform/settings/max-orgs',
    {
      config: writes,
      schema: {
        operationId: 'updateOrganizationLimit',
        tags,
        body: z.object({ maxOrgsPerUser: z.int().min(1).max(100) }),
        response,
      },
    },
    async (request) => {
      const act = { by: callerOf(request), origin: originOf(request) };
      return presentSettings(await setMaxOrganizations(deps, { ...request.body, ...act }));
    },
  );
}

function presentOrganization(organization: CountedOrganization): z.output<typeof organizationSchema> {
  const { id, name, subdomain, status, orgType, isPlatformOrg, userCount } = organization;
  const createdAt = apiTimestamp(organization.createdAtMs);
  return { id, name, subdomain, status, orgType, isPlatformOrg, userCount, createdAt };
}

function presentSettings({ settings, publicOrganization }: PlatformState): z.output<typeof settingsSchema> {
  return {
    publicOrgEnabled: settings.publicOrgEnabled,
    maxOrgsPerUser: settings.maxOrgsPerUser,
    publicOrgId: publicOrganization.id,
    publicOrgStatus: publicOrganization.status,
    updatedAt: apiTimestamp(settings.updatedAtMs),
  };
}
