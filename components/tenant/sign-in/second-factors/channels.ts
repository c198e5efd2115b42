import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { lockAccount } from '../../people/accounts/store.ts';
import type { Message } from '../../people/messages/message.ts';
import { requirePerson } from '../../requests/person.ts';
import {
  createCodes,
  type Judged,
  type OneTimeCodes,
  type RightCode,
} from '../../tokens/one-time/one-time.ts';
import { requireRecentProof } from '../challenge/gate.ts';
import { recordFactor } from './record.ts';
import { findFactors, saveFactors } from './store.ts';
import type { FactorDeps, FactorRequest } from './totp.ts';

type Tx = Transactor<TenantDatabase>;

const lifetimeMs = 10 * 60_000;

/** Codes that are sent: for a sign-in, for a challenge, for switching a channel on, and for a number. */
interface ChannelCodes {
  readonly emailSignIn: OneTimeCodes;
  readonly smsSignIn: OneTimeCodes;
  readonly emailProof: OneTimeCodes;
  readonly smsProof: OneTimeCodes;
  readonly emailChannel: OneTimeCodes;
  readonly phone: OneTimeCodes;
}

export function createChannelCodes(deps: Parameters<typeof createCodes>[0]): ChannelCodes {
  return {
    emailSignIn: createCodes(deps, { purpose: 'email-sign-in-code', lifetimeMs }),
    smsSignIn: createCodes(deps, { purpose: 'sms-sign-in-code', lifetimeMs }),
    emailProof: createCodes(deps, { purpose: 'email-challenge-code', lifetimeMs }),
    smsProof: createCodes(deps, { purpose: 'sms-challenge-code', lifetimeMs }),
    emailChannel: createCodes(deps, { purpose: 'email-channel-code', lifetimeMs }),
    phone: createCodes(deps, { purpose: 'phone-code', lifetimeMs }),
  };
}

export interface ChannelDeps extends FactorDeps {
  readonly codes: ChannelCodes;
}

const placeOf = (accountId: string) => `second_factors.phone:${accountId}`;

/** The verified number of an account, for its codes. */
export async function findPhone(
  { protection }: Pick<FactorDeps, 'protection'>,
  tx: Tx,
  accountId: string,
): Promise<string | undefined> {
  const { phone } = await findFactors(tx, accountId);
  return phone === undefined ? undefined : protection.open(phone, placeOf(accountId)).toString();
}

function codeMessage(
  receiver: { readonly mail: string } | { readonly phone: string },
  code: string,
): Message {
  const text = `${code} is your code. It holds for ten minutes. We never ask for it.`;
  return 'mail' in receiver
    ? { channel: 'mail', to: receiver.mail, subject: 'Your code', text: `${text}\n` }
    : { channel: 'sms', to: receiver.phone, text };
}

/** @throws RATE_LIMITED within 30 s after a code, and after five in an hour */
export async function sendCode(
  { messages, clock }: Pick<ChannelDeps, 'messages' | 'clock'>,
  tx: Tx,
  sending: {
    readonly codes: OneTimeCodes;
    readonly subject: string;
    readonly to: Parameters<typeof codeMessage>[0];
  },
): Promise<void> {
  const issued = await sending.codes.issue(tx, sending.subject);
  if ('waitSeconds' in issued) {
    const { waitSeconds: retryAfterSeconds } = issued;
    throw new AppError('rate_limited', genericCode('rate_limited'), 'A code was sent already.', {
      retryAfterSeconds,
    });
  }
  await messages.add(tx, codeMessage(sending.to, issued.code), clock.nowMs());
}

/** @throws WRONG_CODE, CODE_EXPIRED for none and an expired one, RATE_LIMITED after five wrong ones */
function requireRight(judged: Judged): RightCode {
  if (typeof judged !== 'string') return judged;
  if (judged === 'wrong') throw refusal('WRONG_CODE');
  if (judged === 'spent')
    throw new AppError('rate_limited', genericCode('rate_limited'), 'Too many wrong codes.');
  throw refusal('CODE_EXPIRED');
}

/** Sends a code to the verified address. @throws EMAIL_NOT_USABLE, RATE_LIMITED */
export async function beginEmailCodes(deps: ChannelDeps, caller: Caller): Promise<void> {
  const accountId = requirePerson(caller);
  await deps.db.transact(async (tx) => {
    const account = await lockAccount(tx, accountId);
    if (account?.email === undefined || !account.emailVerified) throw refusal('EMAIL_NOT_USABLE');
    const to = { mail: account.email };
    await sendCode(deps, tx, { codes: deps.codes.emailChannel, subject: accountId, to });
  });
}

