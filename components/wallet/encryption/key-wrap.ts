import { createDecipheriv, diffieHellman, hash, type KeyObject } from 'node:crypto';

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

/**
 * Unwraps a content key (RFC 7518, sections 4.4 and 4.6). Throws when it was wrapped for another key or changed, and for
 * a public key of low order.
 */
export function unwrapAgreedKey(privateKey: KeyObject, wrapped: AgreedKey): Buffer {
  const { publicKey, apu, apv, encryptedKey } = wrapped;
  const secret = diffieHellman({ privateKey, publicKey });
  const wrapKey = concatKdf(secret, { algorithm: WRAP_ALGORITHM, bits: WRAP_KEY_BITS, apu, apv });
  try {
    const decipher = createDecipheriv('id-aes256-wrap', wrapKey, AES_KW_IV);
    const contentKey = decipher.update(encryptedKey);
    decipher.final();
    return contentKey;
  } finally {
    secret.fill(0);
    wrapKey.fill(0);
  }
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
