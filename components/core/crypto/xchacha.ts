import { createCipheriv, createDecipheriv } from 'node:crypto';
import { AppError } from '../errors/errors.ts';

/** Bytes of a key, of a nonce and of an authentication tag. */
export const XCHACHA = { keyBytes: 32, nonceBytes: 24, tagBytes: 16 } as const;

const CONSTANTS = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574] as const;
const DOUBLE_ROUNDS = 10;

const algorithm = 'chacha20-poly1305';
const cipherOptions = { authTagLength: XCHACHA.tagBytes } as const;

/** Positions of the quarter rounds of a double round: columns, then diagonals (RFC 8439, section 2.3). */
const QUARTERS = [
  [0, 4, 8, 12],
  [1, 5, 9, 13],
  [2, 6, 10, 14],
  [3, 7, 11, 15],
  [0, 5, 10, 15],
  [1, 6, 11, 12],
  [2, 7, 8, 13],
  [3, 4, 9, 14],
] as const;

function wordAt(state: Uint32Array, index: number): number {
  return state[index] ?? 0;
}

/** One step of a quarter round: a += b; d = (d ^ a) <<< bits. */
function mix(state: Uint32Array, [a, b, d]: readonly [number, number, number], bits: number): void {
  const sum = (wordAt(state, a) + wordAt(state, b)) >>> 0;
  const word = wordAt(state, d) ^ sum;
  state[a] = sum;
  state[d] = (word << bits) | (word >>> (32 - bits));
}

/**
 * HChaCha20 (draft-irtf-cfrg-xchacha-03, section 2.2): the subkey of a key and 16 bytes. Its time depends on no value.
 *
 * @param key 32 bytes
 * @param input the first 16 bytes of the nonce
 * @returns 32 bytes, which the caller wipes
 */
export function hchacha20(key: Uint8Array, input: Uint8Array): Buffer {
  const state = new Uint32Array(16);
  const keyBytes = Buffer.from(key.buffer, key.byteOffset, key.byteLength);
  const inputBytes = Buffer.from(input.buffer, input.byteOffset, input.byteLength);
  state.set(CONSTANTS, 0);
  for (let index = 0; index < 8; index += 1) state[4 + index] = keyBytes.readUInt32LE(4 * index);
  for (let index = 0; index < 4; index += 1) state[12 + index] = inputBytes.readUInt32LE(4 * index);
  for (let round = 0; round < DOUBLE_ROUNDS; round += 1) {
    for (const [a, b, c, d] of QUARTERS) {
      mix(state, [a, b, d], 16);
      mix(state, [c, d, b], 12);
      mix(state, [a, b, d], 8);
      mix(state, [c, d, b], 7);
    }
  }
  const subkey = Buffer.alloc(XCHACHA.keyBytes);
  [0, 1, 2, 3, 12, 13, 14, 15].forEach((word, index) => {
    subkey.writeUInt32LE(wordAt(state, word), 4 * index);
  });
  state.fill(0);
  return subkey;
}

/** The nonce of the ChaCha20-Poly1305 inside: four zero bytes and the last 8 bytes of the 24. */
function innerNonce(nonce: Uint8Array): Buffer {
  return Buffer.concat([Buffer.alloc(4), nonce.subarray(16)]);
}

function assertSizes(key: Uint8Array, nonce: Uint8Array): void {
  if (key.length === XCHACHA.keyBytes && nonce.length === XCHACHA.nonceBytes) return;
  throw new AppError(
    'internal',
    'INVALID_CIPHER_INPUT',
    'XChaCha20-Poly1305 takes a key of 32 bytes and a nonce of 24',
  );
}

/** The inputs of XChaCha20-Poly1305. */
interface XChaChaInput {
  /** 32 bytes */
  readonly key: Uint8Array;
  /** 24 bytes, which may be random: a key serves for 2^80 of them */
  readonly nonce: Uint8Array;
  /** Additional data, authenticated and not encrypted. */
  readonly aad: Uint8Array;
}

/** XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03). Both throw AppError internal INVALID_CIPHER_INPUT for other sizes. */
export const xchacha20poly1305 = {
  /** Ciphertext and 16-byte tag. */
  seal({ key, nonce, aad }: XChaChaInput, plaintext: Uint8Array): Buffer {
    assertSizes(key, nonce);
    const subkey = hchacha20(key, nonce.subarray(0, 16));
    try {
      const cipher = createCipheriv(algorithm, subkey, innerNonce(nonce), cipherOptions);
      cipher.setAAD(aad, { plaintextLength: plaintext.length });
      return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
    } finally {
      subkey.fill(0);
    }
  },

  /** The plaintext of what `seal` makes; undefined when the tag does not fit, whatever the cause. */
  open({ key, nonce, aad }: XChaChaInput, sealed: Uint8Array): Buffer | undefined {
    assertSizes(key, nonce);
    const size = sealed.length - XCHACHA.tagBytes;
    if (size < 0) return undefined;
    const subkey = hchacha20(key, nonce.subarray(0, 16));
    try {
      const decipher = createDecipheriv(algorithm, subkey, innerNonce(nonce), cipherOptions);
      decipher.setAAD(aad, { plaintextLength: size });
      decipher.setAuthTag(sealed.subarray(size));
      const opened = decipher.update(sealed.subarray(0, size));
      return isAuthentic(decipher) ? opened : undefined;
    } finally {
      subkey.fill(0);
    }
  },
};

function isAuthentic(decipher: { final(): Buffer }): boolean {
  try {
    decipher.final();
    return true;
  } catch {
    return false;
  }
}
