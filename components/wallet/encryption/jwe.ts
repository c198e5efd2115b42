import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose';
import type { PrivateKey } from '#core/crypto/sign.ts';
import type { KeyType } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { findKeyUse, type KeyUse, keyId } from './key-id.ts';
import { KEY_WRAP, keyTypeOf, privateKeyObject, publicKeyObject } from './key-objects.ts';

/** The wallet that a text is encrypted for. */
interface Recipient {
  readonly address: string;
  readonly keyType: KeyType;
  /** Raw 32 bytes for ED25519, DER SubjectPublicKeyInfo otherwise. */
  readonly publicKey: Buffer;
  /** X25519 raw (32 bytes) or P-256 SPKI of `platform:payload-encryption`; absent for RSA */
  readonly encryptionKey: Buffer | undefined;
}

/**
 * A compact JWE (RFC 7516, A256GCM) of UTF-8 text for one wallet. `kid` names the key:
 * `{address}#platform:payload-encryption` where the wallet has one, `{address}` for its primary key.
 */
export async function encryptFor(recipient: Recipient, text: string): Promise<string> {
  const { encryptionKey, keyType, address } = recipient;
  const use = encryptionKey === undefined ? 'primary' : 'payload-encryption';
  const header = { alg: KEY_WRAP[keyType], enc: 'A256GCM', kid: keyId(address, use) };
  const key = publicKeyObject(keyType, encryptionKey ?? recipient.publicKey);
  return new CompactEncrypt(Buffer.from(text, 'utf8')).setProtectedHeader(header).encrypt(key);
}

/**
 * The key of the wallet that a JWE names.
 * @throws AppError unprocessable DECRYPT_FAILED when it names another wallet
 */
export function requestedKey(jwe: string, address: string): KeyUse {
  const { kid } = readHeader(jwe);
  const use = kid === undefined ? 'primary' : findKeyUse(kid, address);
  if (use === undefined) throw decryptFailed();
  return use;
}

/**
 * Decrypts a compact JWE.
 * @throws AppError unprocessable DECRYPT_FAILED for every cause alike, because a distinction would be an oracle
 */
export async function decryptWith(key: PrivateKey, jwe: string): Promise<string> {
  try {
    const { plaintext } = await compactDecrypt(jwe, privateKeyObject(key), {
      keyManagementAlgorithms: [KEY_WRAP[keyTypeOf(key)]],
      contentEncryptionAlgorithms: ['A256GCM'],
    });
    return new TextDecoder('utf-8', { fatal: true }).decode(plaintext);
  } catch (cause) {
    throw decryptFailed(cause);
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
