import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose';
import type { PrivateKey } from '#core/crypto/sign.ts';
import { PAYLOAD_ENCRYPTION } from '../custody/contexts.ts';
import type { KeyType } from '../database/schema.ts';
import { refusal } from '../errors.ts';

/** The wallet that a text is encrypted for. */
interface Recipient {
  readonly address: string;
  readonly keyType: KeyType;
  /** Raw 32 bytes for ED25519, DER SubjectPublicKeyInfo otherwise. */
  readonly publicKey: Buffer;
  /** X25519 raw (32 bytes) or P-256 SPKI of `platform:payload-encryption`; absent for RSA */
  readonly encryptionKey: Buffer | undefined;
}

const X25519_SPKI = Buffer.from('302a300506032b656e032100', 'hex');
const X25519_PKCS8 = Buffer.from('302e020100300506032b656e04220420', 'hex');
const P256_PKCS8 = Buffer.from(
  '3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420',
  'hex',
);

const KEY_WRAP = {
  ED25519: 'ECDH-ES+A256KW',
  NISTP256: 'ECDH-ES+A256KW',
  RSA: 'RSA-OAEP-256',
} as const satisfies Record<KeyType, string>;

/**
 * A compact JWE (RFC 7516, A256GCM) of UTF-8 text for one wallet. `kid` names the key:
 * `{address}#platform:payload-encryption` where the wallet has one, `{address}` for its primary key.
 */
export async function encryptFor(recipient: Recipient, text: string): Promise<string> {
  const { encryptionKey, keyType, address } = recipient;
  const separate = encryptionKey !== undefined;
  const header = {
    alg: KEY_WRAP[keyType],
    enc: 'A256GCM',
    kid: separate ? `${address}#${PAYLOAD_ENCRYPTION}` : address,
  };
  const key = publicKeyObject(keyType, encryptionKey ?? recipient.publicKey);
  return new CompactEncrypt(Buffer.from(text, 'utf8')).setProtectedHeader(header).encrypt(key);
}

/**
 * The key of the wallet that a JWE names.
 * @throws AppError unprocessable DECRYPT_FAILED when it names another wallet
 */
export function requestedKey(jwe: string, address: string): 'primary' | 'payload-encryption' {
  const { kid } = readHeader(jwe);
  if (kid === undefined || kid === address) return 'primary';
  if (kid === `${address}#${PAYLOAD_ENCRYPTION}`) return 'payload-encryption';
  throw decryptFailed();
}

/**
 * Decrypts a compact JWE.
 * @throws AppError unprocessable DECRYPT_FAILED for every cause alike, because a distinction would be an oracle
 */
export async function decryptWith(key: PrivateKey, jwe: string): Promise<string> {
  const keyType = key.algorithm === 'RSA-4096' ? 'RSA' : key.algorithm;
  try {
    const { plaintext } = await compactDecrypt(jwe, privateKeyObject(key), {
      keyManagementAlgorithms: [KEY_WRAP[keyType]],
      contentEncryptionAlgorithms: ['A256GCM'],
    });
    return new TextDecoder('utf-8', { fatal: true }).decode(plaintext);
  } catch (cause) {
    throw decryptFailed(cause);
  }
}

function publicKeyObject(keyType: KeyType, bytes: Buffer): KeyObject {
  const der = keyType === 'ED25519' ? Buffer.concat([X25519_SPKI, bytes]) : bytes;
  return createPublicKey({ key: der, format: 'der', type: 'spki' });
}

function privateKeyObject({ algorithm, privateKey }: PrivateKey): KeyObject {
  const der = Buffer.concat(privateKeyParts(algorithm, privateKey));
  try {
    return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  } finally {
    der.fill(0);
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

function readHeader(jwe: string): { readonly kid?: string } {
  try {
    return decodeProtectedHeader(jwe);
  } catch (cause) {
    throw decryptFailed(cause);
  }
}

function decryptFailed(cause?: unknown): Error {
  return refusal('DECRYPT_FAILED', { cause });
}
