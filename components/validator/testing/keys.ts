import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { walletAddress } from '#core/crypto/address.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';

const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex');

export interface TestKey {
  readonly publicKey: string;
  readonly address: string;
  sign(message: Uint8Array): Uint8Array;
}

/** An Ed25519 key from one repeated byte, as in the ledger's vectors. */
export function testKey(seed: number): TestKey {
  const key: KeyObject = createPrivateKey({
    key: Buffer.concat([pkcs8Prefix, Buffer.alloc(32, seed)]),
    format: 'der',
    type: 'pkcs8',
  });
  const raw = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32);
  return {
    publicKey: encodeBase64(raw),
    address: walletAddress('ED25519', raw),
    sign: (message) => sign(null, message, key),
  };
}
