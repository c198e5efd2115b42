import { randomUUIDv7 } from 'node:crypto';
import { generateRegistrationOptions, verifyRegistrationResponse } from '@simplewebauthn/server';
import type { Caller } from '#core/identity/claims.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { lockAccount } from '../../people/accounts/store.ts';
import { countFirstFactors } from '../../people/means/means.ts';
import { findMeans } from '../../people/means/store.ts';
import type { Origin } from '../../requests/origin.ts';
import { requirePerson } from '../../requests/person.ts';
import { findFamily, stampProof } from '../../tokens/sessions/store.ts';
import { type GateDeps, requireRecentProof } from '../challenge/gate.ts';
import {
  type Ceremonies,
  type Ceremony,
  createChallenge,
  type RelyingParty,
  requireDomain,
} from './ceremony.ts';
import { recordPasskey } from './record.ts';
import type { Attestation } from './schemas.ts';
import { isUsable, userHandleOf, userNamesOf } from './signals.ts';
import { deletePasskey, insertPasskey, listPasskeys, lockPasskey, type Passkey } from './store.ts';

type Tx = Transactor<TenantDatabase>;

export interface PasskeyDeps extends GateDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly party: RelyingParty;
  readonly ceremonies: Ceremonies;
  /** Called after the person was notified. */
  readonly notifyInboxes: () => void;
}

export const MAX_PASSKEYS = 10;

const algorithms = [-7, -8, -257];
const timeoutMs = 300_000;

interface Creation {
  readonly ceremony: Omit<Ceremony, 'challenge'> & {
    readonly accountId: string;
    readonly displayName: string;
  };
  /** The person, not the passkey: what authenticators show when they offer it. */
  readonly user: { readonly name: string; readonly displayName: string };
  readonly known: readonly Passkey[];
  /** Of sign-up; a second factor need not be discoverable. */
  readonly residentKey: 'required' | 'preferred';
}

/** Options for `navigator.credentials.create`, and the transaction that its answer belongs to. */
export async function beginCreation(deps: PasskeyDeps, tx: Tx, creation: Creation) {
  const { ceremony, user, known, residentKey } = creation;
  const challenge = createChallenge();
  const options = await generateRegistrationOptions({
    rpID: requireDomain(deps.party),
    rpName: deps.party.name,
    userID: userHandleOf(ceremony.accountId),
    userName: user.name,
    userDisplayName: user.displayName,
    challenge: new Uint8Array(Buffer.from(challenge, 'base64url')),
    attestationType: 'none',
    timeout: timeoutMs,
    excludeCredentials: known.filter(isUsable).map(({ credentialId }) => ({
      id: credentialId.toString('base64url'),
    })),
    authenticatorSelection: { residentKey, userVerification: 'required' },
    supportedAlgorithmIDs: algorithms,
  });
  const transactionId = await deps.ceremonies.issue(tx, {
    subject: ceremony.accountId,
    payload: { ...ceremony, challenge },
  });
  return { transactionId, options };
}

/**
 * Begins to add a passkey to the caller's account.
 * @throws PASSKEYS_UNAVAILABLE, TOO_MANY_PASSKEYS, SESSION_ENDED
 */
export async function beginEnrolment(deps: PasskeyDeps, caller: Caller, displayName: string) {
  const accountId = requirePerson(caller);
  return deps.db.transact(async (tx) => {
    const account = await lockAccount(tx, accountId);
    if (account === undefined) throw refusal('SESSION_ENDED');
    const known = await listPasskeys(tx, accountId);
    if (known.length >= MAX_PASSKEYS) throw refusal('TOO_MANY_PASSKEYS');
    const ceremony = { purpose: 'enrol', accountId, displayName } as const;
    return beginCreation(deps, tx, { ceremony, user: userNamesOf(account), known, residentKey: 'preferred' });
  });
}

/** A verified attestation that is not stored yet. */
interface Attested {
  readonly ceremony: Ceremony;
  readonly passkey: Omit<Parameters<typeof insertPasskey>[1], 'accountId' | 'displayName' | 'createdAtMs'>;
}

