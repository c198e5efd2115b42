import type { Caller } from '#core/identity/claims.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { Origin } from '../audit/audit.ts';
import { appendAudit } from '../audit/store.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { requireCallerOrganization } from '../organizations/authority.ts';
import { clearFailures, findMembershipIn, lockAccount } from './store.ts';

export interface UnlockRequest {
  readonly organizationId: string;
  readonly userId: string;
  readonly origin: Origin;
}

/**
 * Opens a locked account and forgets its failures. An account of other organisations whose person has never signed in to this one
 * stays locked, or an organisation that adds an address would lift the bound on guesses at its password; the answer and the audit
 * event are the same, since they would tell that the address has an account elsewhere.
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
  await deps.db.transact(async (tx) => {
    const member = await findMembershipIn(tx, organizationId, request.userId);
    const account = member && (await lockAccount(tx, member.platformUserId));
    if (member === undefined || account === undefined) throw refusal('USER_NOT_FOUND');
    const isTheirs = account.homeOrganizationId === organizationId || member.lastLoginAtMs !== undefined;
    if (isTheirs) await clearFailures(tx, account.id);
    await appendAudit(tx, {
      organizationId,
      occurredAtMs: deps.clock.nowMs(),
      type: 'AccountUnlockedByAdmin',
      identityId: member.identityId,
      platformUserId: account.id,
      origin: request.origin,
      success: true,
      details: { failures: isTheirs ? account.failedLoginCount : 0, by: caller.subject },
    });
  });
}
