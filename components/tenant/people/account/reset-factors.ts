import type { Caller } from '#core/identity/claims.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { appendAuditEvent } from '../../audit/log/store.ts';
import { refusal } from '../../errors.ts';
import type { Origin } from '../../requests/origin.ts';
import { requireRecentProof } from '../../sign-in/challenge/gate.ts';
import { endSessions } from '../../sign-in/recovery/recover.ts';
import type { SecondStepDeps } from '../../sign-in/second-step/complete.ts';
import { dropSecondFactors, lockAccount } from '../accounts/store.ts';
import { notifyPerson } from '../inbox/notify-person.ts';

export interface ResetFactorsDeps extends SecondStepDeps {
  /** Notifies all services of new revocations. */
  readonly notify: () => void;
}

interface Reset {
  readonly caller: Caller;
  readonly challenge: string | undefined;
  readonly platformUserId: string;
  readonly origin: Origin;
}

/**
 * Removes the second factors of a person who has lost them: passkeys, authenticator app, backup codes, channels. Only a
 * system administrator with a strong proof of the last 300 s may. Every session of the person ends, and the person is
 * notified.
 *
 * @throws USER_NOT_FOUND, insufficient_user_authentication
 */
export async function resetFactors(deps: ResetFactorsDeps, reset: Reset): Promise<void> {
  const { caller, challenge, platformUserId, origin } = reset;
  await deps.db.transact(async (tx) => {
    await requireRecentProof(deps, tx, { caller, challenge, operation: 'ResetFactors', strength: 'strong' });
    const account = await lockAccount(tx, platformUserId);
    if (account === undefined) throw refusal('USER_NOT_FOUND');
    const atMs = deps.clock.nowMs();
    await dropSecondFactors(tx, platformUserId);
    await endSessions(tx, platformUserId, { reason: 'factors-reset', atMs });
    const naturalKey = await appendAuditEvent(tx, {
      organizationId: SYSTEM_ORGANIZATION_ID,
      occurredAtMs: atMs,
      type: 'TwoFactorDisabled',
      platformUserId,
      origin,
      success: true,
      details: { method: 'all', by: caller.subject },
    });
    const title = 'Your second factors were reset by an administrator';
    await notifyPerson(tx, {
      platformUserId,
      category: 'Security',
      severity: 'Warning',
      eventKey: 'two-factor-disabled',
      about: platformUserId,
      naturalKey,
      iconKey: 'security.two-factor',
      title,
      detailHref: '/api/me/auth-methods',
      atMs,
    });
    if (account.email === undefined || !account.emailVerified) return;
    const text = `${title}. Every session has ended.\n\nIf you did not ask for it, tell your administrator at once.\n`;
    await deps.messages.add(tx, { channel: 'mail', to: account.email, subject: title, text }, atMs);
  });
  deps.notify();
  deps.notifyInboxes();
}
