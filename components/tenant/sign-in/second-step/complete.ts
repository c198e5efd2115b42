import { AppError, genericCode } from '#core/errors/errors.ts';
import type { HumanTier } from '#core/identity/tiers.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { lockMembership } from '../../organizations/lock-membership.ts';
import type { Account } from '../../people/accounts/account.ts';
import { lockAccount } from '../../people/accounts/store.ts';
import { type SecondFactor, secondFactorsOf } from '../../people/means/means.ts';
import { findMeans } from '../../people/means/store.ts';
import type { Origin } from '../../requests/origin.ts';
import type { Living, RightCode } from '../../tokens/one-time/one-time.ts';
import type { Dead } from '../../tokens/one-time/store.ts';
import { endSecrets } from '../../tokens/one-time/store.ts';
import {
  type IssuedTokens,
  issueSession,
  type Session,
  type SessionIssuer,
} from '../../tokens/sessions/session.ts';
import { recordFailure, saveSettled } from '../lockout/failure.ts';
import { admit, type Ladder } from '../lockout/ladder.ts';
import type { LockoutStep } from '../lockout/lockout.ts';
import { networkOf } from '../lockout/network.ts';
import { lockLadder } from '../lockout/store.ts';
import { accountSubject } from '../lockout/subject.ts';
import { openSession } from '../opening/open-session.ts';
import { type ChannelDeps, findPhone, sendCode } from '../second-factors/channels.ts';
import { recordFactor } from '../second-factors/record.ts';
import { acceptBackupCode, acceptTotp } from '../second-factors/totp.ts';
import type { LoginTokens } from './login-token.ts';

type Tx = Transactor<TenantDatabase>;

export interface SecondStepDeps extends SessionIssuer, ChannelDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly loginTokens: LoginTokens;
  readonly lockoutSteps: readonly LockoutStep[];
}

/** What confirms a sign-in behind its password. */
type CodeMethod = 'totp' | 'backup' | 'email' | 'sms';

interface Confirmation {
  readonly loginToken: string;
  readonly method: CodeMethod;
  readonly code: string;
  /** Only `consumer` changes the tier that the sign-in asked for. */
  readonly tier?: HumanTier | undefined;
  readonly origin: Origin;
}

type Login = Living<{
  readonly identityId: string;
  readonly organizationId: string;
  readonly tier: HumanTier;
}>;

/** @throws INVALID_LOGIN_TOKEN, RATE_LIMITED after five wrong proofs */
export function requireLogin(found: Login | Dead): Login {
  if (typeof found !== 'string') return found;
  if (found === 'spent') {
    throw new AppError('rate_limited', genericCode('rate_limited'), 'Too many wrong codes; sign in again.');
  }
  throw refusal('INVALID_LOGIN_TOKEN');
}

/**
 * Completes a sign-in by the second factor. The attempt is counted before it is judged; a wrong code also counts as a
 * failed sign-in of the account.
 *
 * @throws INVALID_LOGIN_TOKEN, WRONG_SECOND_FACTOR, RATE_LIMITED
 */
export async function confirmSignIn(deps: SecondStepDeps, confirmation: Confirmation): Promise<IssuedTokens> {
  const login = requireLogin(await deps.loginTokens.count(confirmation.loginToken));
  const sent = await judgeSent(deps, login.subject, confirmation);
  const session = await deps.db.transact((tx) => conclude(deps, tx, { login, sent, confirmation }));
  deps.notifyInboxes();
  if (session === 'wrong') throw refusal('WRONG_SECOND_FACTOR');
  return issueSession(deps, session);
}

/** Judges a code that was sent; its attempts are counted on their own. */
async function judgeSent(
  { codes }: SecondStepDeps,
  accountId: string,
  { method, code }: Confirmation,
): Promise<RightCode | undefined> {
  if (method !== 'email' && method !== 'sms') return undefined;
  const judged = await (method === 'email' ? codes.emailSignIn : codes.smsSignIn).judge(accountId, code);
  return typeof judged === 'string' ? undefined : judged;
}

interface Attempt {
  readonly login: Login;
  readonly sent: RightCode | undefined;
  readonly confirmation: Confirmation;
}

