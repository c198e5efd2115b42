import { createDecipheriv, createPrivateKey, createPublicKey, diffieHellman, hash } from 'node:crypto';

/**
 * The minimum of unwrapping: key agreement, the Concat KDF and AES key unwrap (RFC 7518, section 4.6) by node:crypto, with
 * no call and no database. Settings: {privateKey} as PEM, {keys: [{x, y?, crv, encryptedKey}]} in base64url. The message is
 * the number of batches.
 */

const settings = JSON.parse(process.argv[2] ?? '{}');
const privateKey = createPrivateKey(settings.privateKey);
const iv = Buffer.alloc(8, 0xa6);
const uint32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const algorithm = Buffer.from('ECDH-ES+A256KW');
const info = Buffer.concat([uint32(algorithm.length), algorithm, uint32(0), uint32(0), uint32(256)]);

interface Wrapped {
  readonly epk: { readonly kty: string; readonly crv: string; readonly x: string; readonly y?: string };
  readonly encryptedKey: string;
}
const keys = (settings.keys as readonly Wrapped[]).map(({ epk, encryptedKey }) => ({
  epk,
  encryptedKey: Buffer.from(encryptedKey, 'base64url'),
}));

function unwrapAll(): void {
  for (const { epk, encryptedKey } of keys) {
    const secret = diffieHellman({ privateKey, publicKey: createPublicKey({ key: epk, format: 'jwk' }) });
    const wrapKey = hash('sha256', Buffer.concat([uint32(1), secret, info]), 'buffer');
    const decipher = createDecipheriv('id-aes256-wrap', wrapKey, iv);
    const contentKey = decipher.update(encryptedKey);
    decipher.final();
    if (contentKey.length !== 32) throw new Error('a content key has 32 bytes');
  }
}

process.on('message', (batches) => {
  for (let n = 0; n < Number(batches); n++) unwrapAll();
  process.send?.('done');
});
process.send?.('ready');
