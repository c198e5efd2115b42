import { randomUUIDv7 } from 'node:crypto';
import type { HumanTier } from '#core/identity/tiers.ts';
import type { Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import type { Account } from '../../people/accounts/account.ts';
import type { Membership } from '../../people/memberships/membership.ts';
import { recordSignIn } from '../../people/memberships/store.ts';
import type { Origin } from '../../requests/origin.ts';
import { refreshLifetimeSeconds } from '../../tokens/claims/claims.ts';
import type { Proofs } from '../../tokens/claims/strength.ts';
import { findNotBefore } from '../../tokens/revocations/store.ts';
import type { Session } from '../../tokens/sessions/session.ts';
import { insertFamily, type NewFamily } from '../../tokens/sessions/store.ts';

/** A person who has proved to be the owner of an account. */
interface Opening extends Proofs {
  /** Locked until the transaction ends. */
  readonly account: Account;
  /** Read while its organisation is locked (`lockMembership`). */
  readonly membership: Membership;
  readonly tier: HumanTier;
  /** For the audit log, for example `password` or `passkey`. */
  readonly method: string;
  /** Authentication methods by RFC 8176; informative. */
  readonly amr: readonly string[];
  /** The new hash of the password, when its cost has changed. */
  readonly rehashed?: string | undefined;
  readonly origin: Origin;
  readonly nowMs: number;
}

/**
 * Opens the session of a sign-in, whatever proved it: the refresh family, the times of the sign-in, and the audit event.
 * `issueSession` makes the tokens after the commit.
 */
export async function openSession(tx: Transactor<TenantDatabase>, opening: Opening): Promise<Session> {
  const { account, membership, tier, nowMs } = opening;
  const family = newFamily(opening);
  await insertFamily(tx, family);
  await recordSignIn(tx, {
    accountId: account.id,
    identityId: membership.identityId,
    organizationId: membership.organizationId,
    atMs: nowMs,
    rehashed: opening.rehashed,
  });
  await appendAudit(tx, {
    organizationId: membership.organizationId,
    occurredAtMs: nowMs,
    type: 'Login',
    identityId: membership.identityId,
    platformUserId: account.id,
    origin: opening.origin,
    success: true,
    details: { method: opening.method, tier, familyId: family.id },
  });
  const keys = [membership.identityId, account.id, membership.organizationId];
  const revokedBeforeMs = await findNotBefore(tx, keys, nowMs);
  return { membership, emailVerified: account.emailVerified, family, tier, generation: 0, revokedBeforeMs };
}

function newFamily(opening: Opening): NewFamily {
  const { membership, nowMs } = opening;
  return {
    id: randomUUIDv7(),
    platformUserId: membership.platformUserId,
    identityId: membership.identityId,
    organizationId: membership.organizationId,
    tier: opening.tier,
    amr: opening.amr,
    authTimeMs: nowMs,
    basicProofAtMs: opening.basicProofAtMs,
    strongProofAtMs: opening.strongProofAtMs,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + refreshLifetimeSeconds * 1000,
  };
}
