import { walletAddress } from '#core/crypto/address.ts';
import { createSigner, type Signer } from '#core/crypto/sign.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';

export interface TestKey {
  readonly signer: Signer;
  readonly publicKey: string;
  readonly algorithm: 'ED25519';
  readonly walletAddress: string;
}

/** The Ed25519 key whose seed is 32 times one byte. */
export function testKey(byte: number): TestKey {
  const signer = createSigner({ algorithm: 'ED25519', privateKey: new Uint8Array(32).fill(byte) });
  return {
    signer,
    publicKey: encodeBase64(signer.publicKey),
    algorithm: 'ED25519',
    walletAddress: walletAddress('ED25519', signer.publicKey),
  };
}
