import {
  constants,
  createCipheriv,
  createDecipheriv,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  hash,
  type KeyObject,
  publicEncrypt,
} from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import { p256 } from '@noble/curves/nist.js';
import { concatBytes } from '../encoding/text.ts';
import { AppError } from '../errors/errors.ts';
import { importPublicKey } from './public-key.ts';

/** The key wrap of a JWE with ECDH-ES+A256KW. */
interface AgreedKey {
  /** Ephemeral public key of the sender. */
  readonly publicKey: KeyObject;
  readonly apu: Uint8Array;
  readonly apv: Uint8Array;
  readonly encryptedKey: Uint8Array;
}

const WRAP_ALGORITHM = 'ECDH-ES+A256KW';
const WRAP_KEY_BITS = 256;
/** RFC 3394, section 2.2.3.1. */
const AES_KW_IV = Buffer.alloc(8, 0xa6);
const X25519_SPKI = Buffer.from('302a300506032b656e032100', 'hex');
const X25519_PKCS8 = Buffer.from('302e020100300506032b656e04220420', 'hex');
const P256_PKCS8 = Buffer.from(
  '3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420',
  'hex',
);

/** Random bytes that make an ephemeral key: an X25519 secret, or twice a scalar less 16 for P-256 (FIPS 186-5, A.3.1). */
const EPHEMERAL_BYTES = { X25519: 32, 'P-256': 48 } as const;

/** Algorithms of recipients' keys. An Ed25519 key is used as the X25519 key of the same secret. */
export const RECIPIENT_ALGORITHMS = ['X25519', 'ED25519', 'NISTP256', 'RSA-4096'] as const;

/** The public key of a recipient. */
export interface EncryptionKey {
  readonly algorithm: (typeof RECIPIENT_ALGORITHMS)[number];
  /** 32 raw bytes for X25519 and Ed25519, SPKI DER otherwise */
  readonly publicKey: Uint8Array;
}

/** The header members (RFC 7518, section 4) and the encrypted key of a recipient. */
interface WrappedContentKey {
  readonly header: { readonly alg: string; readonly epk?: Readonly<Record<string, string>> };
  readonly encryptedKey: Uint8Array;
}

/** Random bytes: as many as are asked for. */
export type RandomBytes = (sizeBytes: number) => Uint8Array;

/**
 * Wraps a content key for a recipient: ECDH-ES+A256KW with an ephemeral key of its own (RFC 7518, section 4.6), or
 * RSA-OAEP-256 (section 4.3), whose padding node:crypto makes random by itself.
 *
 * @param contentKey 32 bytes
 * @throws AppError unprocessable INVALID_ENCRYPTION_KEY for bytes that are no key, and for keys of low order
 */
