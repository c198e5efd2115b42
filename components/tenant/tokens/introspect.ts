import { z } from 'zod';
import type { Caller } from '#core/identity/claims.ts';
import { TIERS } from '#core/identity/tiers.ts';

const text = z.string().optional();
const seconds = z.int().optional().describe('Seconds since the epoch.');
const tokenType = z.enum(['user', 'service']).optional();

/** Only `active` when the token is not valid. */
export const introspectionSchema = z
  .object({
    active: z.boolean(),
    scope: text.describe('Scopes separated by spaces.'),
    client_id: text,
    clientId: text,
    username: text.describe('E-mail address.'),
    token_type: tokenType,
    tokenType,
    exp: seconds,
    iat: seconds,
    nbf: seconds,
    sub: text,
    aud: z.array(z.string()).optional(),
    iss: text,
    jti: text,
    org_id: text,
    orgId: text,
    roles: z.array(z.string()).optional(),
    platform_user_id: text,
    tier: z.enum(TIERS).optional(),
  })
  .meta({ id: 'TokenIntrospection' });

/** The answer of RFC 7662, with three members also in camelCase. */
export function presentIntrospection(caller: Caller | undefined): z.output<typeof introspectionSchema> {
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
