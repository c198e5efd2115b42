import { randomBytes } from 'node:crypto';
import { mnemonicFromEntropy, seedFromMnemonic } from '#core/crypto/bip39.ts';
import type { PrivateKey } from '#core/crypto/sign.ts';
import { deriveBelow, deriveNode } from '#core/crypto/slip10.ts';
import type { KeyType } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { PRIMARY_SLOT, slotPath } from './contexts.ts';
import type { SecretPurpose } from './envelope.ts';

/** The secret that all keys of a wallet are derived from. The holder wipes `secret` after use. */
export interface KeyMaterial {
  readonly purpose: SecretPurpose;
  readonly secret: Buffer;
}

type DerivableKeyType = Exclude<KeyType, 'RSA'>;
type Curve = (typeof CURVES)[DerivableKeyType];

const CURVES = { ED25519: 'ed25519', NISTP256: 'nist256p1' } as const;
const NODE_KEY_BYTES = 32;
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

/** The key material of the wallet at a path below a seed. It opens that node and its children, and nothing above. */
export function nodeMaterial(keyType: DerivableKeyType, seed: KeyMaterial, path: string): KeyMaterial {
  const { privateKey, chainCode } = deriveNode(CURVES[keyType], seed.secret, path);
  const secret = Buffer.concat([privateKey, chainCode]);
  privateKey.fill(0);
  chainCode.fill(0);
  return { purpose: 'node', secret };
}

/**
 * The private key at a path of hardened levels. For a node, its own key is the primary one and every other path starts
 * at the node.
 * @throws AppError unprocessable DERIVATION_UNSUPPORTED for RSA and any path but the primary one, and for a key of another
 * type below an RSA key
 */
export function privateKeyAt(keyType: KeyType, material: KeyMaterial, path: string): PrivateKey {
  if (keyType === 'RSA') {
    if (path !== slotPath(PRIMARY_SLOT)) {
      throw refusal('DERIVATION_UNSUPPORTED');
    }
    return { algorithm: 'RSA-4096', privateKey: material.secret };
  }
  if (material.purpose === 'pkcs8') throw refusal('DERIVATION_UNSUPPORTED');
  const { privateKey } =
    material.purpose === 'node'
      ? belowNode(CURVES[keyType], material.secret, path)
      : deriveNode(CURVES[keyType], material.secret, path);
  return { algorithm: keyType, privateKey };
}

function belowNode(curve: Curve, secret: Buffer, path: string) {
  const node = { privateKey: secret.subarray(0, NODE_KEY_BYTES), chainCode: secret.subarray(NODE_KEY_BYTES) };
  return path === slotPath(PRIMARY_SLOT) ? node : deriveBelow(curve, node, path);
}
