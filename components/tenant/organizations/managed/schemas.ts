import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { identifier } from '#core/identity/identifier.ts';
import { deletedGraceMs } from '../organization.ts';
import { branding, organizationName, organizationType, subdomain } from '../schemas.ts';
import { type ManagedOrganization, organizationStates, stateOf } from './organization.ts';

export const specSchema = z.object({
  resourceUid: identifier.describe('UID of the custom resource.'),
  name: organizationName,
  subdomain,
  organizationType: organizationType.default('Standard'),
  branding: branding
    .nullish()
    .transform((value) => value ?? undefined)
    .describe('Replaces the stored branding; absent or null leaves it unchanged.'),
  suspended: z.boolean().optional().describe('Absent leaves the status unchanged.'),
  organizationId: identifier.optional().describe('Adopts this organisation instead of creating one.'),
});

export const managedSchema = z
  .object({
    organizationId: identifier,
    resourceUid: identifier.nullable(),
    state: z.enum(organizationStates),
    name: z.string(),
    subdomain: z.string(),
    organizationType,
    isPlatformOrganization: z.boolean(),
    branding,
    userCount: z.int(),
    version: z.int().describe('Grows by one with each change.'),
    createdAt: z.string().describe('ISO 8601, UTC.'),
    deletedAt: z.string().nullable(),
    purgedAfter: z.string().nullable(),
  })
  .meta({ id: 'ManagedOrganization' });

export function presentManaged(organization: ManagedOrganization): z.output<typeof managedSchema> {
  const { deletedAtMs } = organization;
  return {
    organizationId: organization.id,
    resourceUid: organization.resourceUid ?? null,
    state: stateOf(organization),
    name: organization.name,
    subdomain: organization.subdomain,
    organizationType: organization.orgType,
    isPlatformOrganization: organization.isPlatformOrg,
    branding: organization.branding,
    userCount: organization.userCount,
    version: organization.version,
    createdAt: apiTimestamp(organization.createdAtMs),
    deletedAt: deletedAtMs === undefined ? null : apiTimestamp(deletedAtMs),
    purgedAfter: deletedAtMs === undefined ? null : apiTimestamp(deletedAtMs + deletedGraceMs),
  };
}
