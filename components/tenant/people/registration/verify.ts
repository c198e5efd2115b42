import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Origin } from '../../requests/origin.ts';
import { requirePerson } from '../../requests/person.ts';
import { type GateDeps, requireRecentProof } from '../../sign-in/challenge/gate.ts';
import { findHomeOrganization } from '../../sign-in/lockout/store.ts';
import { requireLiving } from '../../tokens/one-time/require-living.ts';
import { listIssues } from '../../tokens/one-time/store.ts';
import { endTokens } from '../../tokens/sessions/end-tokens.ts';
import { type Account, normalizeEmail } from '../accounts/account.ts';
import { dropCredentials, lockAccount } from '../accounts/store.ts';
import type { MessageQueue } from '../messages/queue.ts';
import { mayMail } from '../messages/unasked.ts';
import { addressChangeMail, knownAddressMail, verificationMail } from './mails.ts';
import {
  closeAccount,
  findPendingEmail,
  lockAccountsOf,
  moveMemberships,
  setPendingEmail,
  setVerifiedEmail,
} from './store.ts';
import type { AddressTokens } from './tokens.ts';

type Tx = Transactor<TenantDatabase>;

export interface VerifyDeps extends GateDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly messages: MessageQueue;
  readonly tokens: AddressTokens;
  readonly baseUrl: string;
  readonly installation: string;
  /** Notifies all services of new revocations. */
  readonly notify: () => void;
}

/**
 * Confirms an address by the token of its mail. The account becomes the verified one of the address, or joins the one that
 * is: of unverified accounts only memberships are kept, since their makers have not proved to own the address.
 *
 * @throws TOKEN_UNKNOWN, TOKEN_USED, TOKEN_EXPIRED
 */
export async function verifyEmail(deps: VerifyDeps, token: string, origin: Origin): Promise<void> {
  await deps.db.transact(async (tx) => {
    const { subject, payload } = requireLiving(await deps.tokens.verification.take(tx, token));
    const atMs = deps.clock.nowMs();
    const { email } = payload;
    const others = (await lockAccountsOf(tx, email)).filter(({ id }) => id !== subject);
    const account = await lockAccount(tx, subject);
    if (account?.isActive !== true || !(await mayHave(tx, account, email))) throw refusal('TOKEN_UNKNOWN');
    const verified = others.find(({ isVerified }) => isVerified);
    if (verified !== undefined && account.emailVerified) throw refusal('TOKEN_UNKNOWN');
    const joined = verified === undefined ? others.map(({ id }) => id) : [account.id];
    for (const id of joined) await join(tx, { from: id, to: verified?.id ?? account.id, atMs });
    if (verified === undefined) await become(deps, tx, { account, email, atMs });
    await audit(tx, { account: verified?.id ?? account.id, origin, atMs, joined: joined.length });
  });
  deps.notify();
}

/** The token is for the address that the account has, or for the one that it last asked for. */
async function mayHave(tx: Tx, account: Account, email: string): Promise<boolean> {
  return account.email === email
    ? !account.emailVerified
    : (await findPendingEmail(tx, account.id)) === email;
}

interface Becoming {
  readonly account: Account;
  readonly email: string;
  readonly atMs: number;
}

async function become(deps: VerifyDeps, tx: Tx, { account, email, atMs }: Becoming): Promise<void> {
  await setVerifiedEmail(tx, account.id, { email, atMs });
  if (account.email !== undefined && account.email !== email && account.emailVerified) {
    await deps.messages.add(tx, addressChangeMail(account.email, true), atMs);
  }
}

interface Joining {
  readonly from: string;
  readonly to: string;
  readonly atMs: number;
}

async function join(tx: Tx, { from, to, atMs }: Joining): Promise<void> {
  await endTokens(tx, {
    kind: 'platform_user',
    key: from,
    families: { platformUserId: from },
    reason: 'joined',
    atMs,
  });
  await dropCredentials(tx, from);
  await moveMemberships(tx, from, to);
  await closeAccount(tx, from);
}

interface Verified {
  readonly account: string;
  readonly origin: Origin;
  readonly atMs: number;
  readonly joined: number;
}

async function audit(tx: Tx, { account, origin, atMs, joined }: Verified): Promise<void> {
  const organizationId = await findHomeOrganization(tx, account);
  if (organizationId === undefined) return;
  await appendAudit(tx, {
    organizationId,
    occurredAtMs: atMs,
    type: 'EmailVerified',
    platformUserId: account,
    origin,
    success: true,
    details: { joinedAccounts: joined },
  });
}

const hourMs = 3_600_000;
const mailsPerHour = 3;
/** Within this time after the account was made, a mail is that of the registration. */
const registrationMs = 1_000;

/**
 * Sends the verification mail again, at most three times an hour; nothing when the address is verified.
 * @throws UNAUTHORIZED for a service, RATE_LIMITED
 */
