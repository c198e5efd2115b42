import { randomBytes } from 'node:crypto';
import { mnemonicFromEntropy, seedFromMnemonic } from '#core/crypto/bip39.ts';
import type { PrivateKey } from '#core/crypto/sign.ts';
import { deriveNode } from '#core/crypto/slip10.ts';
import type { KeyType } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { PRIMARY_SLOT, slotPath } from './contexts.ts';
import type { SecretPurpose } from './envelope.ts';

/** The secret that all keys of a wallet are derived from. The holder wipes `secret` after use. */
export interface KeyMaterial {
  readonly purpose: SecretPurpose;
  readonly secret: Buffer;
}

const ENTROPY_BYTES = { 12: 16, 24: 32 } as const;

/** A fresh seed and its mnemonic, which is returned to the owner once and never stored. */
export function createSeed(words: 12 | 24, passphrase: string): { material: KeyMaterial; mnemonic: string } {
  const entropy = randomBytes(ENTROPY_BYTES[words]);
  const mnemonic = mnemonicFromEntropy(entropy);
  entropy.fill(0);
  return { material: recoverMaterial(mnemonic, passphrase), mnemonic };
}

/** @throws AppError invalid INVALID_MNEMONIC */
export function recoverMaterial(mnemonic: string, passphrase: string): KeyMaterial {
  return { purpose: 'seed', secret: Buffer.from(seedFromMnemonic(mnemonic, passphrase)) };
}

/**
 * The private key at a path of hardened levels.
 * @throws AppError unprocessable DERIVATION_UNSUPPORTED for RSA and any path but the primary one
 */
export function privateKeyAt(keyType: KeyType, material: KeyMaterial, path: string): PrivateKey {
  if (keyType === 'RSA') {
    if (path !== slotPath(PRIMARY_SLOT)) {
      throw refusal('DERIVATION_UNSUPPORTED');
    }
    return { algorithm: 'RSA-4096', privateKey: material.secret };
  }
  const curve = keyType === 'ED25519' ? 'ed25519' : 'nist256p1';
  return { algorithm: keyType, privateKey: deriveNode(curve, material.secret, path).privateKey };
}
