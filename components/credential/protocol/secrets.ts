import { AES_GCM, aes256gcm } from '#core/crypto/aes-gcm.ts';
import { hkdfSha256, hmacSha256, sha256 } from '#core/crypto/hash.ts';
import type { RandomBytes } from '#core/crypto/key-wrap.ts';
import { encodeBase64Url } from '#core/encoding/base64.ts';
import { isJsonObject, type JsonObject, scanJson, toValue } from '#core/encoding/json.ts';
import { utf8 } from '#core/encoding/text.ts';

const { keyBytes, ivBytes, tagBytes } = AES_GCM;
/** Codes, references and access tokens: 256 bits. */
const secretBytes = 32;

/** A new code, reference or token: 43 characters of base64url. */
export function createSecret(random: RandomBytes): string {
  return encodeBase64Url(random(secretBytes));
}

/** What is stored of a secret. */
export function secretHash(secret: string): Buffer {
  return Buffer.from(sha256(secret));
}

/** What is stored of a transaction code: it has few digits, so it is hashed under the code that it belongs to. */
export function txCodeHash(code: string, txCode: string): Buffer {
  return Buffer.from(hmacSha256(code, `tx_code\n${txCode}`));
}

/**
 * Seals bytes under a secret that is not stored: with AES-256-GCM under a key derived from it for one offer. The
 * database alone opens nothing.
 */
export function sealUnder(
  secret: string,
  offerId: string,
  { plain, random }: { readonly plain: Uint8Array; readonly random: RandomBytes },
): Buffer {
  const iv = random(ivBytes);
  const key = keyOf(secret, offerId);
  const { ciphertext, tag } = aes256gcm.seal({ key, iv, aad: utf8(offerId) }, plain);
  key.fill(0);
  return Buffer.concat([iv, ciphertext, tag]);
}

/** The bytes; undefined when they were sealed under another secret, for another offer, or were changed. */
export function openUnder(secret: string, offerId: string, sealed: Buffer): Buffer | undefined {
  if (sealed.length < ivBytes + tagBytes) return undefined;
  const key = keyOf(secret, offerId);
  const end = sealed.length - tagBytes;
  const parts = { ciphertext: sealed.subarray(ivBytes, end), tag: sealed.subarray(end) };
  const plain = aes256gcm.open({ key, iv: sealed.subarray(0, ivBytes), aad: utf8(offerId) }, parts);
  key.fill(0);
  return plain;
}

/**
 * The JSON object that was sealed under the secret of a row.
 * @throws Error when it cannot be opened: the row was found by the secret, so it was changed
 */
export function openObjectUnder(secret: string, offerId: string, sealed: Buffer): JsonObject {
  const plain = openUnder(secret, offerId, sealed);
  const value = plain === undefined ? undefined : toValue(scanJson(plain));
  plain?.fill(0);
  if (!isJsonObject(value)) throw new Error('what was sealed for an offer cannot be opened with its secret');
  return value;
}

function keyOf(secret: string, offerId: string): Buffer {
  const info = utf8(`chancery:offer:v1\n${offerId}`);
  return hkdfSha256(utf8(secret), new Uint8Array(), { info, sizeBytes: keyBytes });
}
