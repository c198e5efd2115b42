import { walletAddress } from '../crypto/address.ts';
import { type Algorithm, isAlgorithm } from '../crypto/algorithm.ts';
import { sha256 } from '../crypto/hash.ts';
import { parsePublicKey } from '../crypto/public-key.ts';
import type { Verifier } from '../crypto/verify.ts';
import { canonicalBytes } from '../encoding/jcs.ts';
import { isAppError } from '../errors/errors.ts';
import { findMemberAddress } from './did.ts';

/** Roles of a register's roster; Owner and Admin vote. */
export const ROSTER_ROLES = ['Owner', 'Admin', 'Auditor', 'Designer'] as const;
export type RosterRole = (typeof ROSTER_ROLES)[number];

/** The data that a member of the roster signs to accept its role. */
export interface AttestationData {
  readonly role: RosterRole;
  /** `did:platform:w:{address}`. */
  readonly subject: string;
  readonly registerId: string;
  readonly registerName: string;
  readonly grantedAt: string;
}

export interface SignedAttestation {
  /** Canonical key form, in base64 of any accepted spelling. */
  readonly publicKey: string;
  readonly algorithm: string;
  readonly signature: Uint8Array;
}

/** Whether a text is exactly the name of a roster role. */
export function isRosterRole(text: string): text is RosterRole {
  return ROSTER_ROLES.some((role) => role === text);
}

/** Canonical JSON of the data, stored between initiation and finalisation. */
export function attestationBytes(data: AttestationData): Uint8Array {
  const { role, subject, registerId, registerName, grantedAt } = data;
  return canonicalBytes({ role, subject, registerId, registerName, grantedAt });
}

/** The 32 bytes to sign; `dataToSign` is their hex. */
export function attestationDigest(bytes: Uint8Array): Uint8Array {
  return sha256(bytes);
}

/**
 * Whether the subject's own key signed the attestation.
 * @param bytes the stored canonical bytes of the data
 * @param subject the DID in the data; its address must be that of the key
 */
export function verifyAttestation(
  verifier: Verifier,
  bytes: Uint8Array,
  subject: string,
  signed: SignedAttestation,
): boolean {
  const { algorithm, signature } = signed;
  if (!isAlgorithm(algorithm)) return false;
  try {
    const publicKey = parsePublicKey(algorithm, signed.publicKey);
    if (walletAddress(algorithm, publicKey) !== findMemberAddress(subject)) return false;
    return verifier.verifyPreimage({ algorithm, publicKey, preimage: bytes, signature });
  } catch (error) {
    if (isAppError(error, 'invalid')) return false;
    throw error;
  }
}

/** One entry of a roster in the control record. */
export interface RosterAttestation {
  readonly role: RosterRole;
  readonly subject: string;
  /** Standard padded base64 of the canonical key form. */
  readonly publicKey: string;
  /** Standard padded base64. */
  readonly signature: string;
  readonly algorithm: Algorithm;
  readonly grantedAt: string;
}
