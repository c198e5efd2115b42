import { hash } from 'node:crypto';
import type { Verifier } from '#core/crypto/verify.ts';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { equalBytes } from '#core/encoding/text.ts';
import { type TestKey, testKey } from '../keys.ts';

/**
 * Signatures of the simulated world: a hash keyed by the public key. No forgery occurs, since only the holder's code calls
 * `sign`. A thousand times faster than Ed25519, and as strict about every byte.
 */
export function simulatedKey(seed: number): TestKey {
  const { publicKey, address } = testKey(seed);
  const raw = decodeBase64Any(publicKey);
  return { publicKey, address, sign: (message) => keyedHash(raw, message) };
}

/** Verifies signatures of simulated keys. */
export function simulatedVerifier(): Verifier {
  const digest = (bytes: Uint8Array) => hash('sha256', bytes, 'buffer');
  return {
    verify: ({ publicKey, message, signature }) => equalBytes(keyedHash(publicKey, message), signature),
    verifyDigest: (check) => equalBytes(keyedHash(check.publicKey, check.digest), check.signature),
    verifyPreimage: (check) =>
      equalBytes(keyedHash(check.publicKey, digest(check.preimage)), check.signature),
  };
}

/** 64 bytes, the length of an Ed25519 signature. */
function keyedHash(publicKey: Uint8Array, message: Uint8Array): Uint8Array {
  return hash('sha512', Buffer.concat([publicKey, message]), 'buffer');
}
