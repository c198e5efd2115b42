import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { identifier } from '#core/identity/identifier.ts';
import type { OrganizationUser } from './account.ts';

/** A user as an organisation's lists show it. */
export const userSchema = z.object({
  id: identifier,
  email: z.string(),
  displayName: z.string(),
  roles: z.array(z.string()),
  status: z.string(),
  createdAt: z.string().describe('ISO 8601, UTC.'),
  lastLoginAt: z.string().nullable(),
});

export function presentUser(user: OrganizationUser): z.output<typeof userSchema> {
  const { email, displayName, status } = user;
  return {
    id: user.id,
    email,
    displayName,
    roles: [...user.roles],
    status,
    createdAt: apiTimestamp(user.createdAtMs),
    lastLoginAt: user.lastLoginAtMs === undefined ? null : apiTimestamp(user.lastLoginAtMs),
  };
}
