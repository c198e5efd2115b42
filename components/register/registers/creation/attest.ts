import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { normalisePublicKey } from '#core/crypto/public-key.ts';
import type { Verifier } from '#core/crypto/verify.ts';
import { decodeBase64Any, encodeBase64 } from '#core/encoding/base64.ts';
import { AppError, isAppError } from '#core/errors/errors.ts';
import {
  attestationBytes,
  attestationDigest,
  type RosterAttestation,
  type SignedAttestation,
  verifyAttestation,
} from '#core/ledger/owner-attestation.ts';
import type { Wallets } from '../../clients/wallets.ts';
import { refusal } from '../../errors.ts';
import type { RequestedAttestation } from './draft.ts';

/** An attestation in a finalize request; the rest of its data is in the database. */
export interface ReturnedAttestation {
  readonly role: string;
  readonly subject: string;
  readonly publicKey: string;
  readonly signature: string;
  readonly algorithm: string;
}

function entryOf(
  { data }: RequestedAttestation,
  signed: SignedAttestation,
  verifier: Verifier,
): RosterAttestation | undefined {
  const { algorithm } = signed;
  const verifies = verifyAttestation(verifier, attestationBytes(data), data.subject, signed);
  if (!verifies || !isAlgorithm(algorithm)) return undefined;
  return {
    role: data.role,
    subject: data.subject,
    publicKey: normalisePublicKey(algorithm, signed.publicKey),
    signature: encodeBase64(signed.signature),
    algorithm,
    grantedAt: data.grantedAt,
  };
}

function signatureBytes(text: string): Uint8Array {
  try {
    return decodeBase64Any(text);
  } catch (error) {
    if (isAppError(error, 'invalid')) return new Uint8Array();
    throw error;
  }
}

/** The attestation as the roster stores it; undefined when it does not verify against the requested one. */
export function verifyReturned(
  requested: RequestedAttestation,
  returned: Omit<ReturnedAttestation, 'role' | 'subject'>,
  verifier: Verifier,
): RosterAttestation | undefined {
  return entryOf(requested, { ...returned, signature: signatureBytes(returned.signature) }, verifier);
}

/**
 * Verifies attestations against the requested bytes. Every owner must have attested; other members without an
 * attestation are not granted; one that does not verify, or was not requested, refuses the whole.
 */
export function judgeAttestations(
  requested: readonly RequestedAttestation[],
  returned: readonly ReturnedAttestation[],
  verifier: Verifier,
): RosterAttestation[] {
  const keyOf = (one: { role: string; subject: string }) => `${one.role}:${one.subject}`;
  const open = new Map(returned.map((one) => [keyOf(one), one]));
  if (open.size !== returned.length) {
    throw new AppError('invalid', 'INVALID_REQUEST', 'The request contains an attestation twice.');
  }
  const refused: string[] = [];
  const roster: RosterAttestation[] = [];
  for (const attestation of requested) {
    const signed = open.get(keyOf(attestation.data));
    open.delete(keyOf(attestation.data));
    if (signed === undefined && attestation.data.role === 'Owner') throw refusal('OWNER_ATTESTATION_MISSING');
    if (signed === undefined) continue;
    const entry = verifyReturned(attestation, signed, verifier);
    if (entry === undefined) refused.push(attestation.data.subject);
    else roster.push(entry);
  }
  refused.push(...[...open.values()].map((one) => one.subject));
  if (refused.length > 0) throw refusal('ATTESTATION_INVALID', { details: { subjects: refused } });
  return roster;
}

export interface AttestDeps {
  readonly wallets: Wallets;
  readonly verifier: Verifier;
}

/** Signs with the requested key: the wallet's own, or the one it derives for attestations. */
export async function attestFor(
  deps: AttestDeps,
  requested: RequestedAttestation,
  token: string,
): Promise<RosterAttestation> {
  const own = { walletAddress: requested.walletAddress, derivationContext: '' };
  const digest = attestationDigest(attestationBytes(requested.data));
  const { signature, key } = await deps.wallets.signDigest({
    ...(requested.derivedFrom ?? own),
    digest,
    subjectToken: token,
  });
  const signed = { publicKey: key.publicKey, algorithm: key.algorithm, signature };
  const entry = entryOf(requested, signed, deps.verifier);
  // The control record binds a subject to the address of its key: any other key is another subject.
  if (entry !== undefined) return entry;
  throw refusal('ATTESTATION_INVALID', {
    message: 'The wallet service signed with the key of another address.',
  });
}

/** Attests with every wallet of the roster that the caller may use; the owner's must be among them. */
export async function attestAll(
  deps: AttestDeps,
  requested: readonly RequestedAttestation[],
  token: string,
): Promise<RosterAttestation[]> {
  const roster: RosterAttestation[] = [];
  for (const attestation of requested) {
    try {
      roster.push(await attestFor(deps, attestation, token));
    } catch (error) {
      if (!isAppError(error, 'forbidden') && !isAppError(error, 'not_found')) throw error;
      if (attestation.data.role === 'Owner') {
        throw refusal('SENDER_NOT_AUTHORIZED', {
          message: 'You may not attest for the owner wallet.',
          cause: error,
        });
      }
    }
  }
  return roster;
}
