import type { Caller } from '#core/identity/claims.ts';

/** The caller as the token says, without a look into the database. */
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
