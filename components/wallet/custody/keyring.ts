import { createSigner, type PrivateKey, type Signer } from '#core/crypto/sign.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { KeyType } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { slotPath } from './contexts.ts';
import {
  openDocuments,
  openSecret,
  type SealedDocument,
  type SealedSecret,
  type SecretPurpose,
  sealDocument,
} from './envelope.ts';
import type { KekProvider } from './kek.ts';
import { type KeyMaterial, privateKeyAt } from './material.ts';

/** The facts about a wallet that decrypting its key material requires. */
interface KeyOwner {
  readonly id: string;
  readonly address: string;
  readonly keyType: KeyType;
  readonly slot: number;
  readonly publicKey: Buffer;
}

type DocumentOwner = Pick<KeyOwner, 'id' | 'address'>;

interface KeyringOptions {
  readonly kek: KekProvider;
  readonly load: (
    walletId: string,
  ) => Promise<(SealedSecret & { readonly purpose: SecretPurpose }) | undefined>;
  readonly clock: Clock;
  /** maximum number of unwrapped keys in the cache */
  readonly capacity?: number;
  readonly ttlMs?: number;
}

interface Entry {
  readonly signer: Promise<Signer>;
  readonly expiresAtMs: number;
}

/**
 * Decrypts the keys of wallets. A small cache holds signers in memory, so that a frequently used key is not unwrapped
 * each time. Callers authorise every use; a cached key grants nothing.
 */
export class Keyring {
  readonly #options: Required<KeyringOptions>;
  readonly #entries = new Map<string, Entry>();

  constructor(options: KeyringOptions) {
    this.#options = { capacity: 256, ttlMs: 10 * 60 * 1000, ...options };
  }

  /**
   * @param keyType of the key at the path, where it is not that of the wallet: a seed has keys of both curves
   * @throws AppError internal CUSTODY_TAMPERED, CUSTODY_KEY_MISMATCH, KEK_UNKNOWN or CUSTODY_MISSING
   */
  signer(owner: KeyOwner, path: string, keyType: KeyType = owner.keyType): Promise<Signer> {
    const name = `${owner.id} ${keyType} ${path}`;
    const nowMs = this.#options.clock.nowMs();
    const cached = this.#entries.get(name);
    this.#entries.delete(name);
    if (cached !== undefined && nowMs < cached.expiresAtMs) {
      this.#entries.set(name, cached);
      return cached.signer;
    }
    const signer = this.privateKey(owner, path, keyType).then(createSigner);
    this.#remember(name, { signer, expiresAtMs: nowMs + this.#options.ttlMs });
    return signer;
  }

  /** A private key that is not cached: for decryption and exports to a cipher. */
  privateKey(owner: KeyOwner, path: string, keyType: KeyType = owner.keyType): Promise<PrivateKey> {
    return this.withMaterial(owner, (material) => copyOfKeyAt(keyType, material, path));
  }

  /** Private keys in the order of the paths; the key material is decrypted once. */
  privateKeys(owner: KeyOwner, paths: readonly string[]): Promise<PrivateKey[]> {
    return this.withMaterial(owner, (material) =>
      paths.map((path) => copyOfKeyAt(owner.keyType, material, path)),
    );
  }

  /** Runs `use` on the opened key material of a wallet and wipes the material afterwards. */
  async withMaterial<T>(owner: KeyOwner, use: (material: KeyMaterial) => T): Promise<T> {
    const stored = await this.#stored(owner.id);
    const { address } = owner;
    const secret = await openSecret(this.#options.kek, { address, purpose: stored.purpose }, stored);
    try {
      const material = { purpose: stored.purpose, secret };
      assertOwnKey(owner, privateKeyAt(owner.keyType, material, slotPath(owner.slot)));
      return use(material);
    } finally {
      secret.fill(0);
    }
  }

  /** Seals a document of a wallet under its data key. @throws AppError internal as `signer` does */
  async sealDocument(
    { id, address }: DocumentOwner,
    document: { readonly name: string; readonly document: Buffer },
  ): Promise<Buffer> {
    const stored = await this.#stored(id);
    return sealDocument(this.#options.kek, { address, purpose: stored.purpose }, stored, document);
  }

  /** Opens documents of a wallet in their order. @throws AppError internal as `signer` does */
  async openDocuments(
    { id, address }: DocumentOwner,
    documents: readonly SealedDocument[],
  ): Promise<readonly Buffer[]> {
    const stored = await this.#stored(id);
    return openDocuments(this.#options.kek, { address, purpose: stored.purpose }, stored, documents);
  }

  /** Drops the cached signers of a wallet whose key material was erased. */
  forget(walletId: string): void {
    for (const name of this.#entries.keys()) {
      if (name.startsWith(`${walletId} `)) this.#entries.delete(name);
    }
  }

  async #stored(walletId: string) {
    const stored = await this.#options.load(walletId);
    if (stored === undefined) throw refusal('CUSTODY_MISSING', { details: { walletId } });
    return stored;
  }

  #remember(name: string, entry: Entry): void {
    this.#entries.set(name, entry);
    const oldest = this.#entries.keys().next();
    if (this.#entries.size > this.#options.capacity && !oldest.done) this.#entries.delete(oldest.value);
    entry.signer.catch(() => {
      if (this.#entries.get(name) === entry) this.#entries.delete(name);
    });
  }
}

function copyOfKeyAt(keyType: KeyType, material: KeyMaterial, path: string): PrivateKey {
  const key = privateKeyAt(keyType, material, path);
  return { algorithm: key.algorithm, privateKey: Buffer.from(key.privateKey) };
}

// A key that does not match the wallet's public key must not sign: the row was changed or the secret wrongly restored.
function assertOwnKey(owner: KeyOwner, key: PrivateKey): void {
  if (owner.publicKey.equals(createSigner(key).publicKey)) return;
  throw refusal('CUSTODY_KEY_MISMATCH', { details: { walletId: owner.id } });
}