export async function resendVerification(deps: VerifyDeps, caller: Caller, origin: Origin): Promise<void> {
  const accountId = requirePerson(caller);
  await deps.db.transact(async (tx) => {
    const account = await lockAccount(tx, accountId);
    if (account?.email === undefined || account.emailVerified) return;
    const { email } = account;
    const atMs = deps.clock.nowMs();
    const sent = await listIssues(tx, 'email-verification', account.id, atMs - hourMs);
    // The mail of the registration itself is not one that was sent again.
    const again = sent.filter((issuedMs) => issuedMs - account.createdAtMs > registrationMs);
    const oldest = again[mailsPerHour - 1];
    if (oldest !== undefined) {
      const retryAfterSeconds = Math.ceil((oldest + hourMs - atMs) / 1000);
      throw new AppError('rate_limited', genericCode('rate_limited'), 'Too many mails.', {
        retryAfterSeconds,
      });
    }
    const token = await deps.tokens.verification.issue(tx, { subject: account.id, payload: { email } });
    const { ipAddress } = origin;
    const notice = { to: email, baseUrl: deps.baseUrl, organizationName: deps.installation };
    const mail = { ...notice, token, disownToken: undefined, at: new Date(atMs), ipAddress };
    await deps.messages.add(tx, verificationMail(mail), atMs);
    const organizationId = await findHomeOrganization(tx, account.id);
    if (organizationId === undefined) return;
    const event = {
      organizationId,
      occurredAtMs: atMs,
      type: 'EmailVerificationSent',
      success: true,
    } as const;
    await appendAudit(tx, { ...event, platformUserId: account.id, origin });
  });
}

/**
 * Deletes an account that was made with an address of another person, as long as it is not verified.
 * @throws TOKEN_UNKNOWN, TOKEN_USED, TOKEN_EXPIRED
 */
export async function disown(deps: VerifyDeps, token: string, origin: Origin): Promise<void> {
  await deps.db.transact(async (tx) => {
    const { subject } = requireLiving(await deps.tokens.disowning.take(tx, token));
    const account = await lockAccount(tx, subject);
    if (account === undefined || account.emailVerified) throw refusal('TOKEN_UNKNOWN');
    const atMs = deps.clock.nowMs();
    const organizationId = await findHomeOrganization(tx, subject);
    const families = { platformUserId: subject };
    await endTokens(tx, { kind: 'platform_user', key: subject, families, reason: 'disowned', atMs });
    await deps.tokens.verification.end(tx, subject);
    await dropCredentials(tx, subject);
    await closeAccount(tx, subject);
    if (organizationId === undefined) return;
    await appendAudit(tx, {
      organizationId,
      occurredAtMs: atMs,
      type: 'UserRemovedFromOrganization',
      platformUserId: subject,
      origin,
      success: true,
      details: { reason: 'disowned' },
    });
  });
  deps.notify();
}

interface EmailChange {
  readonly caller: Caller;
  readonly email: string;
  readonly challenge: string | undefined;
  readonly origin: Origin;
}

/**
 * Asks for another address: it holds once the token of its mail is used. The present address gets a mail. The answer is
 * the same when the address has an account; its owner gets a mail then, and nothing changes.
 *
 * @throws UNAUTHORIZED for a service, insufficient_user_authentication
 */
export async function changeEmail(deps: VerifyDeps, change: EmailChange): Promise<void> {
  const accountId = requirePerson(change.caller);
  const email = normalizeEmail(change.email);
  const isMailed = await mayMail(deps.db, email, 'address-change');
  await deps.db.transact(async (tx) => {
    const { caller, challenge, origin } = change;
    await requireRecentProof(deps, tx, { caller, challenge, operation: 'ChangeEmail', strength: 'basic' });
    const atMs = deps.clock.nowMs();
    const others = (await lockAccountsOf(tx, email)).filter(({ id }) => id !== accountId);
    const account = await lockAccount(tx, accountId);
    if (account === undefined || (account.email === email && account.emailVerified)) return;
    const isTaken = others.some(({ isVerified }) => isVerified);
    await setPendingEmail(tx, accountId, email);
    const token = await deps.tokens.verification.issue(tx, { subject: accountId, payload: { email } });
    const notice = { to: email, baseUrl: deps.baseUrl, organizationName: deps.installation };
    const { ipAddress } = origin;
    const mail = isTaken
      ? knownAddressMail(notice)
      : verificationMail({ ...notice, token, disownToken: undefined, at: new Date(atMs), ipAddress });
    await deps.messages.add(tx, isMailed ? mail : { channel: 'none' }, atMs);
    if (account.email !== undefined && account.emailVerified) {
      await deps.messages.add(tx, addressChangeMail(account.email, false), atMs);
    }
  });
}
