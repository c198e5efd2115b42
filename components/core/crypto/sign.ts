import {
  constants,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  privateEncrypt,
  sign as signBytes,
} from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import { concatBytes } from '../encoding/text.ts';
import { AppError } from '../errors/errors.ts';
import type { Algorithm } from './algorithm.ts';
import { publicKeyBytes } from './public-key.ts';

/** DER in front of a 32-byte Ed25519 seed (RFC 8410). */
const ED25519_PKCS8_PREFIX = '302e020100300506032b657004220420';
/** DER in front of a 32-byte P-256 scalar: PKCS#8 with an ECPrivateKey that leaves the public key out. */
const P256_PKCS8_PREFIX = '3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420';
const SHA256_DIGEST_INFO = '3031300d060960864801650304020105000420';

export interface PrivateKey {
  readonly algorithm: Algorithm;
  /** Ed25519: 32-byte seed. P-256: 32-byte scalar. RSA: PKCS#8 DER. */
  readonly privateKey: Uint8Array;
}

/** Signs with one private key. Keys and signatures are in their canonical form. */
export interface Signer {
  readonly algorithm: Algorithm;
  /** 32 raw bytes for Ed25519, SPKI DER otherwise. */
  readonly publicKey: Uint8Array;
  /** Ed25519 over the message itself; P-256 and RSA over its SHA-256. */
  sign(message: Uint8Array): Uint8Array;
  /** Over 32 bytes: the message for Ed25519, the SHA-256 pre-hash for P-256 and RSA. */
  signDigest(digest: Uint8Array): Uint8Array;
}

function importPrivateKey({ algorithm, privateKey }: PrivateKey): KeyObject {
  if (algorithm === 'NISTP256' && !p256.utils.isValidSecretKey(privateKey)) {
    throw new AppError('internal', 'INVALID_PRIVATE_KEY', 'A private key of NISTP256 is out of range');
  }
  const prefix = { ED25519: ED25519_PKCS8_PREFIX, NISTP256: P256_PKCS8_PREFIX, 'RSA-4096': '' }[algorithm];
  if (prefix !== '' && privateKey.length !== 32) {
    throw new AppError('internal', 'INVALID_PRIVATE_KEY', `A private key of ${algorithm} has 32 bytes`);
  }
  const der = concatBytes([Buffer.from(prefix, 'hex'), privateKey]);
  try {
    return createPrivateKey({ key: Buffer.from(der), format: 'der', type: 'pkcs8' });
  } catch {
    // The cause is dropped, because its text could quote the key.
    throw new AppError('internal', 'INVALID_PRIVATE_KEY', `Bytes are no private key of ${algorithm}`);
  }
}

function signMessage(algorithm: Algorithm, key: KeyObject, message: Uint8Array): Uint8Array {
  switch (algorithm) {
    case 'ED25519':
      return signBytes(null, message, key);
    case 'NISTP256':
      return signBytes('sha256', message, { key, dsaEncoding: 'ieee-p1363' });
    case 'RSA-4096':
      return signBytes('sha256', message, key);
  }
}

function signPreHashed(input: PrivateKey, key: KeyObject, digest: Uint8Array): Uint8Array {
  switch (input.algorithm) {
    case 'ED25519':
      return signBytes(null, digest, key);
    case 'NISTP256':
      // node:crypto cannot sign a pre-hash with ECDSA. RFC 6979 makes the nonce.
      return p256.sign(digest, input.privateKey, { prehash: false });
    case 'RSA-4096': {
      const block = concatBytes([Buffer.from(SHA256_DIGEST_INFO, 'hex'), digest]);
      return privateEncrypt({ key, padding: constants.RSA_PKCS1_PADDING }, block);
    }
  }
}

/**
 * A signer for one private key.
 * @throws AppError internal INVALID_PRIVATE_KEY when the bytes are no key of the algorithm; signDigest throws
 * invalid INVALID_DIGEST for anything but 32 bytes
 */
export function createSigner(input: PrivateKey): Signer {
  const key = importPrivateKey(input);
  return {
    algorithm: input.algorithm,
    publicKey: publicKeyBytes(input.algorithm, createPublicKey(key)),
    sign: (message) => signMessage(input.algorithm, key, message),
    signDigest(digest) {
      if (digest.length !== 32) throw new AppError('invalid', 'INVALID_DIGEST', 'A digest has 32 bytes');
      return signPreHashed(input, key, digest);
    },
  };
}
