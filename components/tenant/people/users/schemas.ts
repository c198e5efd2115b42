import { z } from 'zod';
import { readableName } from '#core/encoding/readable.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { identifier } from '#core/identity/identifier.ts';
import type { OrganizationUser } from '../memberships/membership.ts';

const roleName = z.string().max(64);

export const newUserSchema = z.object({
  email: z.string().trim().max(254).pipe(z.email()),
  displayName: z.string().trim().pipe(readableName.max(200)),
  password: z.string().max(1024),
  roles: z.array(roleName).max(16).default([]),
});

/** A single role, which is the common case, or all roles. */
export const rolesSchema = z
  .object({ role: roleName.optional(), roles: z.array(roleName).min(1).max(16).optional() })
  .refine((body) => (body.role === undefined) !== (body.roles === undefined), {
    message: 'exactly one of role and roles is required',
    path: ['role'],
  });

/** A user as the lists of an organisation show it. */
export const userSchema = z
  .object({
    id: identifier,
    email: z.string().nullable().describe('Absent for a person who signed up with a passkey alone.'),
    displayName: z.string(),
    emailVerified: z
      .boolean()
      .describe('The address is verified; shown once the person has signed in to the organisation.'),
    roles: z.array(z.string()),
    status: z.string(),
    createdAt: z.string().describe('ISO 8601, UTC.'),
    lastLoginAt: z.string().nullable(),
  })
  .meta({ id: 'OrganizationUser' });

export function presentUser(user: OrganizationUser): z.output<typeof userSchema> {
  const { email, displayName, emailVerified, status } = user;
  return {
    id: user.id,
    email: email ?? null,
    displayName,
    emailVerified,
    roles: [...user.roles],
    status,
    createdAt: apiTimestamp(user.createdAtMs),
    lastLoginAt: user.lastLoginAtMs === undefined ? null : apiTimestamp(user.lastLoginAtMs),
  };
}
