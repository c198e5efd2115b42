import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import type { PrivateKey } from '#core/crypto/sign.ts';
import { encodeBase64Url } from '#core/encoding/base64.ts';
import type { KeyType } from '../database/schema.ts';

const X25519_SPKI = Buffer.from('302a300506032b656e032100', 'hex');
const X25519_PKCS8 = Buffer.from('302e020100300506032b656e04220420', 'hex');
const P256_PKCS8 = Buffer.from(
  '3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420',
  'hex',
);

/** Key management algorithms (RFC 7518) by the key type of the recipient. */
export const KEY_WRAP = {
  ED25519: 'ECDH-ES+A256KW',
  NISTP256: 'ECDH-ES+A256KW',
  RSA: 'RSA-OAEP-256',
} as const satisfies Record<KeyType, string>;

export function keyTypeOf({ algorithm }: Pick<PrivateKey, 'algorithm'>): KeyType {
  return algorithm === 'RSA-4096' ? 'RSA' : algorithm;
}

/** @param bytes raw X25519 for ED25519, DER SubjectPublicKeyInfo otherwise */
export function publicKeyObject(keyType: KeyType, bytes: Uint8Array): KeyObject {
  const der = keyType === 'ED25519' ? Buffer.concat([X25519_SPKI, bytes]) : Buffer.from(bytes);
  return createPublicKey({ key: der, format: 'der', type: 'spki' });
}

/** The ephemeral public key of a JWK, whose coordinates have 32 bytes. Throws for a point that is not on the curve. */
export function ephemeralKeyObject(crv: 'X25519' | 'P-256', x: Uint8Array, y: Uint8Array): KeyObject {
  const key =
    crv === 'X25519'
      ? { kty: 'OKP', crv, x: encodeBase64Url(x) }
      : { kty: 'EC', crv, x: encodeBase64Url(x), y: encodeBase64Url(y) };
  return createPublicKey({ key, format: 'jwk' });
}

/** The key for ECDH or RSA-OAEP. An Ed25519 key becomes the X25519 key of the same seed. */
export function privateKeyObject({ algorithm, privateKey }: PrivateKey): KeyObject {
  const parts = privateKeyParts(algorithm, privateKey);
  const der = Buffer.concat(parts);
  try {
    return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  } finally {
    der.fill(0);
    if (algorithm === 'ED25519') parts.at(-1)?.fill(0);
  }
}

function privateKeyParts(algorithm: PrivateKey['algorithm'], privateKey: Uint8Array): Uint8Array[] {
  switch (algorithm) {
    case 'ED25519':
      return [X25519_PKCS8, ed25519.utils.toMontgomerySecret(privateKey)];
    case 'NISTP256':
      return [P256_PKCS8, privateKey];
    case 'RSA-4096':
      return [privateKey];
  }
}
