import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { normalizeEmail } from '../../people/accounts/account.ts';
import { findAddressedAccount } from '../../people/accounts/store.ts';
import type { Protection } from '../../tokens/keys/protection.ts';
import { findHomeOrganization } from '../lockout/store.ts';
import { clearLock, createResetTokens, resetLink } from './recover.ts';

interface RecoverAccountDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly protection: Protection;
  readonly baseUrl: string;
}

/**
 * The way back in for operators, who have the database and the protection key: lifts the lock of an account and makes a
 * link that sets a new password within one hour. It is audited.
 *
 * @returns the link
 * @throws USER_NOT_FOUND
 */
export async function recoverAccount(deps: RecoverAccountDeps, address: string): Promise<string> {
  const { db, clock, baseUrl } = deps;
  const token = await db.transact(async (tx) => {
    const account = await findAddressedAccount(tx, normalizeEmail(address), undefined);
    if (account === undefined)
      throw refusal('USER_NOT_FOUND', { message: `no account has the address ${address}` });
    const nowMs = clock.nowMs();
    await clearLock(tx, account.id, nowMs);
    await appendAudit(tx, {
      organizationId: (await findHomeOrganization(tx, account.id)) ?? SYSTEM_ORGANIZATION_ID,
      occurredAtMs: nowMs,
      type: 'AccountUnlockedByAdmin',
      platformUserId: account.id,
      success: true,
      details: { by: 'recover command' },
    });
    return createResetTokens(deps).issue(tx, { subject: account.id, payload: {} });
  });
  return resetLink(baseUrl, token);
}
