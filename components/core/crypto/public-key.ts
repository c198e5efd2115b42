import { createPublicKey, type KeyObject } from 'node:crypto';
import { decodeBase64Any, encodeBase64 } from '../encoding/base64.ts';
import { concatBytes, equalBytes } from '../encoding/text.ts';
import { AppError } from '../errors/errors.ts';
import type { Algorithm } from './algorithm.ts';

/** DER in front of the 32 raw bytes of an Ed25519 key (RFC 8410). */
const ED25519_SPKI_PREFIX = '302a300506032b6570032100';
/** DER in front of the 64 coordinate bytes of an uncompressed P-256 point (RFC 5480). */
const P256_SPKI_PREFIX = '3059301306072a8648ce3d020106082a8648ce3d03010703420004';
const P256_SPKI_BYTES = 91;
/** DER around the 512 bytes of an RSA modulus of 4096 bits with exponent 65537 (RFC 8017 appendix A.1.1). */
const RSA_SPKI_PREFIX = '30820222300d06092a864886f70d01010105000382020f003082020a0282020100';
const RSA_SPKI_SUFFIX = '0203010001';
const RSA_SPKI_BYTES = 550;

/** SubjectPublicKeyInfo in DER of a key in the canonical key form. */
export function spkiOf(algorithm: Algorithm, publicKey: Uint8Array): Uint8Array {
  if (algorithm !== 'ED25519') return publicKey;
  return concatBytes([Buffer.from(ED25519_SPKI_PREFIX, 'hex'), publicKey]);
}

/** The canonical form of a key object: 32 raw bytes for Ed25519, SPKI DER otherwise. */
export function publicKeyBytes(algorithm: Algorithm, key: KeyObject): Uint8Array {
  const der = key.export({ format: 'der', type: 'spki' });
  return algorithm === 'ED25519' ? der.subarray(ED25519_SPKI_PREFIX.length / 2) : der;
}

function startsWith(bytes: Uint8Array, prefixHex: string): boolean {
  const prefix = Buffer.from(prefixHex, 'hex');
  return equalBytes(bytes.subarray(0, prefix.length), prefix);
}

/** A key has one spelling: sizes, parameters and DER are fixed; only the point or the modulus varies. */
function hasForm(algorithm: Algorithm, publicKey: Uint8Array): boolean {
  switch (algorithm) {
    case 'ED25519':
      return publicKey.length === 32;
    case 'NISTP256':
      return publicKey.length === P256_SPKI_BYTES && startsWith(publicKey, P256_SPKI_PREFIX);
    case 'RSA-4096': {
      const framed = startsWith(publicKey, RSA_SPKI_PREFIX) && ((publicKey[33] ?? 0) & 0x80) !== 0;
      const end = publicKey.subarray(RSA_SPKI_BYTES - RSA_SPKI_SUFFIX.length / 2);
      return publicKey.length === RSA_SPKI_BYTES && framed && startsWith(end, RSA_SPKI_SUFFIX);
    }
  }
}

/**
 * The key object of a public key: Ed25519 32 raw bytes, P-256 SPKI DER with an uncompressed point,
 * RSA SPKI DER with a 4096-bit modulus and exponent 65537. Undefined for anything else.
 */
export function importPublicKey(algorithm: Algorithm, publicKey: Uint8Array): KeyObject | undefined {
  if (!hasForm(algorithm, publicKey)) return undefined;
  const spki = spkiOf(algorithm, publicKey);
  try {
    return createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
  } catch {
    return undefined;
  }
}

/**
 * A public key as every hashed format writes it: standard padded base64 of the canonical key form.
 * @throws AppError invalid VAL_SIG_003 when the text is not base64 or the bytes are no key of the algorithm
 */
export function normalisePublicKey(algorithm: Algorithm, text: string): string {
  return encodeBase64(parsePublicKey(algorithm, text));
}

/** Parses a public key from base64 of any accepted spelling; throws like normalisePublicKey. */
export function parsePublicKey(algorithm: Algorithm, text: string): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = decodeBase64Any(text);
  } catch (cause) {
    throw new AppError('invalid', 'VAL_SIG_003', 'Public key is not base64', { cause });
  }
  if (hasForm(algorithm, bytes)) return bytes;
  throw new AppError('invalid', 'VAL_SIG_003', `Public key has not the form of ${algorithm}`);
}
