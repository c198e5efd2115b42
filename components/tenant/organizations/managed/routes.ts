import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { identifier } from '#core/identity/identifier.ts';
import { type App, callerOf, emptyAnswer } from '#kit/http/http.ts';
import { refusal } from '../../errors.ts';
import { originOf } from '../../requests/origin.ts';
import { requireScope } from '../../requests/scope.ts';
import { branding, organizationName, organizationStatus, subdomain } from '../routes.ts';
import type { StatusDeps } from '../status.ts';
import { organizationStates, presentManaged } from './organization.ts';
import { deletionPolicies, releaseOrganization, setManagedStatus } from './release.ts';
import { findManaged, type ManagedKey } from './store.ts';
import { upsertOrganization } from './upsert.ts';

const organizationTypes = z.enum(['Standard', 'Public']);

const managedSchema = z.object({
  organizationId: identifier,
  resourceUid: identifier.nullable(),
  state: z.enum(organizationStates),
  name: z.string(),
  subdomain: z.string(),
  organizationType: organizationTypes,
  isPlatformOrganization: z.boolean(),
  branding,
  userCount: z.int(),
  version: z.int().describe('Grows by one with each change.'),
  createdAt: z.string().describe('ISO 8601, UTC.'),
  deletedAt: z.string().nullable(),
  purgedAfter: z.string().nullable(),
});

const specSchema = z.object({
  resourceUid: identifier.describe('UID of the custom resource.'),
  name: organizationName,
  subdomain,
  organizationType: organizationTypes.default('Standard'),
  branding: branding
    .nullish()
    .transform((value) => value ?? undefined)
    .describe('Replaces the stored branding; absent or null leaves it unchanged.'),
  suspended: z.boolean().optional().describe('Absent leaves the status unchanged.'),
  organizationId: identifier.optional().describe('Adopts this organisation instead of creating one.'),
});

const statusSchema = z.object({ status: organizationStatus });
const resourceParameter = z.object({ resourceUid: identifier });
const organizationParameter = z.object({ organizationId: identifier });

const base = '/api/internal/organizations';
const tags = ['Internal'];

/** Organisations of custom resources, for the operator only. */
export function mountManaged(app: App, deps: StatusDeps): void {
  const guarded = {
    onRequest: requireScope('organizations:write'),
    config: { policy: 'RequireOperator' },
  } as const;
  app.post(
    base,
    {
      ...guarded,
      schema: {
        operationId: 'upsertManagedOrganization',
        tags,
        body: specSchema,
        response: { 200: managedSchema, 201: managedSchema },
      },
    },
    async (request, reply) => {
      const { organization, created } = await upsertOrganization(deps, request.body, actor(request));
      return reply.code(created ? 201 : 200).send(presentManaged(organization));
    },
  );
  app.get(
    `${base}/:organizationId`,
    {
      ...guarded,
      schema: {
        operationId: 'getManagedOrganization',
        tags,
        params: organizationParameter,
        response: { 200: managedSchema },
      },
    },
    async (request) => read(deps, { organizationId: request.params.organizationId }),
  );
  app.get(
    `${base}/by-uid/:resourceUid`,
    {
      ...guarded,
      schema: {
        operationId: 'getManagedOrganizationByUid',
        tags,
        params: resourceParameter,
        response: { 200: managedSchema },
      },
    },
    async (request) => read(deps, { resourceUid: request.params.resourceUid }),
  );
  app.put(
    `${base}/by-uid/:resourceUid/status`,
    {
      ...guarded,
      schema: {
        operationId: 'updateManagedOrganizationStatus',
        tags,
        params: resourceParameter,
        body: statusSchema,
        response: { 200: managedSchema },
      },
    },
    async (request) => {
      const input = { resourceUid: request.params.resourceUid, status: request.body.status };
      return presentManaged(await setManagedStatus(deps, input, actor(request)));
    },
  );
  app.delete(
    `${base}/by-uid/:resourceUid`,
    {
      ...guarded,
      schema: {
        operationId: 'releaseManagedOrganization',
        tags,
        params: resourceParameter,
        querystring: z.object({ policy: z.enum(deletionPolicies) }),
        response: emptyAnswer('The organisation is released.'),
      },
    },
    async (request, reply) => {
      const input = { resourceUid: request.params.resourceUid, policy: request.query.policy };
      await releaseOrganization(deps, input, actor(request));
      return reply.code(204).send();
    },
  );
}

function actor(request: FastifyRequest) {
  return { by: callerOf(request), origin: originOf(request) };
}

async function read(deps: StatusDeps, key: ManagedKey): Promise<z.output<typeof managedSchema>> {
  const organization = await findManaged(deps.db.read, key);
  if (organization === undefined) throw refusal('ORGANIZATION_NOT_FOUND');
  return presentManaged(organization);
}
