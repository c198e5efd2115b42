import { randomUUIDv7 } from 'node:crypto';
import type { Caller } from '#core/identity/claims.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { lockMembership } from '../../organizations/lock-membership.ts';
import { lockAccount, setDefaultOrganization } from '../../people/accounts/store.ts';
import type { Membership } from '../../people/memberships/membership.ts';
import { findMembershipIn } from '../../people/memberships/store.ts';
import type { Origin } from '../../requests/origin.ts';
import { requirePerson } from '../../requests/person.ts';
import { findNotBefore } from '../../tokens/revocations/store.ts';
import {
  type IssuedTokens,
  issueSession,
  type Session,
  type SessionIssuer,
} from '../../tokens/sessions/session.ts';
import { findFamily, insertFamily, type NewFamily, type RefreshFamily } from '../../tokens/sessions/store.ts';
import { resolveTier } from '../opening/tier.ts';

export interface SwitchDeps extends SessionIssuer {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
}

interface SwitchRequest {
  readonly organizationId: string;
  readonly origin: Origin;
}

type Tx = Transactor<TenantDatabase>;

/**
 * Issues tokens for the caller's person in another of their organisations, of the platform tier where the person is
 * entitled to it. Switching is not an authentication: the new session keeps the time and means of the sign-in and the
 * end of the old session; the old tokens stay valid (specification document 1, section 4).
 *
 * @throws UNAUTHORIZED for a service, SESSION_ENDED, NOT_A_MEMBER, also for an unknown or suspended organisation
 */
export async function switchOrganization(
  deps: SwitchDeps,
  caller: Caller,
  request: SwitchRequest,
): Promise<IssuedTokens> {
  const platformUserId = requirePerson(caller);
  const session = await deps.db.transact(async (tx): Promise<Session> => {
    const account = await lockAccount(tx, platformUserId);
    const found = await findMembershipIn(tx, request.organizationId, platformUserId);
    const membership = found && (await lockMembership(tx, found));
    // needs no lock: every use case that ends sessions locks the organisation first
    const from = caller.sessionId === undefined ? undefined : await findFamily(tx, caller.sessionId);
    const nowMs = deps.clock.nowMs();
    if (from === undefined || from.revoked || from.expiresAtMs <= nowMs) throw refusal('SESSION_ENDED');
    if (account?.isActive !== true || membership === undefined) throw refusal('NOT_A_MEMBER');
    return startSession(tx, {
      membership,
      emailVerified: account.emailVerified,
      from,
      origin: request.origin,
      nowMs,
    });
  });
  return issueSession(deps, session);
}

interface SessionStart {
  readonly membership: Membership;
  readonly emailVerified: boolean;
  readonly from: RefreshFamily;
  readonly origin: Origin;
  readonly nowMs: number;
}

async function startSession(tx: Tx, start: SessionStart): Promise<Session> {
  const { membership, emailVerified, from, nowMs } = start;
  const { identityId, platformUserId, organizationId, roles, orgType } = membership;
  const tier = resolveTier({ roles, orgType }) === 'platform' ? 'platform' : 'consumer';
  const family: NewFamily = {
    id: randomUUIDv7(),
    platformUserId,
    identityId,
    organizationId,
    tier,
    amr: from.amr,
    authTimeMs: from.authTimeMs,
    basicProofAtMs: from.basicProofAtMs,
    strongProofAtMs: from.strongProofAtMs,
    createdAtMs: nowMs,
    expiresAtMs: from.expiresAtMs,
  };
  await insertFamily(tx, family);
  await setDefaultOrganization(tx, platformUserId, organizationId);
  await appendAudit(tx, {
    organizationId,
    occurredAtMs: nowMs,
    type: 'TokenIssued',
    identityId,
    platformUserId,
    origin: start.origin,
    success: true,
    details: { method: 'switch-org', tier, familyId: family.id, from: from.organizationId },
  });
  const keys = [identityId, platformUserId, organizationId];
  const revokedBeforeMs = await findNotBefore(tx, keys, nowMs);
  return { membership, emailVerified, family, tier, generation: 0, revokedBeforeMs };
}
