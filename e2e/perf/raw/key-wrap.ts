import {
  createCipheriv,
  createDecipheriv,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hash,
  type KeyObject,
} from 'node:crypto';

/** A content key that is wrapped for a key of X25519: the ephemeral public key in base64url, and the wrapped bytes. */
export interface WrappedKey {
  readonly x: string;
  readonly encryptedKey: Buffer;
}

export const wrapAlgorithm = 'ECDH-ES+A256KW';
const iv = Buffer.alloc(8, 0xa6);
const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const parties = Buffer.concat([uint32(0), uint32(0), uint32(256)]);
const info = Buffer.concat([uint32(wrapAlgorithm.length), Buffer.from(wrapAlgorithm), parties]);

const publicKeyOf = (x: string): KeyObject =>
  createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x }, format: 'jwk' });

/** Key agreement and the Concat KDF (RFC 7518, section 4.6; RFC 8037, section 3.2). */
function wrapKeyOf(privateKey: KeyObject, publicKey: KeyObject): Buffer {
  const secret = diffieHellman({ privateKey, publicKey });
  return hash('sha256', Buffer.concat([uint32(1), secret, info]), 'buffer');
}

/** Wraps a content key for a public key, base64url, with an ephemeral key of its own. */
export function wrapFor(recipient: string, contentKey: Uint8Array): WrappedKey {
  const ephemeral = generateKeyPairSync('x25519');
  const wrapKey = wrapKeyOf(ephemeral.privateKey, publicKeyOf(recipient));
  const cipher = createCipheriv('id-aes256-wrap', wrapKey, iv);
  const encryptedKey = Buffer.concat([cipher.update(contentKey), cipher.final()]);
  const { x = '' } = ephemeral.publicKey.export({ format: 'jwk' });
  return { x, encryptedKey };
}

/** The content key; throws when it was wrapped for another key. */
export function unwrap(privateKey: KeyObject, { x, encryptedKey }: WrappedKey): Buffer {
  const decipher = createDecipheriv('id-aes256-wrap', wrapKeyOf(privateKey, publicKeyOf(x)), iv);
  const contentKey = decipher.update(encryptedKey);
  decipher.final();
  return contentKey;
}
