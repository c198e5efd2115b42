import { createPrivateKey } from 'node:crypto';
import { unwrap } from './key-wrap.ts';

/**
 * The minimum of unwrapping: key agreement, the Concat KDF and AES key unwrap (RFC 7518, section 4.6) by node:crypto, with
 * no call and no database. Settings: {privateKey} as PEM, {keys: [{x, encryptedKey}]} in base64url. The message is the
 * number of batches.
 */

const settings = JSON.parse(process.argv[2] ?? '{}');
const privateKey = createPrivateKey(settings.privateKey);

interface EncodedKey {
  readonly x: string;
  readonly encryptedKey: string;
}
const keys = (settings.keys as readonly EncodedKey[]).map(({ x, encryptedKey }) => ({
  x,
  encryptedKey: Buffer.from(encryptedKey, 'base64url'),
}));

function unwrapAll(): void {
  for (const key of keys)
    if (unwrap(privateKey, key).length !== 32) throw new Error('a content key has 32 bytes');
}

process.on('message', (batches) => {
  for (let n = 0; n < Number(batches); n++) unwrapAll();
  process.send?.('done');
});
process.send?.('ready');
