import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import { appendAuditEvent } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { notifyPerson } from '../../people/inbox/notify-person.ts';
import { endSecrets } from '../../tokens/one-time/store.ts';
import { findHomeOrganization, takeUnreportedLocks, type UnreportedLock } from './store.ts';

const batch = 100;

/**
 * Writes the audit event and the inbox entry of every new lock, and ends the sign-ins that wait for their second factor,
 * because the password must be proved again behind a lock. The attempt that locks does not write them, so that it
 * takes as long as an attempt on an address without an account. Replicas share the work.
 */
export async function reportLocks(deps: {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  /** Called after each batch, whose people are notified. */
  readonly notifyInboxes: () => void;
}): Promise<void> {
  const { db, clock } = deps;
  let taken = batch;
  while (taken >= batch) {
    taken = await db.transact(async (tx) => {
      const locks = await takeUnreportedLocks(tx, batch);
      for (const lock of locks) await report(tx, lock, clock.nowMs());
      return locks.length;
    });
    if (taken > 0) deps.notifyInboxes();
  }
}

async function report(tx: Transactor<TenantDatabase>, lock: UnreportedLock, nowMs: number): Promise<void> {
  const { accountId, failures, untilMs, network } = lock;
  await endSecrets(tx, 'sign-in', accountId, nowMs);
  const until = untilMs === undefined ? 'unlocked' : new Date(untilMs).toISOString();
  const eventId = await appendAuditEvent(tx, {
    organizationId: (await findHomeOrganization(tx, accountId)) ?? SYSTEM_ORGANIZATION_ID,
    occurredAtMs: nowMs,
    type: 'AccountLockedOut',
    platformUserId: accountId,
    success: true,
    details: { failures, until, network: network ?? 'all' },
  });
  const what =
    network === undefined
      ? 'Your account is closed: an administrator has to unlock it'
      : `Your account was locked for ${network} after wrong passwords`;
  await notifyPerson(tx, {
    platformUserId: accountId,
    category: 'Security',
    severity: 'Warning',
    eventKey: 'account-locked',
    about: `account-locked:${accountId}`,
    naturalKey: eventId,
    iconKey: 'security.account-locked',
    title: what,
    summary: `${failures} attempts failed in a row.`,
    atMs: nowMs,
  });
}