async function conclude(deps: SecondStepDeps, tx: Tx, attempt: Attempt): Promise<Session | 'wrong'> {
  const { login, confirmation } = attempt;
  const nowMs = deps.clock.nowMs();
  const subject = accountSubject(login.subject);
  const network = networkOf(confirmation.origin.ipAddress);
  const ladder = await lockLadder(tx, subject, nowMs);
  const account = await lockAccount(tx, login.subject);
  const isOpen = admit(ladder, network, nowMs).kind === 'open';
  const membership =
    isOpen && account?.isActive === true ? await lockMembership(tx, login.payload) : undefined;
  if (account === undefined || membership === undefined) throw refusal('INVALID_LOGIN_TOKEN');
  if (!(await accept(deps, tx, attempt, nowMs))) {
    await fail(deps, tx, { attempt, ladder, nowMs });
    return 'wrong';
  }
  requireLogin(await deps.loginTokens.take(tx, confirmation.loginToken));
  await saveSettled(tx, { subject, ladder, network, outcome: 'right', nowMs }, deps.lockoutSteps);
  const tier = confirmation.tier === 'consumer' ? 'consumer' : login.payload.tier;
  const opening = { account, membership, tier, origin: confirmation.origin, nowMs };
  return openSession(tx, { ...opening, ...proofOf(confirmation.method, nowMs) });
}

/** Claims by RFC 8176 and the class of a confirmation: codes that are sent prove no more than the password. */
function proofOf(method: CodeMethod, nowMs: number) {
  const isStrong = method === 'totp' || method === 'backup';
  return {
    method: `password+${method}`,
    amr: isStrong ? ['pwd', 'otp', 'mfa'] : method === 'email' ? ['pwd', 'otp'] : ['pwd', 'sms'],
    basicProofAtMs: nowMs,
    strongProofAtMs: isStrong ? nowMs : undefined,
  };
}

async function accept(deps: SecondStepDeps, tx: Tx, attempt: Attempt, nowMs: number): Promise<boolean> {
  const { login, sent, confirmation } = attempt;
  const accountId = login.subject;
  const { method, code, origin } = confirmation;
  const guess = { accountId, code, nowMs };
  if (method === 'totp') return acceptTotp(deps, tx, guess);
  if (method === 'backup') {
    const isRight = await acceptBackupCode(deps, tx, guess);
    const event = { accountId, request: { origin }, event: 'backup-code-used', method, atMs: nowMs } as const;
    if (isRight) await recordFactor(deps, tx, event);
    return isRight;
  }
  if (!secondFactorsOf(await findMeans(tx, accountId)).includes(method) || sent === undefined) return false;
  return (method === 'email' ? deps.codes.emailSignIn : deps.codes.smsSignIn).take(tx, sent);
}

interface Failed {
  readonly attempt: Attempt;
  readonly ladder: Ladder;
  readonly nowMs: number;
}

async function fail(deps: SecondStepDeps, tx: Tx, { attempt, ladder, nowMs }: Failed): Promise<void> {
  const { login, confirmation } = attempt;
  const subject = accountSubject(login.subject);
  const { origin } = confirmation;
  const network = networkOf(origin.ipAddress);
  const settled = { subject, ladder, network, outcome: 'wrong', nowMs } as const;
  const after = await saveSettled(tx, settled, deps.lockoutSteps);
  await recordFailure(tx, { subject, reason: 'second-factor', origin, nowMs });
  // A lock ends every sign-in that has begun; the password must be proved again behind it.
  if (admit(after, network, nowMs).kind !== 'open') await endSecrets(tx, 'sign-in', login.subject, nowMs);
}

/**
 * Sends a code for a sign-in that has begun.
 * @throws INVALID_LOGIN_TOKEN, FACTOR_NOT_ENABLED, SMS_UNAVAILABLE, RATE_LIMITED
 */
export async function sendSignInCode(
  deps: SecondStepDeps,
  loginToken: string,
  method: Extract<SecondFactor, 'email' | 'sms'>,
): Promise<void> {
  if (method === 'sms' && !deps.messages.canSendTexts) throw refusal('SMS_UNAVAILABLE');
  const { subject } = requireLogin(await deps.loginTokens.find(deps.db.read, loginToken));
  await deps.db.transact(async (tx) => {
    const account = await lockAccount(tx, subject);
    const enabled = secondFactorsOf(await findMeans(tx, subject));
    const to = enabled.includes(method) ? await receiverOf(deps, tx, account, method) : undefined;
    if (to === undefined) throw refusal('FACTOR_NOT_ENABLED');
    const codes = method === 'email' ? deps.codes.emailSignIn : deps.codes.smsSignIn;
    await sendCode(deps, tx, { codes, subject, to });
  });
}

async function receiverOf(
  deps: SecondStepDeps,
  tx: Tx,
  account: Account | undefined,
  method: 'email' | 'sms',
): Promise<{ readonly mail: string } | { readonly phone: string } | undefined> {
  if (account === undefined) return undefined;
  if (method === 'email') return account.email === undefined ? undefined : { mail: account.email };
  const phone = await findPhone(deps, tx, account.id);
  return phone === undefined ? undefined : { phone };
}
