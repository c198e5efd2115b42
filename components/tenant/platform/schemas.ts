import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { identifier } from '#core/identity/identifier.ts';
import { organizationStatus, organizationType } from '../organizations/schemas.ts';
import type { CountedOrganization } from '../organizations/store.ts';
import type { PlatformState } from './change-settings.ts';

export const countedOrganizationSchema = z
  .object({
    id: identifier,
    name: z.string(),
    subdomain: z.string(),
    status: organizationStatus,
    orgType: organizationType,
    isPlatformOrg: z.boolean(),
    userCount: z.int(),
    createdAt: z.string().describe('ISO 8601, UTC.'),
  })
  .meta({ id: 'PlatformOrganization' });

export const settingsSchema = z
  .object({
    publicOrgEnabled: z.boolean(),
    maxOrgsPerUser: z.int().describe('Organisations that a person may create.'),
    publicOrgId: identifier,
    publicOrgStatus: organizationStatus,
    updatedAt: z.string().describe('ISO 8601, UTC.'),
  })
  .meta({ id: 'PlatformSettings' });

export function presentCountedOrganization(
  organization: CountedOrganization,
): z.output<typeof countedOrganizationSchema> {
  const { id, name, subdomain, status, orgType, isPlatformOrg, userCount } = organization;
  const createdAt = apiTimestamp(organization.createdAtMs);
  return { id, name, subdomain, status, orgType, isPlatformOrg, userCount, createdAt };
}

export function presentSettings({
  settings,
  publicOrganization,
}: PlatformState): z.output<typeof settingsSchema> {
  return {
    publicOrgEnabled: settings.publicOrgEnabled,
    maxOrgsPerUser: settings.maxOrgsPerUser,
    publicOrgId: publicOrganization.id,
    publicOrgStatus: publicOrganization.status,
    updatedAt: apiTimestamp(settings.updatedAtMs),
  };
}
