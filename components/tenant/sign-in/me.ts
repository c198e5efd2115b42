import type { Caller } from '#core/identity/claims.ts';

/** The caller from the claims of the token, without a database read. */
export function presentCaller(caller: Caller) {
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
