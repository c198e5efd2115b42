import { z } from 'zod';
import type { Caller } from '#core/identity/claims.ts';

export const meSchema = z.object({
  userId: z.string(),
  email: z.string().optional(),
  displayName: z.string().optional(),
  organizationId: z.string().optional(),
  organizationName: z.string().optional(),
  roles: z.array(z.string()),
  tokenType: z.enum(['user', 'service']),
  scopes: z.array(z.string()),
  authMethod: z.string().optional(),
  platformUserId: z.string().optional(),
  tier: z.string(),
  walletAddress: z.string().optional(),
});

/** The caller from the claims of the token, without a database read. */
export function presentCaller(caller: Caller): z.output<typeof meSchema> {
  const { claims } = caller;
  return {
    userId: caller.subject,
    email: claims.email,
    displayName: claims.name ?? claims.service_name,
    organizationId: caller.organizationId,
    organizationName: claims.org_name,
    roles: [...caller.roles],
    tokenType: caller.kind,
    scopes: [...caller.scopes],
    authMethod: claims.amr?.[0],
    platformUserId: caller.platformUserId,
    tier: caller.tier,
    walletAddress: caller.walletAddress,
  };
}
