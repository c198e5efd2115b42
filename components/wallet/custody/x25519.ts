import { ed25519 } from '@noble/curves/ed25519.js';

/** The X25519 public key of an Ed25519 private key; the encryption key of slot 110 is published in this form. */
export function x25519PublicKey(seed: Uint8Array): Buffer {
  return Buffer.from(ed25519.utils.toMontgomery(ed25519.getPublicKey(seed)));
}
