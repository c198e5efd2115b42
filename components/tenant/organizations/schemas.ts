import { z } from 'zod';
import { readableLine, readableName } from '#core/encoding/readable.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { identifier } from '#core/identity/identifier.ts';
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
export const organizationType = z.enum(['Standard', 'Public']);
export const organizationName = readableName.min(3).max(100);
export const subdomain = z
  .string()
  .trim()
  .toLowerCase()
  .regex(subdomainPattern, '3 to 50 letters, digits and hyphens');

export const newOrganizationSchema = z.object({
  name: z.string().trim().pipe(organizationName),
  subdomain,
  branding: branding.default({}),
});

export const organizationSchema = z
  .object({
    id: identifier,
    name: z.string(),
    subdomain: z.string(),
    status: organizationStatus,
    createdAt: z.string().describe('ISO 8601, UTC.'),
    branding,
  })
  .meta({ id: 'Organization' });

export function presentOrganization(organization: Organization): z.output<typeof organizationSchema> {
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
