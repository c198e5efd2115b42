import { randomUUIDv7 } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import { appendAuditEvent } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { type Account, normalizeEmail } from '../../people/accounts/account.ts';
import {
  dropCredentials,
  findAddressedAccount,
  lockAccount,
  setPassword,
} from '../../people/accounts/store.ts';
import { notifyPerson } from '../../people/inbox/notify-person.ts';
import type { Message } from '../../people/messages/message.ts';
import type { MessageQueue } from '../../people/messages/queue.ts';
import { mayMail } from '../../people/messages/unasked.ts';
import type { Origin } from '../../requests/origin.ts';
import type { Protection } from '../../tokens/keys/protection.ts';
import { createTokens, type OneTimeTokens } from '../../tokens/one-time/one-time.ts';
import { requireLiving } from '../../tokens/one-time/require-living.ts';
import { endSecrets } from '../../tokens/one-time/store.ts';
import { endTokens } from '../../tokens/sessions/end-tokens.ts';
import { liftGuessCaps } from '../lockout/guess-cap.ts';
import { emptyLadder } from '../lockout/ladder.ts';
import { dropNetworks, findHomeOrganization, lockLadder, saveLadder } from '../lockout/store.ts';
import { accountSubject } from '../lockout/subject.ts';
import type { PasswordPolicy } from '../passwords/policy.ts';
import type { Passwords } from '../passwords/queue.ts';

type Tx = Transactor<TenantDatabase>;

const nothing = z.object({});
type ResetTokens = OneTimeTokens<z.output<typeof nothing>>;

const hourMs = 3_600_000;

/** Tokens of links that set a new password; the subject is the account. */
export function createResetTokens(deps: {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly protection: Protection;
}): ResetTokens {
  return createTokens(deps, { purpose: 'password-reset', payload: nothing, lifetimeMs: hourMs });
}

export interface RecoverDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly passwords: Passwords;
  readonly passwordPolicy: PasswordPolicy;
  readonly messages: MessageQueue;
  readonly resets: ResetTokens;
  readonly baseUrl: string;
  /** Notifies all services of new revocations. */
  readonly notify: () => void;
  /** Called after the person was notified. */
  readonly notifyInboxes: () => void;
}

/** The page that takes a new password; the token is in the fragment, which no server sees. */
export function resetLink(baseUrl: string, token: string): string {
  return `${baseUrl}/auth/reset-password#${new URLSearchParams({ token })}`;
}

function resetMail(to: string, link: string): Message {
  const text = [
    'A new password was asked for, perhaps by you.',
    '',
    'Set it within one hour:',
    link,
    '',
    'If this was not you, nothing has changed and you need not do anything.',
    '',
  ].join('\n');
  return { channel: 'mail', to, subject: 'A new password', text };
}

interface Forgotten {
  readonly email: string;
  readonly organizationSubdomain?: string | undefined;
}

/** Mails a link for a new password. The work is the same for an address without an account; nothing is sent then. */
export async function forgotPassword(deps: RecoverDeps, forgotten: Forgotten): Promise<void> {
  const email = normalizeEmail(forgotten.email);
  const subdomain = forgotten.organizationSubdomain?.trim().toLowerCase();
  const isMailed = await mayMail(deps.db, email, 'password-forgotten');
  await deps.db.transact(async (tx) => {
    const account = await findAddressedAccount(tx, email, subdomain);
    const subject = account?.isActive === true ? account.id : undefined;
    const token = await deps.resets.issue(tx, { subject: subject ?? randomUUIDv7(), payload: {} });
    const mail = resetMail(email, resetLink(deps.baseUrl, token));
    await deps.messages.add(
      tx,
      subject === undefined || !isMailed ? { channel: 'none' } : mail,
      deps.clock.nowMs(),
    );
  });
}

interface Reset {
  readonly token: string;
  readonly newPassword: string;
  readonly origin: Origin;
}

/**
 * Sets a password by the token of a mail, which also proves the address and clears the lock. Every session of the account
 * ends; of an account that was not verified, everything that was enrolled before is dropped.
 *
 * @throws TOKEN_UNKNOWN, TOKEN_USED, TOKEN_EXPIRED, PASSWORD_REFUSED
 */
export async function resetPassword(deps: RecoverDeps, reset: Reset): Promise<void> {
  const found = await deps.resets.find(deps.db.read, reset.token);
  requireLiving(found);
  const faults = await deps.passwordPolicy.judge(reset.newPassword, { words: [] });
  if (faults.length > 0) throw refusal('PASSWORD_REFUSED', { details: { errors: { password: faults } } });
  const hash = await deps.passwords.hash(reset.newPassword);
  const opened = await deps.db.transact(async (tx) => {
    const { subject } = requireLiving(await deps.resets.take(tx, reset.token));
    const atMs = deps.clock.nowMs();
    // The lock order of a sign-in: first the record, then the account.
    const networks = await clearLock(tx, subject, atMs);
    const account = await lockAccount(tx, subject);
    if (account?.isActive !== true) throw refusal('TOKEN_UNKNOWN');
    if (!account.emailVerified) await dropCredentials(tx, account.id);
    await setPassword(tx, account.id, { hash, atMs });
    await deps.resets.end(tx, subject);
    await endSessions(tx, account.id, { reason: 'password-reset', atMs });
    await record(deps, tx, { account, origin: reset.origin, atMs });
    return { email: account.email, networks };
  });
  if (opened.email !== undefined) await liftGuessCaps(deps.db, opened.email, opened.networks);
  deps.notify();
  deps.notifyInboxes();
}

/** Lifts the lock of an account and clears its count. @returns the networks that had been counted */
export async function clearLock(tx: Tx, accountId: string, nowMs: number): Promise<readonly string[]> {
  const subject = accountSubject(accountId);
  const ladder = await lockLadder(tx, subject, nowMs);
  await saveLadder(tx, subject, emptyLadder, []);
  const networks = [...ladder.networks.keys()];
  await dropNetworks(tx, accountId, networks);
  return networks;
}

interface SessionEnd {
  readonly reason: string;
  readonly atMs: number;
}

/** Ends every session of a person and every sign-in that has begun. */
export async function endSessions(tx: Tx, accountId: string, { reason, atMs }: SessionEnd): Promise<void> {
  const families = { platformUserId: accountId };
  await endTokens(tx, { kind: 'platform_user', key: accountId, families, reason, atMs });
  await endSecrets(tx, 'sign-in', accountId, atMs);
}

interface ResetRecord {
  readonly account: Account;
  readonly origin: Origin;
  readonly atMs: number;
}

async function record(deps: RecoverDeps, tx: Tx, { account, origin, atMs }: ResetRecord): Promise<void> {
  const organizationId = await findHomeOrganization(tx, account.id);
  if (organizationId === undefined) return;
  const naturalKey = await appendAuditEvent(tx, {
    organizationId,
    occurredAtMs: atMs,
    type: 'PasswordReset',
    platformUserId: account.id,
    origin,
    success: true,
    details: { droppedCredentials: !account.emailVerified },
  });
  await notifyPerson(tx, {
    platformUserId: account.id,
    category: 'Security',
    eventKey: 'password-reset',
    about: account.id,
    naturalKey,
    iconKey: 'security.password',
    title: 'Your password was reset',
    summary: 'It was set by a link that was mailed to you. Every session ended.',
    atMs,
  });
  if (account.email === undefined) return;
  const text = 'The password of your account was set by a link that was mailed to this address.\n';
  await deps.messages.add(
    tx,
    { channel: 'mail', to: account.email, subject: 'Your password was reset', text },
    atMs,
  );
}
