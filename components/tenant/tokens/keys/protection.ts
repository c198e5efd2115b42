import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/** Keys derived from one 32-byte secret of the installation: for rows at rest and for refresh tokens. */
export interface Protection {
  readonly refreshKey: Uint8Array;
  /** Key of the hash of addresses without an account. */
  readonly addressKey: Uint8Array;
  /** Key of the hash of short codes, which a bare hash would not hide. */
  readonly codeKey: Uint8Array;
  /** `place` binds the ciphertext to table, column and row. */
  seal(plain: Uint8Array, place: string): Buffer;
  /** Throws when the key is a different one or the row was changed. */
  open(sealed: Uint8Array, place: string): Buffer;
}

const version = 1;
const nonceBytes = 12;
const tagBytes = 16;

/** AES-256-GCM: version byte ‖ 96-bit random nonce ‖ ciphertext ‖ tag. */
export function createProtection(secret: Uint8Array): Protection {
  const rowKey = derive(secret, 'rows at rest');
  return {
    refreshKey: derive(secret, 'refresh tokens'),
    addressKey: derive(secret, 'unknown addresses'),
    codeKey: derive(secret, 'short codes'),
    seal(plain, place) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv('aes-256-gcm', rowKey, nonce).setAAD(Buffer.from(place));
      const body = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([Buffer.of(version), nonce, body, cipher.getAuthTag()]);
    },
    open(sealed, place) {
      const bytes = Buffer.from(sealed);
      if (bytes[0] !== version || bytes.length < 1 + nonceBytes + tagBytes)
        throw new RangeError('not a sealed value');
      const nonce = bytes.subarray(1, 1 + nonceBytes);
      const decipher = createDecipheriv('aes-256-gcm', rowKey, nonce, { authTagLength: tagBytes });
      decipher.setAAD(Buffer.from(place)).setAuthTag(bytes.subarray(-tagBytes));
      return Buffer.concat([decipher.update(bytes.subarray(1 + nonceBytes, -tagBytes)), decipher.final()]);
    },
  };
}

function derive(secret: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), `chancery tenant ${purpose} v1`, 32));
}
