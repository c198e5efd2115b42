import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { identifier } from '#core/identity/identifier.ts';
import type { OrganizationUser } from '../memberships/membership.ts';

/** A user as the lists of an organisation show it. */
export const userSchema = z.object({
  id: identifier,
  email: z.string(),
  displayName: z.string(),
  emailVerified: z
    .boolean()
    .describe('The address is verified; shown once the person has signed in to the organisation.'),
  roles: z.array(z.string()),
  status: z.string(),
  createdAt: z.string().describe('ISO 8601, UTC.'),
  lastLoginAt: z.string().nullable(),
});

export function presentUser(user: OrganizationUser): z.output<typeof userSchema> {
  const { email, displayName, emailVerified, status } = user;
  return {
    id: user.id,
    email,
    displayName,
    emailVerified,
    roles: [...user.roles],
    status,
    createdAt: apiTimestamp(user.createdAtMs),
    lastLoginAt: user.lastLoginAtMs === undefined ? null : apiTimestamp(user.lastLoginAtMs),
  };
}
