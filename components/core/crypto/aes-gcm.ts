import { createCipheriv, createDecipheriv } from 'node:crypto';
import { AppError } from '../errors/errors.ts';

/** Bytes of a key, of an initialisation vector and of a tag of A256GCM (RFC 7518, section 5.3). */
export const AES_GCM = { keyBytes: 32, ivBytes: 12, tagBytes: 16 } as const;

const algorithm = 'aes-256-gcm';
const cipherOptions = { authTagLength: AES_GCM.tagBytes } as const;

interface GcmInput {
  /** 32 bytes */
  readonly key: Uint8Array;
  /** 12 bytes; a key never serves twice with one of them */
  readonly iv: Uint8Array;
  /** Additional data, authenticated and not encrypted. */
  readonly aad: Uint8Array;
}

interface GcmSealed {
  readonly ciphertext: Uint8Array;
  /** 16 bytes */
  readonly tag: Uint8Array;
}

/** AES-256 in Galois/Counter Mode (NIST SP 800-38D). */
export const aes256gcm = {
  /** @throws AppError internal INVALID_CIPHER_INPUT for a key or an initialisation vector of another size */
  seal({ key, iv, aad }: GcmInput, plaintext: Uint8Array): GcmSealed {
    if (!hasSizes(key, iv)) {
      throw new AppError(
        'internal',
        'INVALID_CIPHER_INPUT',
        'A256GCM takes a key of 32 bytes and an iv of 12',
      );
    }
    const cipher = createCipheriv(algorithm, key, iv, cipherOptions).setAAD(aad);
    const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final()]);
    return { ciphertext, tag: cipher.getAuthTag() };
  },

  /** The plaintext; undefined when a size is wrong or the tag does not fit, whatever the cause. */
  open({ key, iv, aad }: GcmInput, { ciphertext, tag }: GcmSealed): Buffer | undefined {
    if (!hasSizes(key, iv) || tag.length !== AES_GCM.tagBytes) return undefined;
    const decipher = createDecipheriv(algorithm, key, iv, cipherOptions).setAAD(aad);
    decipher.setAuthTag(tag);
    const plaintext = decipher.update(ciphertext);
    try {
      decipher.final();
      return plaintext;
    } catch {
      plaintext.fill(0);
      return undefined;
    }
  },
};

function hasSizes(key: Uint8Array, iv: Uint8Array): boolean {
  return key.length === AES_GCM.keyBytes && iv.length === AES_GCM.ivBytes;
}
