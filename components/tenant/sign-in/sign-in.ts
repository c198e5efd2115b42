import type { HumanTier } from '#core/identity/tiers.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { lockMembership } from '../organizations/lock-membership.ts';
import { type Account, normalizeEmail } from '../people/accounts/account.ts';
import { lockAccount } from '../people/accounts/store.ts';
import { secondFactorsOf } from '../people/means/means.ts';
import { findMeans } from '../people/means/store.ts';
import type { Membership } from '../people/memberships/membership.ts';
import { listMemberships } from '../people/memberships/store.ts';
import type { Origin } from '../requests/origin.ts';
import {
  type IssuedTokens,
  issueSession,
  type Session,
  type SessionIssuer,
} from '../tokens/sessions/session.ts';
import { findAccount } from './find-account.ts';
import { type FailureReason, recordFailure, requireAdmission, saveSettled } from './lockout/failure.ts';
import type { GuessCap } from './lockout/guess-cap.ts';
import { admit, isKnownNetwork, type Ladder, type Outcome } from './lockout/ladder.ts';
import type { LockoutStep } from './lockout/lockout.ts';
import { networkOf } from './lockout/network.ts';
import { lockLadder, readLadder } from './lockout/store.ts';
import { accountSubject, type Subject } from './lockout/subject.ts';
import type { FindUnknown } from './lockout/unknown-address.ts';
import { chooseMembership } from './opening/membership.ts';
import { openSession } from './opening/open-session.ts';
import { resolveTier } from './opening/tier.ts';
import type { PasswordResult, Passwords } from './passwords/queue.ts';
import { isSecondStep, type LoginTokens, type SecondStep } from './second-step/login-token.ts';

/** One attempt to sign in with a password. */
interface Attempt {
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
  readonly findUnknown: FindUnknown;
  readonly lockoutSteps: readonly LockoutStep[];
  readonly loginTokens: LoginTokens;
}

type Tx = Transactor<TenantDatabase>;

type SignInResult = Session | SecondStep | 'wrong' | 'tier-refused';

/**
 * Signs in with e-mail and password. Wrong password, unknown e-mail, locked account and suspended organisation give the
 * same answer after the same statements.
 * @returns the tokens, or what the second factor needs
 * @throws INVALID_CREDENTIALS, TIER_NOT_ENTITLED, RATE_LIMITED
 */
export async function signIn(deps: SignInDeps, attempt: Attempt): Promise<IssuedTokens | SecondStep> {
  const email = normalizeEmail(attempt.email);
  const result = await deps.guessCap.inTurn(email, () => judge(deps, attempt, email));
  if (result === 'wrong') throw refusal('INVALID_CREDENTIALS');
  if (result === 'tier-refused') throw refusal('TIER_NOT_ENTITLED');
  return isSecondStep(result) ? result : issueSession(deps, result);
}

async function judge(deps: SignInDeps, attempt: Attempt, email: string): Promise<SignInResult> {
  const account = await findAccount(deps.db.read, attempt);
  const subject = account === undefined ? deps.findUnknown(email) : accountSubject(account.id);
  const network = networkOf(attempt.origin.ipAddress);
  const ladder = await readLadder(deps.db.read, subject);
  const nowMs = deps.clock.nowMs();
  // Checked again below while the record is locked; the check here avoids the slow hash.
  requireAdmission(admit(ladder, network, nowMs));
  const knownNetwork = isKnownNetwork(ladder, network, nowMs) ? network : undefined;
  return deps.guessCap.guard({ email, knownNetwork }, async () => {
    const password = await deps.passwords.verify(attempt.password, account?.passwordHash);
    return deps.db.transact((tx) => conclude(deps, { tx, attempt, subject, account, network, password }));
  });
}

interface CheckedAttempt {
  readonly tx: Tx;
  readonly attempt: Attempt;
  readonly subject: Subject;
  readonly account: Account | undefined;
  readonly network: string | undefined;
  readonly password: PasswordResult;
}

/**
 * Every refusal writes the same rows: the record of the subject, that of the network, and an audit event. A right
 * password of a suspended account counts as wrong, so that the counts do not reveal that it was right.
 */
async function conclude(deps: SignInDeps, checked: CheckedAttempt): Promise<SignInResult> {
  const { tx, subject, account, network, password } = checked;
  const nowMs = deps.clock.nowMs();
  const ladder = await lockLadder(tx, subject, nowMs);
  const refuse = (outcome: Outcome, reason: FailureReason) =>
    fail(deps, checked, { ladder, outcome, reason, nowMs });
  const admission = admit(ladder, network, nowMs);
  requireAdmission(admission);
  if (admission.kind !== 'open') return refuse('ignored', admission.kind);
  if (account === undefined || !password.correct) return refuse('wrong', 'password');
  if (!account.isActive) return refuse('wrong', 'account');
  const locked = await lockAccount(tx, account.id);
  if (locked?.isActive !== true) return refuse('wrong', 'account');
  const chosen = chooseMembership(
    locked,
    await listMemberships(tx, locked.id),
    checked.attempt.organizationSubdomain,
  );
  const membership = chosen && (await lockMembership(tx, chosen));
  if (membership === undefined) return refuse('proved', 'organization');
  return startSession(deps, checked, { ladder, account: locked, membership, nowMs });
}

interface SignInGrant {
  readonly ladder: Ladder;
  readonly account: Account;
  readonly membership: Membership;
  readonly nowMs: number;
}

async function startSession(
  deps: SignInDeps,
  checked: CheckedAttempt,
  grant: SignInGrant,
): Promise<SignInResult> {
  const { tx, attempt, subject, network, password } = checked;
  const { ladder, account, membership, nowMs } = grant;
  const tier = resolveTier({
    tier: attempt.tier,
    returnTo: attempt.returnTo,
    roles: membership.roles,
    orgType: membership.orgType,
  });
  const methods = tier === 'refused' ? [] : secondFactorsOf(await findMeans(tx, account.id));
  // The password alone clears no failures of an account that wants more than it.
  const outcome = methods.length > 0 ? 'ignored' : tier === 'refused' ? 'proved' : 'right';
  await saveSettled(tx, { subject, ladder, network, outcome, nowMs }, deps.lockoutSteps);
  if (tier === 'refused') return 'tier-refused';
  if (methods.length > 0) {
    const { identityId, organizationId } = membership;
    const payload = { identityId, organizationId, tier };
    return { methods, loginToken: await deps.loginTokens.issue(tx, { subject: account.id, payload }) };
  }
  return openSession(tx, {
    account,
    membership,
    tier,
    method: 'password',
    amr: ['pwd'],
    basicProofAtMs: nowMs,
    strongProofAtMs: undefined,
    rehashed: password.rehashed,
    origin: attempt.origin,
    nowMs,
  });
}

interface FailedAttempt {
  readonly ladder: Ladder;
  readonly outcome: Outcome;
  readonly reason: FailureReason;
  readonly nowMs: number;
}

async function fail(deps: SignInDeps, checked: CheckedAttempt, failed: FailedAttempt): Promise<'wrong'> {
  const { tx, subject, network, attempt } = checked;
  const { ladder, outcome, reason, nowMs } = failed;
  await saveSettled(tx, { subject, ladder, network, outcome, nowMs }, deps.lockoutSteps);
  await recordFailure(tx, { subject, reason, origin: attempt.origin, nowMs });
  return 'wrong';
}