/** @throws the errors of requireRight */
export async function enableEmailCodes(
  deps: ChannelDeps,
  request: FactorRequest & { readonly code: string },
): Promise<void> {
  const accountId = requirePerson(request.caller);
  const right = requireRight(await deps.codes.emailChannel.judge(accountId, request.code));
  await deps.db.transact(async (tx) => {
    if (!(await deps.codes.emailChannel.take(tx, right))) throw refusal('CODE_EXPIRED');
    await switchChannel(deps, tx, { accountId, request, method: 'email', on: true });
  });
  deps.notifyInboxes();
}

/** Switches codes by mail or by text message off; repeating it changes nothing. @throws insufficient_user_authentication */
export async function disableCodes(
  deps: ChannelDeps,
  request: FactorRequest,
  method: 'email' | 'sms',
): Promise<void> {
  const accountId = requirePerson(request.caller);
  await deps.db.transact(async (tx) => {
    await lockAccount(tx, accountId);
    await requireRecentProof(deps, tx, { ...request, operation: 'Disable2Fa', strength: 'basic' });
    const { emailCodes, smsCodes } = await findFactors(tx, accountId);
    if (method === 'email' ? !emailCodes : !smsCodes) return;
    await switchChannel(deps, tx, { accountId, request, method, on: false });
  });
  deps.notifyInboxes();
}

/**
 * Sends a code to a number. The number that the account has stays until the code is confirmed, so that a stolen session
 * does not remove it.
 * @throws SMS_UNAVAILABLE, RATE_LIMITED
 */
export async function beginPhone(deps: ChannelDeps, caller: Caller, phone: string): Promise<void> {
  if (!deps.messages.canSendTexts) throw refusal('SMS_UNAVAILABLE');
  const accountId = requirePerson(caller);
  await deps.db.transact(async (tx) => {
    const pending = deps.protection.seal(Buffer.from(phone), placeOf(accountId));
    await saveFactors(tx, accountId, { pending_phone: pending }, deps.clock.nowMs());
    await sendCode(deps, tx, { codes: deps.codes.phone, subject: accountId, to: { phone } });
  });
}

/** @throws SMS_UNAVAILABLE, the errors of requireRight */
export async function verifyPhone(deps: ChannelDeps, caller: Caller, code: string): Promise<void> {
  if (!deps.messages.canSendTexts) throw refusal('SMS_UNAVAILABLE');
  const accountId = requirePerson(caller);
  const right = requireRight(await deps.codes.phone.judge(accountId, code));
  await deps.db.transact(async (tx) => {
    if (!(await deps.codes.phone.take(tx, right))) throw refusal('CODE_EXPIRED');
    const { pendingPhone } = await findFactors(tx, accountId);
    if (pendingPhone === undefined) throw refusal('CODE_EXPIRED');
    const atMs = deps.clock.nowMs();
    const change = { phone: pendingPhone, phone_verified_at: new Date(atMs), pending_phone: null };
    await saveFactors(tx, accountId, change, atMs);
  });
}

/** @throws SMS_UNAVAILABLE, PHONE_NOT_VERIFIED */
export async function enableSmsCodes(deps: ChannelDeps, request: FactorRequest): Promise<void> {
  if (!deps.messages.canSendTexts) throw refusal('SMS_UNAVAILABLE');
  const accountId = requirePerson(request.caller);
  await deps.db.transact(async (tx) => {
    await lockAccount(tx, accountId);
    const { phone, smsCodes } = await findFactors(tx, accountId);
    if (phone === undefined) throw refusal('PHONE_NOT_VERIFIED');
    if (!smsCodes) await switchChannel(deps, tx, { accountId, request, method: 'sms', on: true });
  });
  deps.notifyInboxes();
}

interface Switching {
  readonly accountId: string;
  readonly request: FactorRequest;
  readonly method: 'email' | 'sms';
  readonly on: boolean;
}

async function switchChannel(
  deps: ChannelDeps,
  tx: Tx,
  { accountId, request, method, on }: Switching,
): Promise<void> {
  const atMs = deps.clock.nowMs();
  const change = method === 'email' ? { email_otp_enabled: on } : { sms_otp_enabled: on };
  await saveFactors(tx, accountId, change, atMs);
  await recordFactor(deps, tx, { accountId, request, event: on ? 'enabled' : 'disabled', method, atMs });
}
