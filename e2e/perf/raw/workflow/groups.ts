import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto';
import { type WrappedKey, wrapAlgorithm, wrapFor } from '../key-wrap.ts';

const cipherName = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;
const keyBytes = 32;

/** Encrypts with AES-GCM: the initialisation vector, the tag, the ciphertext. */
export function encrypt(key: Buffer, plaintext: Uint8Array, aad = ''): Buffer {
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv(cipherName, key, iv).setAAD(Buffer.from(aad));
  const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), ciphertext]);
}

/** Throws when the key is another one or anything was changed. */
export function decrypt(key: Buffer, sealed: Buffer, aad = ''): Buffer {
  const decipher = createDecipheriv(cipherName, key, sealed.subarray(0, ivBytes))
    .setAAD(Buffer.from(aad))
    .setAuthTag(sealed.subarray(ivBytes, ivBytes + tagBytes));
  return Buffer.concat([decipher.update(sealed.subarray(ivBytes + tagBytes)), decipher.final()]);
}

interface Recipient {
  readonly header: { readonly alg: string; readonly kid: string; readonly epk: { readonly x: string } };
  readonly encrypted_key: string;
}

/** One encrypted group of a payload, in the size of the product's. */
export interface RawGroup {
  readonly groupId: string;
  readonly commitment: string;
  readonly aad: string;
  readonly sealed: string;
  readonly recipients: readonly Recipient[];
}

const commitmentOf = (plaintext: Uint8Array): string => `sha256:${hash('sha256', plaintext, 'hex')}`;

/**
 * One group: a salted commitment, AES-GCM, and the content key wrapped for each reader.
 * @param keys public keys of X25519, base64url, by reader
 */
export function sealGroup(
  place: string,
  data: object,
  keys: readonly (readonly [reader: string, x: string])[],
): RawGroup {
  const groupId = randomBytes(16).toString('base64url');
  const aad = Buffer.from(`${place}|${groupId}`).toString('base64url');
  const plaintext = Buffer.from(JSON.stringify({ salt: randomBytes(32).toString('base64url'), data }));
  const contentKey = randomBytes(keyBytes);
  const recipients = keys.map(([kid, recipient]) => {
    const { x, encryptedKey } = wrapFor(recipient, contentKey);
    const epk = { crv: 'X25519', kty: 'OKP', x };
    return { header: { alg: wrapAlgorithm, epk, kid }, encrypted_key: encryptedKey.toString('base64url') };
  });
  const sealed = encrypt(contentKey, plaintext, aad).toString('base64url');
  return { groupId, commitment: commitmentOf(plaintext), aad, sealed, recipients };
}

/** The wrapped content key of a reader; undefined when the group is not for them. */
export function wrappedFor({ recipients }: RawGroup, reader: string): WrappedKey | undefined {
  const own = recipients.find(({ header }) => header.kid === reader);
  return own && { x: own.header.epk.x, encryptedKey: Buffer.from(own.encrypted_key, 'base64url') };
}

/** The data of a group; throws when it does not fit its commitment. */
export function openGroup({ sealed, aad, commitment }: RawGroup, contentKey: Buffer): object {
  const plaintext = decrypt(contentKey, Buffer.from(sealed, 'base64url'), aad);
  if (commitmentOf(plaintext) !== commitment) throw new Error('a group is another one than its commitment');
  return JSON.parse(plaintext.toString()).data;
}
