import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { RevocationKind } from '#kit/auth/auth.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../audit/log/store.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { getOrganization, isSystemAdministrator } from '../organizations/authority.ts';
import { findMembership, findMembershipIn, listMemberships } from '../people/memberships/store.ts';
import type { Origin } from '../requests/origin.ts';
import { endTokens } from './sessions/end-tokens.ts';
import { looksLikeRefreshToken, parseRefreshToken } from './sessions/refresh-token.ts';
import { type FamilyFilter, findFamily, type RefreshFamily } from './sessions/store.ts';

export interface RevokeDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly refreshKey: Uint8Array;
  /** The caller of a valid token of this installation; undefined for any other text. */
  readonly findCaller: (token: string) => Promise<Caller | undefined>;
  /** Notifies all services of new revocations. */
  readonly notify: () => void;
}

interface RevocationRequest {
  readonly kind: RevocationKind;
  readonly key: string;
  readonly families?: FamilyFilter | undefined;
  readonly reason: string;
  readonly organizationId?: string | undefined;
  readonly by: Caller | undefined;
  readonly origin: Origin;
}

/**
 * RFC 7009: an unknown token and a token of another user have no effect and get the same answer. A refresh token may be
 * revoked by its possession alone, since a client may hold an expired access token.
 * @throws UNAUTHORIZED for an access token without a caller
 */
export async function revokeToken(
  deps: RevokeDeps,
  by: Caller | undefined,
  request: { readonly token: string; readonly origin: Origin },
): Promise<void> {
  if (looksLikeRefreshToken(request.token)) return revokeRefreshToken(deps, by, request);
  if (by === undefined) {
    throw new AppError(
      'unauthenticated',
      genericCode('unauthenticated'),
      'An access token is revoked by its person',
    );
  }
  const target = await deps.findCaller(request.token);
  if (target === undefined || !mayRevoke(by, target)) return;
  await end(deps, {
    kind: 'token',
    key: target.tokenId,
    reason: 'revoked',
    organizationId: target.organizationId,
    by,
    origin: request.origin,
  });
}

async function revokeRefreshToken(
  deps: RevokeDeps,
  by: Caller | undefined,
  request: { readonly token: string; readonly origin: Origin },
): Promise<void> {
  const token = parseRefreshToken(request.token, deps.refreshKey);
  const family = token && (await findFamily(deps.db.read, token.familyId));
  if (family === undefined || family.revoked) return;
  if (by !== undefined && !mayRevoke(by, ownerOf(family))) return;
  await end(deps, {
    kind: 'family',
    key: family.id,
    families: { id: family.id },
    reason: 'revoked',
    organizationId: family.organizationId,
    by,
    origin: request.origin,
  });
}

/** All tokens of one user of the caller's organisation. */
export async function revokeUser(
  deps: RevokeDeps,
  by: Caller,
  request: { readonly userId: string; readonly origin: Origin },
): Promise<void> {
  const { db } = deps;
  const { userId, origin } = request;
  const memberships = isSystemAdministrator(by)
    ? [await findMembership(db.read, userId), ...(await listMemberships(db.read, userId))]
    : [by.organizationId && (await findMembershipIn(db.read, by.organizationId, userId))];
  const targets = memberships.filter((one) => typeof one === 'object');
  // Only the system administrator may learn whether a user exists in another organisation.
  if (targets.length === 0)
    throw refusal(isSystemAdministrator(by) ? 'USER_NOT_FOUND' : 'FOREIGN_ORGANIZATION');
  for (const target of targets) {
    await end(deps, {
      kind: 'identity',
      key: target.identityId,
      families: { identityId: target.identityId },
      reason: 'revoke-user',
      organizationId: target.organizationId,
      by,
      origin,
    });
  }
}

/** All tokens of all users in the context of one organisation. */
export async function revokeOrganization(
  deps: RevokeDeps,
  by: Caller,
  request: { readonly organizationId: string; readonly origin: Origin },
): Promise<void> {
  const { organizationId, origin } = request;
  if (organizationId !== by.organizationId && !isSystemAdministrator(by))
    throw refusal('FOREIGN_ORGANIZATION');
  await getOrganization(deps.db.read, organizationId);
  await end(deps, {
    kind: 'organization',
    key: organizationId,
    families: { organizationId },
    reason: 'revoke-organization',
    organizationId,
    by,
    origin,
  });
}

async function end(deps: RevokeDeps, revocation: RevocationRequest): Promise<void> {
  await deps.db.transact(async (tx) => {
    const atMs = deps.clock.nowMs();
    await endTokens(tx, { ...revocation, atMs });
    await audit(tx, revocation, atMs);
  });
  deps.notify();
}

async function audit(
  tx: Transactor<TenantDatabase>,
  revocation: RevocationRequest,
  atMs: number,
): Promise<void> {
  const { by, reason, kind, key } = revocation;
  await appendAudit(tx, {
    organizationId: revocation.organizationId ?? by?.organizationId ?? SYSTEM_ORGANIZATION_ID,
    occurredAtMs: atMs,
    type: 'TokenRevoked',
    identityId: by?.kind === 'user' ? by.subject : undefined,
    platformUserId: by?.platformUserId,
    origin: revocation.origin,
    success: true,
    details: { reason, kind, key, by: by?.clientId ?? 'bearer' },
  });
}

interface TokenOwner {
  readonly platformUserId?: string | undefined;
  readonly organizationId?: string | undefined;
  readonly subject: string;
}

function ownerOf(family: RefreshFamily): TokenOwner {
  return {
    platformUserId: family.platformUserId,
    organizationId: family.organizationId,
    subject: family.identityId,
  };
}

/** A person may revoke own tokens, an administrator those of the organisation, a service any. */
function mayRevoke(by: Caller, owner: TokenOwner): boolean {
  if (by.kind === 'service' || isSystemAdministrator(by)) return true;
  if (owner.platformUserId !== undefined && owner.platformUserId === by.platformUserId) return true;
  const administers = by.tier === 'platform' && by.roles.includes('Administrator');
  return administers && owner.organizationId !== undefined && owner.organizationId === by.organizationId;
}
