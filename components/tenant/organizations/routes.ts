import { z } from 'zod';
import { readableLine, readableName } from '#core/encoding/readable.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { identifier } from '#core/identity/identifier.ts';
import type { Database } from '#kit/db/db.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import { type App, callerOf, idempotencyHeaders } from '#kit/http/http.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { originOf } from '../requests/origin.ts';
import { repeatable } from '../requests/repeatable.ts';
import { type CreateOrganizationDeps, createOrganization } from './create.ts';
import { getOpenOrganization, getVisibleOrganization, listVisibleOrganizations } from './list.ts';
import { type Organization, subdomainPattern } from './organization.ts';

const colour = z.string().regex(/^#[0-9A-Fa-f]{6}$/, 'expected #rrggbb');

export const branding = z.object({
  primaryColor: colour.optional(),
  secondaryColor: colour.optional(),
  companyTagline: readableLine.max(200).optional(),
  logoUrl: z
    .url({ protocol: /^https$/ })
    .max(2048)
    .optional(),
});

export const organizationStatus = z.enum(['Active', 'Suspended']);
export const organizationName = readableName.min(3).max(100);
export const subdomain = z
  .string()
  .trim()
  .toLowerCase()
  .regex(subdomainPattern, '3 to 50 letters, digits and hyphens');

const organizationSchema = z.object({
  id: identifier,
  name: z.string(),
  subdomain: z.string(),
  status: organizationStatus,
  createdAt: z.string().describe('ISO 8601, UTC.'),
  branding,
});

const newOrganizationSchema = z.object({
  name: z.string().trim().pipe(organizationName),
  subdomain,
  branding: branding.default({}),
});

const idParameter = z.object({ id: identifier });

export interface OrganizationDeps extends CreateOrganizationDeps {
  readonly db: Database<TenantDatabase>;
  readonly idempotency: Idempotency;
}

export function mountOrganizations(app: App, deps: OrganizationDeps): void {
  const tags = ['Organizations'];
  app.get(
    '/api/organizations',
    {
      config: { policy: 'RequireAdministrator', rateLimit: 'Api' },
      schema: {
        operationId: 'listOrganizations',
        tags,
        response: { 200: z.object({ organizations: z.array(organizationSchema) }) },
      },
    },
    async (request) => {
      const organizations = await listVisibleOrganizations(deps.db.read, callerOf(request));
      return { organizations: organizations.map(present) };
    },
  );
  app.get(
    '/api/organizations/:id',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'getOrganization',
        tags,
        params: idParameter,
        response: { 200: organizationSchema },
      },
    },
    async (request) =>
      present(await getVisibleOrganization(deps.db.read, callerOf(request), request.params.id)),
  );
  app.get(
    '/api/organizations/by-subdomain/:subdomain',
    {
      config: { policy: 'Anonymous', rateLimit: 'Api' },
      schema: {
        operationId: 'getOrganizationBySubdomain',
        tags,
        params: z.object({ subdomain: readableLine.max(64) }),
        response: { 200: organizationSchema },
      },
    },
    async (request) => present(await getOpenOrganization(deps.db.read, request.params.subdomain)),
  );
  app.post(
    '/api/organizations',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
      schema: {
        operationId: 'createOrganization',
        tags,
        body: newOrganizationSchema,
        headers: idempotencyHeaders,
        response: { 201: organizationSchema },
      },
    },
    async (request, reply) => {
      const caller = callerOf(request);
      const created = await deps.idempotency.once(repeatable(request), async () => {
        const newOrganization = { ...request.body, origin: originOf(request) };
        return present(await createOrganization(deps, caller, newOrganization));
      });
      return reply.code(201).header('location', `/api/organizations/${created.id}`).send(created);
    },
  );
}

function present(organization: Organization): z.output<typeof organizationSchema> {
  const { id, name, subdomain, status } = organization;
  return {
    id,
    name,
    subdomain,
    status,
    createdAt: apiTimestamp(organization.createdAtMs),
    branding: organization.branding,
  };
}
