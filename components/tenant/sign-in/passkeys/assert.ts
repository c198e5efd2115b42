import { generateAuthenticationOptions, verifyAuthenticationResponse } from '@simplewebauthn/server';
import { isAppError } from '#core/errors/errors.ts';
import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Origin } from '../../requests/origin.ts';
import { recordFailure } from '../lockout/failure.ts';
import { accountSubject } from '../lockout/subject.ts';
import { type Ceremony, createChallenge, requireDomain } from './ceremony.ts';
import type { PasskeyDeps } from './enrol.ts';
import { recordPasskey } from './record.ts';
import type { Assertion } from './schemas.ts';
import { isUsable, userHandleOf } from './signals.ts';
import { disablePasskey, findPasskey, lockPasskey, type Passkey, recordUse } from './store.ts';

type Tx = Transactor<TenantDatabase>;

const timeoutMs = 300_000;

interface Request {
  readonly ceremony: Omit<Ceremony, 'challenge'>;
  /** Empty for a sign-in: the answer would tell which passkeys an address has. */
  readonly allowed: readonly Passkey[];
}

/** Options for `navigator.credentials.get`, and the transaction that its answer belongs to. */
export async function beginAssertion(deps: PasskeyDeps, tx: Tx, { ceremony, allowed }: Request) {
  const challenge = createChallenge();
  const options = await generateAuthenticationOptions({
    rpID: requireDomain(deps.party),
    challenge: new Uint8Array(Buffer.from(challenge, 'base64url')),
    timeout: timeoutMs,
    userVerification: 'required',
    allowCredentials: allowed.map(({ credentialId }) => ({ id: credentialId.toString('base64url') })),
  });
  const subject = ceremony.accountId ?? 'anybody';
  const transactionId = await deps.ceremonies.issue(tx, { subject, payload: { ...ceremony, challenge } });
  return { transactionId, options };
}

/** An assertion whose signature is right; its transaction is not used yet. */
export interface Asserted {
  readonly transactionId: string;
  readonly passkey: Passkey;
  readonly counter: number;
  readonly isBackedUp: boolean;
}

interface Answer {
  readonly transactionId: string;
  readonly response: Assertion;
  readonly purpose: Ceremony['purpose'];
  /** The person that the ceremony was begun for; any when absent. */
  readonly accountId?: string | undefined;
  /** The login token of a second step; the ceremony must have been begun with the same one. */
  readonly loginHash?: string | undefined;
  readonly origin: Origin;
}

/**
 * Verifies an assertion (WebAuthn Level 3, 7.2). Counters are judged by `useAssertion`, in the transaction of the effect.
 * A refusal is written to the audit log of the account that it concerns.
 *
 * @throws UNKNOWN_CREDENTIAL when no account has the passkey, INVALID_ASSERTION
 */
export async function judgeAssertion(deps: PasskeyDeps, answer: Answer): Promise<Asserted> {
  const passkey = await findPasskey(deps.db.read, Buffer.from(answer.response.id, 'base64url'));
  try {
    return await verifyAssertion(deps, answer, passkey);
  } catch (error) {
    const accountId = answer.accountId ?? passkey?.accountId;
    if (accountId !== undefined && isAppError(error, 'unauthenticated')) {
      await deps.db.transact((tx) => recordRefusal(deps, tx, accountId, answer.origin));
    }
    throw error;
  }
}

/** Passkeys cannot be guessed: a refused one is audited, and counts toward no lock. */
export function recordRefusal(
  { clock }: Pick<PasskeyDeps, 'clock'>,
  tx: Tx,
  accountId: string,
  origin: Origin,
): Promise<void> {
  const subject = accountSubject(accountId);
  return recordFailure(tx, { subject, reason: 'passkey', origin, nowMs: clock.nowMs() });
}

async function verifyAssertion(
  deps: PasskeyDeps,
  answer: Answer,
  passkey: Passkey | undefined,
): Promise<Asserted> {
  const { transactionId, response, purpose, accountId, loginHash } = answer;
  const found = await deps.ceremonies.find(deps.db.read, transactionId);
  if (
    typeof found === 'string' ||
    found.payload.purpose !== purpose ||
    found.payload.loginHash !== loginHash
  ) {
    throw refusal('INVALID_ASSERTION');
  }
  if (passkey === undefined) throw refusal('UNKNOWN_CREDENTIAL');
  const isTheirs = [accountId, found.payload.accountId].every(
    (id) => id === undefined || id === passkey.accountId,
  );
  // Where the passkey tells who signs in, its handle must name the account (7.2, step 6).
  const isNamed = purpose !== 'sign-in' || (response.response.userHandle ?? '') !== '';
  if (!isTheirs || !isNamed || !isUsable(passkey) || !isOfAccount(response, passkey)) {
    throw refusal('INVALID_ASSERTION');
  }
  const { verified, authenticationInfo } = await verifyAuthenticationResponse({
    response: response as Parameters<typeof verifyAuthenticationResponse>[0]['response'],
    expectedChallenge: found.payload.challenge,
    expectedOrigin: [...deps.party.origins],
    expectedRPID: requireDomain(deps.party),
    requireUserVerification: true,
    credential: {
      id: response.id,
      publicKey: new Uint8Array(passkey.publicKey),
      counter: 0,
    },
  }).catch((cause: unknown) => {
    throw refusal('INVALID_ASSERTION', { cause });
  });
  if (!verified) throw refusal('INVALID_ASSERTION');
  const { newCounter: counter, credentialBackedUp: isBackedUp } = authenticationInfo;
  return { transactionId, passkey, counter, isBackedUp };
}

function isOfAccount({ response }: Assertion, { accountId }: Passkey): boolean {
  const { userHandle } = response;
  if (userHandle == null || userHandle === '') return true;
  return Buffer.from(userHandle, 'base64url').equals(userHandleOf(accountId));
}

/**
 * Uses an assertion in the transaction of its effect. A counter that goes back, or stands still, is a sign of a copy: the
 * passkey is disabled. The caller commits what is written here before it refuses.
 *
 * The account is locked before (`lockAccount`), as in every change of its passkeys.
 *
 * @returns false when the passkey was disabled, or another request has used the transaction or removed the passkey
 */
export async function useAssertion(
  deps: PasskeyDeps,
  tx: Tx,
  { transactionId, passkey, counter, isBackedUp }: Asserted,
  origin: Origin,
): Promise<boolean> {
  const isFirst = typeof (await deps.ceremonies.take(tx, transactionId)) !== 'string';
  const present = isFirst ? await lockPasskey(tx, passkey.id) : undefined;
  if (present === undefined || !isUsable(present)) {
    await recordRefusal(deps, tx, passkey.accountId, origin);
    return false;
  }
  const atMs = deps.clock.nowMs();
  // Passkeys that are synchronised between devices count nothing: both are 0.
  if ((counter > 0 || present.counter > 0) && counter <= present.counter) {
    await disablePasskey(tx, passkey.id, { reason: 'counter-regression', atMs });
    const { accountId } = present;
    await recordPasskey(tx, { accountId, origin, event: 'disabled', passkeyId: passkey.id, atMs });
    return false;
  }
  await recordUse(tx, passkey.id, { counter, isBackedUp, atMs });
  return true;
}