export function wrapContentKey(
  recipient: EncryptionKey,
  contentKey: Uint8Array,
  random: RandomBytes,
): WrappedContentKey {
  const key = recipientKey(recipient);
  if (recipient.algorithm === 'RSA-4096') {
    const options = { key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' };
    return { header: { alg: 'RSA-OAEP-256' }, encryptedKey: publicEncrypt(options, contentKey) };
  }
  const privateKey = ephemeralKey(recipient.algorithm === 'NISTP256' ? 'P-256' : 'X25519', random);
  const wrapKey = wrapKeyOf(agreedSecret(privateKey, key), { apu: Buffer.of(), apv: Buffer.of() });
  try {
    const cipher = createCipheriv('id-aes256-wrap', wrapKey, AES_KW_IV);
    const encryptedKey = Buffer.concat([cipher.update(contentKey), cipher.final()]);
    return { header: { alg: WRAP_ALGORITHM, epk: publicJwk(privateKey) }, encryptedKey };
  } finally {
    wrapKey.fill(0);
  }
}

/**
 * Unwraps a content key (RFC 7518, sections 4.4 and 4.6). Throws when it was wrapped for another key or changed, and for
 * a public key of low order.
 */
export function unwrapAgreedKey(privateKey: KeyObject, wrapped: AgreedKey): Buffer {
  const { publicKey, apu, apv, encryptedKey } = wrapped;
  const wrapKey = wrapKeyOf(diffieHellman({ privateKey, publicKey }), { apu, apv });
  try {
    const decipher = createDecipheriv('id-aes256-wrap', wrapKey, AES_KW_IV);
    const contentKey = decipher.update(encryptedKey);
    decipher.final();
    return contentKey;
  } finally {
    wrapKey.fill(0);
  }
}

/** The key that wraps; wipes the secret. */
function wrapKeyOf(secret: Buffer, parties: Pick<KdfParameters, 'apu' | 'apv'>): Buffer {
  try {
    return concatKdf(secret, { algorithm: WRAP_ALGORITHM, bits: WRAP_KEY_BITS, ...parties });
  } finally {
    secret.fill(0);
  }
}

function invalidKey(cause?: unknown): AppError {
  return new AppError('unprocessable', 'INVALID_ENCRYPTION_KEY', 'Nothing can be encrypted to this key', {
    cause,
  });
}

function recipientKey({ algorithm, publicKey }: EncryptionKey): KeyObject {
  const key =
    algorithm === 'X25519' || algorithm === 'ED25519'
      ? importX25519(algorithm === 'X25519' ? publicKey : montgomeryKey(publicKey))
      : importPublicKey(algorithm, publicKey);
  if (key === undefined) throw invalidKey();
  return key;
}

function importX25519(bytes: Uint8Array): KeyObject | undefined {
  if (bytes.length !== 32) return undefined;
  return createPublicKey({ key: Buffer.concat([X25519_SPKI, bytes]), format: 'der', type: 'spki' });
}

function montgomeryKey(publicKey: Uint8Array): Uint8Array {
  try {
    return ed25519.utils.toMontgomery(publicKey);
  } catch (cause) {
    throw invalidKey(cause);
  }
}

function ephemeralKey(curve: keyof typeof EPHEMERAL_BYTES, random: RandomBytes): KeyObject {
  const bytes = random(EPHEMERAL_BYTES[curve]);
  const secret = curve === 'P-256' ? p256.utils.randomSecretKey(bytes) : bytes;
  const der = concatBytes([curve === 'P-256' ? P256_PKCS8 : X25519_PKCS8, secret]);
  try {
    return createPrivateKey({
      key: Buffer.from(der.buffer, der.byteOffset, der.length),
      format: 'der',
      type: 'pkcs8',
    });
  } finally {
    for (const each of [bytes, secret, der]) each.fill(0);
  }
}

/** node:crypto refuses a secret of zero, which is that of every key of low order. */
function agreedSecret(privateKey: KeyObject, publicKey: KeyObject): Buffer {
  try {
    return diffieHellman({ privateKey, publicKey });
  } catch (cause) {
    throw invalidKey(cause);
  }
}

/** The members of a public JWK (RFC 7517) that name the point. */
function publicJwk(privateKey: KeyObject): Readonly<Record<string, string>> {
  const { kty, crv, x, y } = createPublicKey(privateKey).export({ format: 'jwk' });
  return Object.fromEntries(Object.entries({ crv, kty, x, y }).filter(isText));
}

function isText(member: [string, unknown]): member is [string, string] {
  return typeof member[1] === 'string';
}

interface KdfParameters {
  /** `alg`, or `enc` for direct key agreement */
  readonly algorithm: string;
  /** at most 256 */
  readonly bits: number;
  readonly apu: Uint8Array;
  readonly apv: Uint8Array;
}

/** The Concat KDF of RFC 7518, section 4.6.2, of SHA-256 in one round. */
export function concatKdf(secret: Uint8Array, { algorithm, bits, apu, apv }: KdfParameters): Buffer {
  const parts = [uint32(1), secret, ...lengthAndData(Buffer.from(algorithm)), ...lengthAndData(apu)];
  const input = Buffer.concat([...parts, ...lengthAndData(apv), uint32(bits)]);
  try {
    return hash('sha256', input, 'buffer').subarray(0, bits / 8);
  } finally {
    input.fill(0);
  }
}

function lengthAndData(data: Uint8Array): Uint8Array[] {
  return [uint32(data.length), data];
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
