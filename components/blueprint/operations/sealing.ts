import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { scanJson, toValue } from '#core/encoding/json.ts';

const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
const algorithm = 'aes-256-gcm';

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

  /** AES-256-GCM over canonical JSON: nonce, ciphertext, tag. */
  seal(operationId: string, purpose: Purpose, value: unknown): Buffer {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv(algorithm, this.#key, nonce, { authTagLength: tagBytes });
    cipher.setAAD(additionalData(operationId, purpose));
    const plain = canonicalBytes(value);
    const sealed = Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
    plain.fill(0);
    return sealed;
  }

  /** The value; undefined when it was sealed by another key, for another operation or purpose, or was changed. */
  open(operationId: string, purpose: Purpose, sealed: Buffer): unknown {
    if (sealed.length < nonceBytes + tagBytes) return undefined;
    const nonce = sealed.subarray(0, nonceBytes);
    const decipher = createDecipheriv(algorithm, this.#key, nonce, { authTagLength: tagBytes });
    decipher.setAAD(additionalData(operationId, purpose));
    decipher.setAuthTag(sealed.subarray(sealed.length - tagBytes));
    const plain = opened(decipher, sealed.subarray(nonceBytes, sealed.length - tagBytes));
    if (plain === undefined) return undefined;
    const value = toValue(scanJson(plain));
    plain.fill(0);
    return value;
  }
}

function opened(decipher: ReturnType<typeof createDecipheriv>, ciphertext: Buffer): Buffer | undefined {
  try {
    return Buffer.concat([decipher.update(ciphertext), decipher.final()]);
  } catch {
    return undefined;
  }
}

function additionalData(operationId: string, purpose: Purpose): Buffer {
  return Buffer.from(`chancery:operation:v1\n${operationId}\n${purpose}`);
}
