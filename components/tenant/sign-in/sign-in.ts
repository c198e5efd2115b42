import { randomUUIDv7 } from 'node:crypto';
import type { HumanTier } from '#core/identity/tiers.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { Origin } from '../audit/audit.ts';
import { appendAudit, appendAuditEvent } from '../audit/store.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { tellPerson } from '../inbox/tell.ts';
import type { Passwords, PasswordVerdict } from '../passwords/queue.ts';
import { findNotBefore } from '../revocations/store.ts';
import { refreshLifetimeSeconds } from '../tokens/claims.ts';
import { type IssuedTokens, issueSession, type Session, type SessionIssuer } from '../tokens/session.ts';
import { insertFamily, type NewFamily } from '../tokens/store.ts';
import { type Account, type Membership, normalizeEmail } from '../users/account.ts';
import { holdMembership } from '../users/hold.ts';
import {
  addFailure,
  clearFailures,
  findAccountByEmail,
  listMemberships,
  lockAccount,
  recordSignIn,
  setLock,
} from '../users/store.ts';
import type { GuessCap } from './guess-cap.ts';
import { isLocked, type LockoutStep, lockAfter } from './lockout.ts';
import { chooseMembership } from './membership.ts';
import { resolveTier } from './tier.ts';

/** One attempt to sign in with a password. */
export interface Attempt {
  readonly email: string;
  readonly password: string;
  readonly organizationSubdomain?: string | undefined;
  readonly tier?: HumanTier | undefined;
  readonly returnTo?: string | undefined;
  readonly origin: Origin;
}

export interface SignInDeps extends SessionIssuer {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly passwords: Passwords;
  readonly guessCap: GuessCap;
  readonly lockoutSteps: readonly LockoutStep[];
}

type Tx = Transactor<TenantDatabase>;

type Outcome = Session | 'wrong' | 'tier-refused';

/**
 * Signs in by e-mail and password. Wrong password, unknown e-mail, locked account and closed organisation give the
 * same answer in the same time. Throws INVALID_CREDENTIALS, TIER_NOT_ENTITLED or RATE_LIMITED.
 */
export async function signIn(deps: SignInDeps, attempt: Attempt): Promise<IssuedTokens> {
  const email = normalizeEmail(attempt.email);
  const outcome = await deps.guessCap.guard(email, async () => {
    const known = await findAccountByEmail(deps.db.read, email);
    const verdict = await deps.passwords.verify(attempt.password, known?.passwordHash);
    if (known === undefined) return 'wrong' as const;
    return deps.db.transact((tx) => conclude(deps, { tx, attempt, verdict, accountId: known.id }));
  });
  if (outcome === 'wrong') throw refusal('INVALID_CREDENTIALS');
  if (outcome === 'tier-refused') throw refusal('TIER_NOT_ENTITLED');
  return issueSession(deps, outcome);
}

interface Conclusion {
  readonly tx: Tx;
  readonly attempt: Attempt;
  readonly verdict: PasswordVerdict;
  readonly accountId: string;
}

async function conclude(deps: SignInDeps, conclusion: Conclusion): Promise<Outcome> {
  const { tx, attempt, verdict } = conclusion;
  const nowMs = deps.clock.nowMs();
  const account = await lockAccount(tx, conclusion.accountId);
  if (account === undefined) return 'wrong';
  const memberships = await listMemberships(tx, account.id);
  const failed = (reason: string) => auditFailure({ tx, account, memberships, attempt, reason, nowMs });
  if (isLocked(account, nowMs)) return failed('locked');
  if (!verdict.correct) {
    await countFailure(deps, { tx, account, memberships, attempt, nowMs });
    return failed('password');
  }
  if (!account.isActive) return failed('account');
  await clearFailures(tx, account.id);
  const chosen = chooseMembership(account, memberships, attempt.organizationSubdomain);
  const membership = chosen && (await holdMembership(tx, chosen));
  if (membership === undefined) return failed('organization');
  const tier = resolveTier({
    tier: attempt.tier,
    returnTo: attempt.returnTo,
    roles: membership.roles,
    orgType: membership.orgType,
  });
  if (tier === 'refused') return 'tier-refused';
  const family = newFamily(membership, tier, nowMs);
  await insertFamily(tx, family);
  await recordSignIn(tx, {
    accountId: account.id,
    identityId: membership.identityId,
    organizationId: membership.organizationId,
    atMs: nowMs,
    rehashed: verdict.rehashed,
  });
  await appendAudit(tx, {
    organizationId: membership.organizationId,
    occurredAtMs: nowMs,
    type: 'Login',
    identityId: membership.identityId,
    platformUserId: account.id,
    origin: attempt.origin,
    success: true,
    details: { method: 'password', tier, familyId: family.id },
  });
  const keys = [membership.identityId, account.id, membership.organizationId];
  const revokedBeforeMs = await findNotBefore(tx, keys, nowMs);
  return { membership, emailVerified: account.emailVerified, family, tier, generation: 0, revokedBeforeMs };
}

function newFamily(membership: Membership, tier: NewFamily['tier'], nowMs: number): NewFamily {
  return {
    id: randomUUIDv7(),
    platformUserId: membership.platformUserId,
    identityId: membership.identityId,
    organizationId: membership.organizationId,
    tier,
    amr: ['pwd'],
    authTimeMs: nowMs,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + refreshLifetimeSeconds * 1000,
  };
}

interface Failure {
  readonly tx: Tx;
  readonly account: Account;
  readonly memberships: readonly Membership[];
  readonly attempt: Attempt;
  readonly nowMs: number;
}

async function countFailure(deps: SignInDeps, failure: Failure): Promise<void> {
  const { tx, account, nowMs } = failure;
  const failures = await addFailure(tx, account.id);
  const lock = lockAfter(deps.lockoutSteps, failures, nowMs);
  if (lock === undefined) return;
  await setLock(tx, account.id, lock);
  const until = lock.lockedUntilMs === undefined ? 'unlocked' : new Date(lock.lockedUntilMs).toISOString();
  const eventId = await appendAuditEvent(tx, {
    organizationId: homeOf(failure),
    occurredAtMs: nowMs,
    type: 'AccountLockedOut',
    platformUserId: account.id,
    origin: failure.attempt.origin,
    success: true,
    details: { failures, until },
  });
  await tellPerson(tx, {
    platformUserId: account.id,
    category: 'Security',
    severity: 'Warning',
    eventKey: 'account-locked',
    about: `account-locked:${account.id}`,
    naturalKey: eventId,
    iconKey: 'security.account-locked',
    title: 'Your account was locked after wrong passwords',
    summary: `${failures} attempts failed in a row.`,
    atMs: nowMs,
  });
}

async function auditFailure(failure: Failure & { readonly reason: string }): Promise<'wrong'> {
  await appendAudit(failure.tx, {
    organizationId: homeOf(failure),
    occurredAtMs: failure.nowMs,
    type: 'LoginFailed',
    platformUserId: failure.account.id,
    origin: failure.attempt.origin,
    success: false,
    details: { reason: failure.reason },
  });
  return 'wrong';
}

/** The organisation whose auditors see what happens to the account. */
function homeOf(failure: Pick<Failure, 'account' | 'memberships'>): string {
  const { account, memberships } = failure;
  return account.defaultOrganizationId ?? memberships[0]?.organizationId ?? SYSTEM_ORGANIZATION_ID;
}
