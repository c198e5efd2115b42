import { constants, type KeyObject, publicDecrypt, verify as verifySignature } from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import { concatBytes, equalBytes } from '../encoding/text.ts';
import type { Algorithm } from './algorithm.ts';
import { isStrictEd25519 } from './ed25519-rules.ts';
import { sha256 } from './hash.ts';
import { createKeyCache, type KeyCache } from './key-cache.ts';

const SIGNATURE_BYTES: Readonly<Record<Algorithm, number>> = { ED25519: 64, NISTP256: 64, 'RSA-4096': 512 };

/** DER of DigestInfo for SHA-256 in front of the digest (RFC 8017 section 9.2). */
const SHA256_DIGEST_INFO = '3031300d060960864801650304020105000420';

/**
 * The equation of Ed25519, cofactorless (RFC 8032 section 5.1.7). A backend is called only with input that passed
 * isStrictEd25519. It must answer for all such input as node:crypto does, and it never throws.
 */
export interface Ed25519Backend {
  verify(key32: Uint8Array, message: Uint8Array, signature64: Uint8Array): boolean;
}

interface MessageSignature {
  readonly algorithm: Algorithm;
  /** The canonical key form: 32 raw bytes for Ed25519, SPKI DER otherwise. */
  readonly publicKey: Uint8Array;
  readonly message: Uint8Array;
  /** Ed25519 64 bytes, P-256 r followed by s, RSA PKCS#1 v1.5. */
  readonly signature: Uint8Array;
}

interface DigestSignature {
  readonly algorithm: Algorithm;
  readonly publicKey: Uint8Array;
  /** 32 bytes of SHA-256. */
  readonly digest: Uint8Array;
  readonly signature: Uint8Array;
}

interface PreimageSignature {
  readonly algorithm: Algorithm;
  readonly publicKey: Uint8Array;
  /** The bytes of which the signed digest is the SHA-256. */
  readonly preimage: Uint8Array;
  readonly signature: Uint8Array;
}

/** Verifies signatures; malformed keys and signatures are false, never an exception. */
export interface Verifier {
  /** Ed25519 over the message itself; P-256 and RSA over its SHA-256. */
  verify(check: MessageSignature): boolean;
  /** Ed25519 with the 32 bytes as the message; P-256 and RSA with them as the SHA-256 pre-hash. */
  verifyDigest(check: DigestSignature): boolean;
  /** The same result as verifyDigest over SHA-256 of the preimage, and twenty times faster for P-256. */
  verifyPreimage(check: PreimageSignature): boolean;
}

/** Ed25519 by node:crypto, with its own bounded cache of key objects. */
export function nodeEd25519(keys: KeyCache = createKeyCache()): Ed25519Backend {
  return {
    verify(key32, message, signature64) {
      const key = keys.find('ED25519', key32);
      return key !== undefined && verifySignature(null, message, key, signature64);
    },
  };
}

function verifyRsaDigest(key: KeyObject, digest: Uint8Array, signature: Uint8Array): boolean {
  try {
    const block = publicDecrypt({ key, padding: constants.RSA_PKCS1_PADDING }, signature);
    return equalBytes(block, concatBytes([Buffer.from(SHA256_DIGEST_INFO, 'hex'), digest]));
  } catch {
    return false;
  }
}

/** node:crypto cannot verify a pre-hash with ECDSA. P-256 has cofactor 1, so both libraries accept the same set. */
function verifyP256Digest(spki: Uint8Array, digest: Uint8Array, signature: Uint8Array): boolean {
  try {
    return p256.verify(signature, digest, spki.subarray(spki.length - 65), { prehash: false, lowS: false });
  } catch {
    return false;
  }
}

/**
 * The one implementation of signature verification. The backend decides only the equation of Ed25519; the rules around
 * it are the same for every backend.
 */
export function createVerifier(ed25519: Ed25519Backend, keys: KeyCache = createKeyCache()): Verifier {
  const verifyEd25519 = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean =>
    isStrictEd25519(publicKey, signature) && ed25519.verify(publicKey, message, signature);

  const verify = ({ algorithm, publicKey, message, signature }: MessageSignature): boolean => {
    if (signature.length !== SIGNATURE_BYTES[algorithm]) return false;
    if (algorithm === 'ED25519') return verifyEd25519(publicKey, message, signature);
    const key = keys.find(algorithm, publicKey);
    if (key === undefined) return false;
    return algorithm === 'NISTP256'
      ? verifySignature('sha256', message, { key, dsaEncoding: 'ieee-p1363' }, signature)
      : verifySignature('sha256', message, key, signature);
  };

  return {
    verify,
    verifyDigest({ algorithm, publicKey, digest, signature }) {
      if (digest.length !== 32 || signature.length !== SIGNATURE_BYTES[algorithm]) return false;
      if (algorithm === 'ED25519') return verifyEd25519(publicKey, digest, signature);
      const key = keys.find(algorithm, publicKey);
      if (key === undefined) return false;
      return algorithm === 'NISTP256'
        ? verifyP256Digest(publicKey, digest, signature)
        : verifyRsaDigest(key, digest, signature);
    },
    verifyPreimage({ algorithm, publicKey, preimage, signature }) {
      if (algorithm === 'ED25519') {
        return verify({ algorithm, publicKey, message: sha256(preimage), signature });
      }
      return verify({ algorithm, publicKey, message: preimage, signature });
    },
  };
}
