import type { Caller } from '#core/identity/claims.ts';

/** The answer of RFC 7662, with three members also in camelCase. */
export function presentIntrospection(caller: Caller | undefined): Record<string, unknown> {
  if (caller === undefined) return { active: false };
  const { claims } = caller;
  return {
    active: true,
    scope: caller.scopes.join(' '),
    client_id: claims.client_id,
    clientId: claims.client_id,
    username: claims.email,
    token_type: claims.token_type,
    tokenType: claims.token_type,
    exp: claims.exp,
    iat: claims.iat,
    nbf: claims.nbf,
    sub: claims.sub,
    aud: claims.aud,
    iss: claims.iss,
    jti: claims.jti,
    org_id: claims.org_id,
    orgId: claims.org_id,
    roles: claims.roles,
    platform_user_id: claims.platform_user_id,
    tier: claims.tier,
  };
}
