import type { HumanTier } from '#core/identity/tiers.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { AuditEvent } from '../audit/log/event.ts';
import { appendAudit } from '../audit/log/store.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { lockAccount } from '../people/accounts/store.ts';
import { notifyPerson } from '../people/inbox/notify-person.ts';
import { findMembership } from '../people/memberships/store.ts';
import type { Origin } from '../requests/origin.ts';
import { resolveTier } from '../sign-in/opening/tier.ts';
import { longestTokenLifeMs } from './revocations/revocation.ts';
import { appendRevocation, findNotBefore } from './revocations/store.ts';
import { parseRefreshToken } from './sessions/refresh-token.ts';
import { judgeRotation } from './sessions/rotation.ts';
import { type IssuedTokens, issueSession, type Session, type SessionIssuer } from './sessions/session.ts';
import { lockFamily, type RefreshFamily, revokeFamilies, rotateFamily } from './sessions/store.ts';

export interface RefreshDeps extends SessionIssuer {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  /** Notifies all services of new revocations. */
  readonly notify: () => void;
  /** Called after the person was notified. */
  readonly notifyInboxes: () => void;
}

interface RefreshRequest {
  readonly refreshToken: string;
  readonly tier?: HumanTier | undefined;
  readonly origin: Origin;
}

type Tx = Transactor<TenantDatabase>;

type Outcome = Session | 'dead' | 'reuse' | 'tier-refused';

/**
 * Exchanges a refresh token for new tokens with claims from the current database state. A reused token ends its family
 * unless it repeats a request whose answer was lost.
 * @throws INVALID_REFRESH_TOKEN, TIER_NOT_ENTITLED
 */
export async function refresh(deps: RefreshDeps, request: RefreshRequest): Promise<IssuedTokens> {
  const token = parseRefreshToken(request.refreshToken, deps.refreshKey);
  if (token === undefined) throw refusal('INVALID_REFRESH_TOKEN');
  const outcome = await deps.db.transact(async (tx): Promise<Outcome> => {
    const family = await lockFamily(tx, token.familyId);
    if (family === undefined) return 'dead';
    const verdict = judgeRotation(token.generation, family, deps.clock.nowMs());
    if (verdict === 'dead') return 'dead';
    if (verdict === 'reuse') return endReusedFamily(deps, { tx, family, origin: request.origin });
    return renew(deps, { tx, family, request, rotates: verdict === 'rotate' });
  });
  if (outcome === 'reuse') {
    deps.notify();
    deps.notifyInboxes();
  }
  if (outcome === 'dead' || outcome === 'reuse') throw refusal('INVALID_REFRESH_TOKEN');
  if (outcome === 'tier-refused') throw refusal('TIER_NOT_ENTITLED');
  return issueSession(deps, outcome);
}

interface Rotation {
  readonly tx: Tx;
  readonly family: RefreshFamily;
  readonly request: RefreshRequest;
  /** False for a repetition after a lost answer, which gets the existing successor. */
  readonly rotates: boolean;
}

async function renew(deps: RefreshDeps, rotation: Rotation): Promise<Outcome> {
  const { tx, family, request } = rotation;
  const nowMs = deps.clock.nowMs();
  const account = await lockAccount(tx, family.platformUserId);
  const membership = await findMembership(tx, family.identityId);
  if (account?.isActive !== true || membership?.isActive !== true) return 'dead';
  // Without a requested tier the current one stays, lowered when the entitlement has ended.
  const requestedTier = request.tier ?? (family.tier === 'consumer' ? 'consumer' : undefined);
  const tier = resolveTier({ tier: requestedTier, roles: membership.roles, orgType: membership.orgType });
  if (tier === 'refused') return 'tier-refused';
  const generation = family.generation + (rotation.rotates ? 1 : 0);
  if (rotation.rotates) {
    await rotateFamily(tx, family.id, { generation, tier, atMs: nowMs });
    await appendAudit(tx, auditOf(family, { type: 'TokenRefreshed', atMs: nowMs, origin: request.origin }));
  }
  const keys = [family.identityId, family.platformUserId, family.organizationId];
  const revokedBeforeMs = await findNotBefore(tx, keys, nowMs);
  return { family, membership, emailVerified: account.emailVerified, tier, generation, revokedBeforeMs };
}

async function endReusedFamily(
  deps: RefreshDeps,
  reuse: { readonly tx: Tx; readonly family: RefreshFamily; readonly origin: Origin },
): Promise<'reuse'> {
  const { tx, family, origin } = reuse;
  const atMs = deps.clock.nowMs();
  await revokeFamilies(tx, { id: family.id }, { reason: 'refresh_reuse', atMs });
  await appendRevocation(tx, {
    kind: 'family',
    key: family.id,
    notBeforeMs: atMs,
    expiresAtMs: atMs + longestTokenLifeMs,
  });
  const reason = 'refresh_reuse';
  await appendAudit(
    tx,
    { ...auditOf(family, { type: 'RefreshTokenReuseDetected', atMs, origin }), success: false },
    auditOf(family, { type: 'TokenRevoked', atMs, origin, reason }),
  );
  await notifyPerson(tx, {
    platformUserId: family.platformUserId,
    category: 'Security',
    severity: 'Warning',
    eventKey: 'refresh-reuse',
    about: `refresh-reuse:${family.platformUserId}`,
    naturalKey: family.id,
    iconKey: 'security.refresh-reuse',
    title: 'One of your sessions was ended',
    summary: 'Its refresh token was used twice, so it may have been copied. Sign in again.',
    atMs,
  });
  return 'reuse';
}

function auditOf(
  family: RefreshFamily,
  happened: {
    readonly type: AuditEvent['type'];
    readonly atMs: number;
    readonly origin: Origin;
    readonly reason?: string;
  },
): AuditEvent {
  return {
    organizationId: family.organizationId,
    occurredAtMs: happened.atMs,
    type: happened.type,
    identityId: family.identityId,
    platformUserId: family.platformUserId,
    origin: happened.origin,
    success: true,
    details: { familyId: family.id, ...(happened.reason === undefined ? {} : { reason: happened.reason }) },
  };
}
