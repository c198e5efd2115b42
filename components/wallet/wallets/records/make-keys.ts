import { walletAddress } from '#core/crypto/address.ts';
import { createSigner } from '#core/crypto/sign.ts';
import { contextSlot, PAYLOAD_ENCRYPTION, slotPath } from '../../custody/contexts.ts';
import { type SealedSecret, sealSecret } from '../../custody/envelope.ts';
import type { KekProvider } from '../../custody/kek.ts';
import { type KeyMaterial, privateKeyAt } from '../../custody/material.ts';
import { x25519PublicKey } from '../../custody/x25519.ts';
import type { KeyType } from '../../database/schema.ts';
import { algorithmOf } from './wallet.ts';

/** The facts and secrets of a wallet that are derived from its key material. */
export interface MadeKeys {
  readonly address: string;
  readonly publicKey: Buffer;
  readonly encryptionKey: Buffer | undefined;
  readonly secret: SealedSecret & { readonly purpose: KeyMaterial['purpose'] };
}

/** Derives the address and seals the key material of a wallet whose key is at `slot`; wipes the material. */
export async function makeKeys(
  kek: KekProvider,
  keyType: KeyType,
  material: KeyMaterial,
  slot: number,
): Promise<MadeKeys> {
  try {
    const { publicKey } = createSigner(privateKeyAt(keyType, material, slotPath(slot)));
    const address = walletAddress(algorithmOf(keyType), publicKey);
    const sealed = await sealSecret(kek, { address, purpose: material.purpose }, material.secret);
    return {
      address,
      publicKey: Buffer.from(publicKey),
      encryptionKey: encryptionKeyOf(keyType, material),
      secret: { purpose: material.purpose, ...sealed },
    };
  } finally {
    material.secret.fill(0);
  }
}

function encryptionKeyOf(keyType: KeyType, material: KeyMaterial): Buffer | undefined {
  if (keyType === 'RSA') return undefined;
  const key = privateKeyAt(keyType, material, slotPath(contextSlot(PAYLOAD_ENCRYPTION)));
  if (keyType === 'ED25519') return x25519PublicKey(key.privateKey);
  return Buffer.from(createSigner(key).publicKey);
}
