import { randomUUID } from 'node:crypto';
import { AppError, genericCode } from '#core/errors/errors.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Transactor } from '#kit/db/db.ts';
import type { AuditEvent } from '../../audit/log/event.ts';
import { countAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import type { Origin } from '../../requests/origin.ts';
import { type Admission, type Attempted, type Ladder, settle } from './ladder.ts';
import type { LockoutStep } from './lockout.ts';
import { dropNetworks, findHomeOrganization, saveLadder } from './store.ts';
import type { Subject } from './subject.ts';
import { auditKeyOf } from './unknown-address.ts';

type Tx = Transactor<TenantDatabase>;

export type FailureReason =
  | 'closed'
  | 'locked'
  | 'password'
  | 'second-factor'
  | 'challenge'
  | 'passkey'
  | 'account'
  | 'organization';

/** @throws AppError rate_limited when the guesses are used up, equally for addresses without an account */
export function requireAdmission(
  admission: Admission,
): asserts admission is Exclude<Admission, { kind: 'slowed' }> {
  if (admission.kind !== 'slowed') return;
  const { retryAfterSeconds } = admission;
  throw new AppError('rate_limited', genericCode('rate_limited'), 'Too many attempts.', {
    retryAfterSeconds,
  });
}

interface SettledAttempt extends Attempted {
  readonly subject: Subject;
  readonly ladder: Ladder;
}

/** Writes the result of an attempt. @returns the record as it is now */
export async function saveSettled(
  tx: Tx,
  attempt: SettledAttempt,
  steps: readonly LockoutStep[],
): Promise<Ladder> {
  const { subject } = attempt;
  const { ladder, written, dropped } = settle(attempt.ladder, attempt, steps);
  await saveLadder(tx, subject, ladder, [written]);
  await dropNetworks(tx, subject.id, dropped);
  return ladder;
}

interface FailedAttempt {
  readonly subject: Subject;
  readonly reason: FailureReason;
  readonly origin: Origin;
  readonly nowMs: number;
}

/**
 * Writes the audit event of a failed sign-in with one statement. A failure of an account is a new event in the home
 * organisation of the account; a failure of an address without an account increments one of a few events per hour in
 * the System organisation.
 */
export async function recordFailure(tx: Tx, failed: FailedAttempt): Promise<void> {
  const { subject, nowMs } = failed;
  const home = await findHomeOrganization(tx, subject.id);
  const organizationId = home ?? SYSTEM_ORGANIZATION_ID;
  const event = { organizationId, occurredAtMs: nowMs, type: 'LoginFailed', success: false } as const;
  const counted = subject.kind === 'account' ? accountEvent(event, failed) : unknownEvent(event, failed);
  await countAudit(tx, counted.event, { key: counted.key, occurrences: 1 });
}

interface CountedEvent {
  readonly event: AuditEvent;
  readonly key: string;
}

function accountEvent(event: AuditEvent, { subject, origin, reason }: FailedAttempt): CountedEvent {
  return { event: { ...event, platformUserId: subject.id, origin, details: { reason } }, key: randomUUID() };
}

function unknownEvent(event: AuditEvent, { subject, nowMs }: FailedAttempt): CountedEvent {
  const details = { reason: 'unknown-address', occurrences: 1 };
  return { event: { ...event, details }, key: auditKeyOf(subject, nowMs) };
}
