import { z } from 'zod';
import type { Caller } from '#core/identity/claims.ts';
import { identifier } from '#core/identity/identifier.ts';
import { highestRole, ROLES } from '#core/identity/roles.ts';
import type { Reader } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import type { Membership } from '../../people/memberships/membership.ts';
import { listMemberships } from '../../people/memberships/store.ts';
import { requirePerson } from '../../requests/person.ts';

export const membershipSchema = z
  .object({
    organizationId: identifier,
    organizationName: z.string(),
    subdomain: z.string(),
    role: z.enum(ROLES).describe('The highest role.'),
    isCurrent: z.boolean(),
  })
  .meta({ id: 'OrganizationMembership' });

/** The active organisations of the caller's person, by name. */
export async function listOpenMemberships(
  db: Reader<TenantDatabase>,
  caller: Caller,
): Promise<readonly Membership[]> {
  const memberships = await listMemberships(db, requirePerson(caller));
  return memberships
    .filter(({ isActive }) => isActive)
    .toSorted((a, b) => a.organizationName.localeCompare(b.organizationName, 'en'));
}

export function presentMembership(membership: Membership, caller: Caller): z.output<typeof membershipSchema> {
  const { organizationId, organizationName, organizationSubdomain, roles } = membership;
  return {
    organizationId,
    organizationName,
    subdomain: organizationSubdomain,
    role: highestRole(roles) ?? 'User',
    isCurrent: organizationId === caller.organizationId,
  };
}
