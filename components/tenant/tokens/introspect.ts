import { z } from 'zod';
import type { Caller } from '#core/identity/claims.ts';
import { TIERS } from '#core/identity/tiers.ts';
import { FIRST_PARTY_CLIENT_ID } from '#core/identity/well-known.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { parseRefreshToken } from './sessions/refresh-token.ts';
import { judgeRotation } from './sessions/rotation.ts';
import { findFamily, type RefreshFamily } from './sessions/store.ts';

const text = z.string().optional();
const seconds = z.int().optional().describe('Seconds since the epoch.');
const tokenType = z.enum(['Bearer', 'refresh_token']).optional();

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
    token_type: 'Bearer',
    tokenType: 'Bearer',
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

/** A refresh token that the next refresh would accept; undefined for any other text. */
export async function findLivingRefreshToken(
  {
    db,
    clock,
    refreshKey,
  }: { readonly db: Database<TenantDatabase>; readonly clock: Clock; readonly refreshKey: Uint8Array },
  text: string,
): Promise<RefreshFamily | undefined> {
  const token = parseRefreshToken(text, refreshKey);
  const family = token && (await findFamily(db.read, token.familyId));
  if (token === undefined || family === undefined) return undefined;
  return judgeRotation(token.generation, family, clock.nowMs()) === 'rotate' ? family : undefined;
}

export function presentRefreshToken(family: RefreshFamily): z.output<typeof introspectionSchema> {
  return {
    active: true,
    client_id: FIRST_PARTY_CLIENT_ID,
    clientId: FIRST_PARTY_CLIENT_ID,
    token_type: 'refresh_token',
    tokenType: 'refresh_token',
    exp: Math.floor(family.expiresAtMs / 1000),
    sub: family.identityId,
    org_id: family.organizationId,
    orgId: family.organizationId,
    platform_user_id: family.platformUserId,
    tier: family.tier,
  };
}
