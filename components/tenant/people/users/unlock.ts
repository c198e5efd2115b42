import type { Caller } from '#core/identity/claims.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { requireCallerOrganization } from '../../organizations/authority.ts';
import type { Origin } from '../../requests/origin.ts';
import { liftGuessCaps } from '../../sign-in/lockout/guess-cap.ts';
import { isKnownNetwork, unlocked } from '../../sign-in/lockout/ladder.ts';
import { lockLadder, saveLadder } from '../../sign-in/lockout/store.ts';
import { accountSubject } from '../../sign-in/lockout/subject.ts';
import { lockAccount } from '../accounts/store.ts';
import { findMembershipIn } from '../memberships/store.ts';

interface UnlockRequest {
  readonly organizationId: string;
  readonly userId: string;
  readonly origin: Origin;
}

/**
 * Unlocks an account for every network and clears its limits. The count of failures stays until a right password,
 * because otherwise an organisation that adds a person could reset the bound on guesses of their password. For the same
 * reason an account of other organisations stays locked when its person has never signed in to this one; answer and
 * audit event are the same, because a difference would reveal that the address has an account elsewhere.
 *
 * @throws FOREIGN_ORGANIZATION, USER_NOT_FOUND
 */
export async function unlockUser(
  deps: { readonly db: Database<TenantDatabase>; readonly clock: Clock },
  caller: Caller,
  request: UnlockRequest,
): Promise<void> {
  const { organizationId } = request;
  requireCallerOrganization(caller, organizationId);
  const opened = await deps.db.transact(async (tx) => {
    const member = await findMembershipIn(tx, organizationId, request.userId);
    if (member === undefined) throw refusal('USER_NOT_FOUND');
    const nowMs = deps.clock.nowMs();
    const subject = accountSubject(member.platformUserId);
    // the lock order of a sign-in: first the record, then the account
    const ladder = await lockLadder(tx, subject, nowMs);
    const account = await lockAccount(tx, member.platformUserId);
    if (account === undefined) throw refusal('USER_NOT_FOUND');
    const networks = [...ladder.networks.keys()];
    const isTheirs = account.homeOrganizationId === organizationId || member.lastLoginAtMs !== undefined;
    if (isTheirs) await saveLadder(tx, subject, unlocked(ladder), networks);
    await appendAudit(tx, {
      organizationId,
      occurredAtMs: nowMs,
      type: 'AccountUnlockedByAdmin',
      identityId: member.identityId,
      platformUserId: account.id,
      origin: request.origin,
      success: true,
      details: { failures: isTheirs ? ladder.failures : 0, by: caller.subject },
    });
    if (!isTheirs) return undefined;
    return {
      email: account.email,
      knownNetworks: networks.filter((each) => isKnownNetwork(ladder, each, nowMs)),
    };
  });
  if (opened?.email !== undefined) await liftGuessCaps(deps.db, opened.email, opened.knownNetworks);
}
