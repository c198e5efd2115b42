import { randomBytes } from 'node:crypto';
import { AES_GCM, aes256gcm } from '#core/crypto/aes-gcm.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { scanJson, toValue } from '#core/encoding/json.ts';

const { keyBytes, ivBytes, tagBytes } = AES_GCM;

/** The column of an operation that a value belongs to. It is authenticated, so that no value can be moved. */
type Purpose = 'input' | 'delegation' | 'draft';

/** Seals what an operation keeps of a person until it ends. */
export class OperationSeal {
  readonly #key: Buffer;

  /** @param key 32 bytes; operations that another key sealed cannot go on */
  constructor(key: Buffer) {
    if (key.length !== keyBytes) throw new RangeError(`the key of operations must have ${keyBytes} bytes`);
    this.#key = key;
  }

  /** AES-256-GCM over canonical JSON: initialisation vector, ciphertext, tag. */
  seal(operationId: string, purpose: Purpose, value: unknown): Buffer {
    const iv = randomBytes(ivBytes);
    const plain = canonicalBytes(value);
    const aad = additionalData(operationId, purpose);
    const { ciphertext, tag } = aes256gcm.seal({ key: this.#key, iv, aad }, plain);
    plain.fill(0);
    return Buffer.concat([iv, ciphertext, tag]);
  }

  /** The value; undefined when it was sealed by another key, for another operation or purpose, or was changed. */
  open(operationId: string, purpose: Purpose, sealed: Buffer): unknown {
    if (sealed.length < ivBytes + tagBytes) return undefined;
    const iv = sealed.subarray(0, ivBytes);
    const aad = additionalData(operationId, purpose);
    const end = sealed.length - tagBytes;
    const parts = { ciphertext: sealed.subarray(ivBytes, end), tag: sealed.subarray(end) };
    const plain = aes256gcm.open({ key: this.#key, iv, aad }, parts);
    if (plain === undefined) return undefined;
    const value = toValue(scanJson(plain));
    plain.fill(0);
    return value;
  }
}

function additionalData(operationId: string, purpose: Purpose): Buffer {
  return Buffer.from(`chancery:operation:v1\n${operationId}\n${purpose}`);
}
