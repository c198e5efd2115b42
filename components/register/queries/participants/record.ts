import { z } from 'zod';
import { isWalletAddress, walletAddress } from '#core/crypto/address.ts';
import { ALGORITHMS, type Algorithm } from '#core/crypto/algorithm.ts';
import {
  ENCRYPTION_ALGORITHMS,
  type EncryptionAlgorithm,
  normaliseEncryptionKey,
} from '#core/crypto/encryption-key.ts';
import { normalisePublicKey, parsePublicKey } from '#core/crypto/public-key.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { SealedRecord } from '#core/ledger/record.ts';

const PARTICIPANT_STATUSES = ['Active', 'Deprecated', 'Revoked'] as const;

const controlFree = /^[^\p{Cc}]*$/u;

/** The payload of a transaction of type Participant; other members are ignored. */
const payloadShape = z.object({
  participantId: z.string().min(1).max(128).regex(controlFree),
  status: z.enum(PARTICIPANT_STATUSES).default('Active'),
  addresses: z
    .array(
      z.object({
        walletAddress: z.string().refine(isWalletAddress),
        publicKey: z.string().max(2048),
        algorithm: z.enum(ALGORITHMS),
        encryptionKey: z
          .object({ algorithm: z.enum(ENCRYPTION_ALGORITHMS), publicKey: z.string().max(2048) })
          .optional(),
      }),
    )
    .min(1)
    .max(10),
});

/** The key that content for an address is encrypted to. */
interface EncryptionKey {
  readonly algorithm: EncryptionAlgorithm;
  /** base64: 32 raw bytes for X25519, SPKI DER otherwise */
  readonly publicKey: string;
}

/** The keys that a participant publishes for an address. */
export interface ParticipantKey {
  readonly walletAddress: string;
  readonly participantId: string;
  /** base64 */
  readonly publicKey: string;
  readonly algorithm: string;
  readonly status: string;
  readonly encryptionKey: EncryptionKey | undefined;
}

/** Keys of the signers, by address. */
function signers(record: SealedRecord): ReadonlyMap<string, string> {
  return new Map(
    record.signatures.map(({ algorithm, publicKey }) => [
      walletAddress(algorithm, parsePublicKey(algorithm, publicKey)),
      normalisePublicKey(algorithm, publicKey),
    ]),
  );
}

function readPayload(payload: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(payload).toString('utf8'));
  } catch {
    return undefined;
  }
}

/**
 * The keys that a sealed transaction publishes; none when it is not a valid participant record. A key counts when it
 * signed the transaction and is published for its own address. So a participant cannot publish for another address, and the last
 * record of an address is its holder's own. An address with an encryption key of a wrong form publishes nothing: content
 * must not be encrypted to another key than the one that its holder chose.
 */
export function participantKeysOf(record: SealedRecord, payload: Uint8Array): ParticipantKey[] {
  if (record.type !== 'Participant') return [];
  const read = payloadShape.safeParse(readPayload(payload));
  if (!read.success || !read.data.participantId.isWellFormed()) return [];
  const { participantId, status, addresses } = read.data;
  const keys = signers(record);
  return addresses.flatMap(({ walletAddress: address, algorithm, publicKey, encryptionKey: given }) => {
    const signed = keys.get(address);
    if (signed === undefined || !sameKey(algorithm, publicKey, signed)) return [];
    const encryptionKey = given && findEncryptionKey(given);
    if (given !== undefined && encryptionKey === undefined) return [];
    return [{ walletAddress: address, participantId, publicKey: signed, algorithm, status, encryptionKey }];
  });
}

function findEncryptionKey({ algorithm, publicKey }: EncryptionKey): EncryptionKey | undefined {
  try {
    return { algorithm, publicKey: normaliseEncryptionKey(algorithm, publicKey) };
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

function sameKey(algorithm: Algorithm, publicKey: string, signed: string): boolean {
  try {
    return normalisePublicKey(algorithm, publicKey) === signed;
  } catch (error) {
    if (isAppError(error)) return false;
    throw error;
  }
}

/** The last key of each address, of records in ledger order. */
export function lastByAddress(keys: readonly ParticipantKey[]): ParticipantKey[] {
  return [...new Map(keys.map((key) => [key.walletAddress, key])).values()];
}
