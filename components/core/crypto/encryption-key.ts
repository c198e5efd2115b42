import { x25519 } from '@noble/curves/ed25519.js';
import { decodeBase64Any, encodeBase64 } from '../encoding/base64.ts';
import { AppError, isAppError } from '../errors/errors.ts';
import { importPublicKey } from './public-key.ts';

/** Keys that content is encrypted to: ECDH-ES+A256KW for the first two, RSA-OAEP-256 for the last (RFC 7518). */
export const ENCRYPTION_ALGORITHMS = ['X25519', 'NISTP256', 'RSA-4096'] as const;
export type EncryptionAlgorithm = (typeof ENCRYPTION_ALGORITHMS)[number];

const invalid = (message: string, cause?: unknown) =>
  new AppError('invalid', 'VAL_SIG_003', message, { cause });

/**
 * A public key for encryption in standard padded base64: 32 raw bytes for X25519 (RFC 7748), SPKI DER otherwise.
 * @param text base64 of any accepted spelling
 * @throws AppError invalid VAL_SIG_003 when it is no key of the algorithm, or a point of low order, with which everybody
 * computes the same secret (RFC 7748, section 6.1)
 */
export function normaliseEncryptionKey(algorithm: EncryptionAlgorithm, text: string): string {
  const bytes = decoded(text);
  if (!isKey(algorithm, bytes)) throw invalid(`Public key has not the form of ${algorithm}`);
  return encodeBase64(bytes);
}

function decoded(text: string): Uint8Array {
  try {
    return decodeBase64Any(text);
  } catch (cause) {
    if (isAppError(cause)) throw invalid('Public key is not base64', cause);
    throw cause;
  }
}

function isKey(algorithm: EncryptionAlgorithm, bytes: Uint8Array): boolean {
  if (algorithm !== 'X25519') return importPublicKey(algorithm, bytes) !== undefined;
  if (bytes.length !== 32) return false;
  try {
    // any secret shows a low order: the product is zero
    x25519.getSharedSecret(new Uint8Array(32).fill(1), bytes);
    return true;
  } catch {
    return false;
  }
}