/** Verifies an attestation (WebAuthn Level 3, 7.1). @throws INVALID_ATTESTATION */
export async function judgeAttestation(
  deps: PasskeyDeps,
  transactionId: string,
  response: Attestation,
): Promise<Attested> {
  const found = await deps.ceremonies.find(deps.db.read, transactionId);
  if (typeof found === 'string') throw refusal('INVALID_ATTESTATION');
  const { payload: ceremony } = found;
  const verified = await verifyRegistrationResponse({
    response: response as Parameters<typeof verifyRegistrationResponse>[0]['response'],
    expectedChallenge: ceremony.challenge,
    expectedOrigin: [...deps.party.origins],
    expectedRPID: requireDomain(deps.party),
    requireUserVerification: true,
    supportedAlgorithmIDs: algorithms,
  }).catch((cause: unknown) => {
    throw refusal('INVALID_ATTESTATION', { cause });
  });
  if (!verified.verified) throw refusal('INVALID_ATTESTATION');
  const { credential, credentialDeviceType, credentialBackedUp, fmt, aaguid } = verified.registrationInfo;
  return {
    ceremony,
    passkey: {
      id: randomUUIDv7(),
      credentialId: Buffer.from(credential.id, 'base64url'),
      publicKey: Buffer.from(credential.publicKey),
      counter: credential.counter,
      deviceType: credentialDeviceType,
      transports: response.response.transports,
      isBackedUp: credentialBackedUp,
      attestationType: fmt,
      aaguid,
    },
  };
}

interface Enrolment {
  readonly caller: Caller;
  readonly transactionId: string;
  readonly response: Attestation;
  readonly origin: Origin;
}

/**
 * Adds a passkey to the caller's account; it is a strong proof of this session.
 * @throws INVALID_ATTESTATION, KNOWN_CREDENTIAL, TOO_MANY_PASSKEYS, SESSION_ENDED
 */
export async function finishEnrolment(deps: PasskeyDeps, enrolment: Enrolment): Promise<Passkey> {
  const { caller, transactionId, origin } = enrolment;
  const accountId = requirePerson(caller);
  const { ceremony, passkey } = await judgeAttestation(deps, transactionId, enrolment.response);
  if (ceremony.purpose !== 'enrol' || ceremony.accountId !== accountId) throw refusal('INVALID_ATTESTATION');
  const stored = await deps.db.transact(async (tx) => {
    if (typeof (await deps.ceremonies.take(tx, transactionId)) === 'string')
      throw refusal('INVALID_ATTESTATION');
    await requireSession(tx, caller, accountId);
    if ((await listPasskeys(tx, accountId)).length >= MAX_PASSKEYS) throw refusal('TOO_MANY_PASSKEYS');
    const createdAtMs = deps.clock.nowMs();
    const displayName = ceremony.displayName ?? 'Passkey';
    if (!(await insertPasskey(tx, { ...passkey, accountId, displayName, createdAtMs }))) {
      throw refusal('KNOWN_CREDENTIAL');
    }
    if (caller.sessionId !== undefined) {
      await stampProof(tx, caller.sessionId, { strength: 'strong', atMs: createdAtMs });
    }
    await recordPasskey(tx, {
      accountId,
      caller,
      origin,
      event: 'added',
      passkeyId: passkey.id,
      atMs: createdAtMs,
    });
    return lockPasskey(tx, passkey.id);
  });
  deps.notifyInboxes();
  if (stored === undefined) throw refusal('ROW_MISSING');
  return stored;
}

/**
 * Locks the account and judges the session again. A reset of the password or the end of an unverified account may have
 * committed since the token was verified; it drops credentials, and none may follow it.
 *
 * @throws SESSION_ENDED
 */
async function requireSession(tx: Tx, { sessionId }: Caller, accountId: string): Promise<void> {
  const account = await lockAccount(tx, accountId);
  const family = sessionId === undefined ? undefined : await findFamily(tx, sessionId);
  const hasEnded = sessionId !== undefined && family?.revoked !== false;
  if (account?.isActive !== true || hasEnded) throw refusal('SESSION_ENDED');
}

interface Removal {
  readonly caller: Caller;
  readonly passkeyId: string;
  readonly challenge: string | undefined;
  readonly origin: Origin;
}

/** @throws PASSKEY_NOT_FOUND, LAST_AUTH_METHOD, insufficient_user_authentication */
export async function removePasskey(deps: PasskeyDeps, removal: Removal): Promise<void> {
  const { caller, passkeyId, challenge, origin } = removal;
  const accountId = requirePerson(caller);
  await deps.db.transact(async (tx) => {
    await lockAccount(tx, accountId);
    const passkey = await lockPasskey(tx, passkeyId);
    if (passkey?.accountId !== accountId) throw refusal('PASSKEY_NOT_FOUND');
    await requireRecentProof(deps, tx, {
      caller,
      challenge,
      operation: 'RemoveAuthMethod',
      strength: 'strong',
    });
    const isLast = passkey.status === 'Active' && countFirstFactors(await findMeans(tx, accountId)) === 1;
    if (isLast) throw refusal('LAST_AUTH_METHOD');
    await deletePasskey(tx, passkeyId);
    const atMs = deps.clock.nowMs();
    await recordPasskey(tx, { accountId, caller, origin, event: 'removed', passkeyId, atMs });
  });
  deps.notifyInboxes();
}
