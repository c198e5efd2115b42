import { generateAuthenticationOptions, verifyAuthenticationResponse } from '@simplewebauthn/server';
import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Origin } from '../../requests/origin.ts';
import { type Ceremony, createChallenge, requireDomain } from './ceremony.ts';
import { type PasskeyDeps, userHandleOf } from './enrol.ts';
import { recordPasskey } from './record.ts';
import type { Assertion } from './schemas.ts';
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
}

/**
 * Verifies an assertion (WebAuthn Level 3, 7.2). Counters are judged by `useAssertion`, in the transaction of the effect.
 * @throws UNKNOWN_CREDENTIAL when no account has the passkey, INVALID_ASSERTION
 */
export async function judgeAssertion(deps: PasskeyDeps, answer: Answer): Promise<Asserted> {
  const { transactionId, response, purpose, accountId } = answer;
  const found = await deps.ceremonies.find(deps.db.read, transactionId);
  if (typeof found === 'string' || found.payload.purpose !== purpose) throw refusal('INVALID_ASSERTION');
  const passkey = await findPasskey(deps.db.read, Buffer.from(response.id, 'base64url'));
  if (passkey === undefined) throw refusal('UNKNOWN_CREDENTIAL');
  const isTheirs = [accountId, found.payload.accountId].every(
    (id) => id === undefined || id === passkey.accountId,
  );
  // Where the passkey tells who signs in, its handle must name the account (7.2, step 6).
  const isNamed = purpose !== 'sign-in' || (response.response.userHandle ?? '') !== '';
  if (!isTheirs || !isNamed || passkey.status !== 'Active' || !isOfAccount(response, passkey)) {
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
 * passkey is disabled, which the caller commits before it refuses.
 *
 * @returns false when the passkey was disabled
 * @throws INVALID_ASSERTION when another request has used the transaction
 */
export async function useAssertion(
  deps: PasskeyDeps,
  tx: Tx,
  { transactionId, passkey, counter, isBackedUp }: Asserted,
  origin: Origin,
): Promise<boolean> {
  if (typeof (await deps.ceremonies.take(tx, transactionId)) === 'string') throw refusal('INVALID_ASSERTION');
  const present = await lockPasskey(tx, passkey.id);
  if (present?.status !== 'Active') throw refusal('INVALID_ASSERTION');
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
