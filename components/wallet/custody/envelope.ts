import { randomBytes } from 'node:crypto';
import { type KekProvider, openBytes, sealBytes } from './kek.ts';

/** A stored secret: ciphertext under its own data key, and the data key wrapped by a named KEK. */
export interface SealedSecret {
  readonly kekId: string;
  readonly wrappedKey: Buffer;
  readonly sealed: Buffer;
}

/**
 * `seed`: 64-byte BIP-39 seed. `pkcs8`: DER of a key that cannot be derived (RSA). `node`: private key and chain code,
 * 32 bytes each, of a SLIP-0010 node below the seed of another wallet.
 */
export type SecretPurpose = 'seed' | 'pkcs8' | 'node';

/**
 * The row that owns a secret. It is authenticated with the ciphertext, so a secret moved to another wallet cannot be
 * decrypted.
 */
export interface SecretOwner {
  readonly address: string;
  readonly purpose: SecretPurpose;
}

const DATA_KEY_BYTES = 32;

export async function sealSecret(
  kek: KekProvider,
  owner: SecretOwner,
  secret: Buffer,
): Promise<SealedSecret> {
  const dataKey = randomBytes(DATA_KEY_BYTES);
  try {
    const kekId = kek.currentId;
    const wrappedKey = await kek.wrap(dataKey, additionalData('data-key', owner));
    return { kekId, wrappedKey, sealed: sealBytes(dataKey, secret, additionalData('secret', owner)) };
  } finally {
    dataKey.fill(0);
  }
}

/** The caller wipes the returned buffer. Throws `internal` KEK_UNKNOWN or CUSTODY_TAMPERED. */
export async function openSecret(
  kek: KekProvider,
  owner: SecretOwner,
  secret: SealedSecret,
): Promise<Buffer> {
  const dataKey = await kek.unwrap(secret.kekId, secret.wrappedKey, additionalData('data-key', owner));
  try {
    return openBytes(dataKey, secret.sealed, additionalData('secret', owner));
  } finally {
    dataKey.fill(0);
  }
}

/** A document of a wallet, sealed under the data key of its secret. */
export interface SealedDocument {
  /** Authenticated with the content, so that one document cannot take the place of another. */
  readonly name: string;
  readonly sealed: Buffer;
}

type DataKey = Pick<SealedSecret, 'kekId' | 'wrappedKey'>;

/** Seals a document under the data key of a wallet's secret. @throws AppError internal KEK_UNKNOWN, CUSTODY_TAMPERED */
export async function sealDocument(
  kek: KekProvider,
  owner: SecretOwner,
  { kekId, wrappedKey }: DataKey,
  { name, document }: { readonly name: string; readonly document: Buffer },
): Promise<Buffer> {
  const dataKey = await kek.unwrap(kekId, wrappedKey, additionalData('data-key', owner));
  try {
    return sealBytes(dataKey, document, documentData(owner, name));
  } finally {
    dataKey.fill(0);
  }
}

/** Opens documents in their order; the data key is unwrapped once. @throws AppError internal as `openSecret` does */
export async function openDocuments(
  kek: KekProvider,
  owner: SecretOwner,
  { kekId, wrappedKey }: DataKey,
  documents: readonly SealedDocument[],
): Promise<readonly Buffer[]> {
  const dataKey = await kek.unwrap(kekId, wrappedKey, additionalData('data-key', owner));
  try {
    return documents.map(({ name, sealed }) => openBytes(dataKey, sealed, documentData(owner, name)));
  } finally {
    dataKey.fill(0);
  }
}

function documentData(owner: SecretOwner, name: string): Buffer {
  return Buffer.from(`chancery:wallet:v1\ndocument\n${owner.address}\n${name}`);
}

/**
 * The data key of a secret, wrapped under the current key-encryption key.
 * @throws AppError internal KEK_UNKNOWN or CUSTODY_TAMPERED
 */
export async function rewrapSecret(kek: KekProvider, owner: SecretOwner, secret: DataKey): Promise<DataKey> {
  const aad = additionalData('data-key', owner);
  const dataKey = await kek.unwrap(secret.kekId, secret.wrappedKey, aad);
  try {
    const kekId = kek.currentId;
    return { kekId, wrappedKey: await kek.wrap(dataKey, aad) };
  } finally {
    dataKey.fill(0);
  }
}

function additionalData(layer: 'data-key' | 'secret', owner: SecretOwner): Buffer {
  return Buffer.from(`chancery:wallet:v1\n${layer}\n${owner.address}\n${owner.purpose}`);
}
