import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { refusal } from '../errors.ts';

/** The root of the key hierarchy: wraps the data key of each wallet. The key itself is not exported. */
export interface KekProvider {
  /** Name of the key that wraps new data keys; stored beside each wrapped key. */
  readonly currentId: string;
  /** Names of all keys that it unwraps with, the current one first. */
  readonly ids: readonly string[];
  wrap(dataKey: Buffer, aad: Buffer): Promise<Buffer>;
  /** @throws AppError internal KEK_UNKNOWN or CUSTODY_TAMPERED for a key that it did not wrap with this `aad`. */
  unwrap(kekId: string, wrapped: Buffer, aad: Buffer): Promise<Buffer>;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;

/** AES-256-GCM: `nonce(12) || ciphertext || tag(16)`; a fresh random nonce each time. */
export function sealBytes(key: Buffer, plain: Buffer, aad: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(aad);
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/**
 * Decrypts the output of `sealBytes`.
 * @throws AppError internal CUSTODY_TAMPERED when key, ciphertext or `aad` differ
 */
export function openBytes(key: Buffer, sealed: Buffer, aad: Buffer): Buffer {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) throw tampered();
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(aad);
  decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
  try {
    const plain = decipher.update(sealed.subarray(NONCE_BYTES, sealed.length - TAG_BYTES));
    return Buffer.concat([plain, decipher.final()]);
  } catch (cause) {
    throw tampered(cause);
  }
}

/** A provider with 32-byte keys from files, usually a mounted Kubernetes Secret. The first key wraps, all unwrap. */
export function fileKek(first: Buffer, ...others: readonly Buffer[]): KekProvider {
  const keys = new Map([first, ...others].map((key) => [idOf(key), key]));
  if (keys.size !== others.length + 1) {
    throw refusal('KEK_INVALID', { message: 'a key-encryption key is listed twice' });
  }
  const currentId = idOf(first);
  return {
    currentId,
    ids: [...keys.keys()],
    wrap: async (dataKey, aad) => sealBytes(first, dataKey, aad),
    unwrap: async (kekId, wrapped, aad) => {
      const key = keys.get(kekId);
      if (key === undefined) {
        throw refusal('KEK_UNKNOWN', { details: { kekId } });
      }
      return openBytes(key, wrapped, aad);
    },
  };
}

function idOf(key: Buffer): string {
  if (key.length !== KEY_BYTES) {
    throw refusal('KEK_INVALID', { message: `a key-encryption key must be ${KEY_BYTES} bytes` });
  }
  return `file:${fingerprint(key)}`;
}

// Domain-separated, so that the identifier reveals nothing about the key in its other uses.
function fingerprint(key: Buffer): string {
  return createHash('sha256').update('chancery:kek-id:v1\n').update(key).digest('hex').slice(0, 16);
}

function tampered(cause?: unknown): Error {
  return refusal('CUSTODY_TAMPERED', { cause });
}
