import { randomUUID } from 'node:crypto';
import { walletAddress } from '#core/crypto/address.ts';
import type { Signer } from '#core/crypto/sign.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import {
  type ContextName,
  contextSlot,
  DOCKET_SIGNING,
  REGISTER_CONTROL,
  slotPath,
} from '../custody/contexts.ts';
import type { KekProvider } from '../custody/kek.ts';
import type { Keyring } from '../custody/keyring.ts';
import { createSeed } from '../custody/material.ts';
import type { WalletDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { makeKeys } from '../wallets/records/make-keys.ts';
import {
  deleteSystemWallets,
  findSystemWallet,
  insertWallet,
  listSystemWallets,
} from '../wallets/records/store.ts';
import type { Wallet } from '../wallets/records/wallet.ts';

export interface SystemKeyDeps {
  readonly db: Database<WalletDatabase>;
  readonly kek: KekProvider;
  readonly keyring: Keyring;
  readonly clock: Clock;
}

export interface SystemKey {
  readonly signer: Signer;
  /** address of the key */
  readonly address: string;
}

const controlIdentity = 'register-control';

/** The key of the installation for genesis, control transactions and checkpoints; created when it is missing. */
export function controlKey(deps: SystemKeyDeps): Promise<SystemKey> {
  return systemKey(deps, controlIdentity, REGISTER_CONTROL);
}

/** The first key of a validator, created on its first use. Each validator has a seed of its own. */
export function validatorKey(deps: SystemKeyDeps, validatorId: string): Promise<SystemKey> {
  return systemKey(deps, validatorId, DOCKET_SIGNING);
}

/** A rotation creates one more key of an identity. Older keys stay, because rosters of registers may name them. */
const maxKeys = 1_000;

function identityOf(validatorId: string, ordinal: number): string {
  return ordinal === 1 ? validatorId : `${validatorId}/${ordinal}`;
}

/** All keys of a validator in the order of their creation. */
async function walletsOf(deps: SystemKeyDeps, validatorId: string): Promise<Wallet[]> {
  const wallets = await listSystemWallets(deps.db.read, validatorId);
  const byIdentity = new Map(wallets.map((wallet) => [wallet.systemIdentity, wallet]));
  return wallets.flatMap((_, index) => byIdentity.get(identityOf(validatorId, index + 1)) ?? []);
}

function isOf({ publicKey }: Wallet, key: string): boolean {
  return encodeBase64(publicKey) === key;
}

/**
 * Gets a key of a validator.
 * @param publicKey standard base64; undefined for the newest key
 * @throws AppError not_found SIGNING_KEY_UNKNOWN when this validator has no such key
 */
export async function heldValidatorKey(
  deps: SystemKeyDeps,
  validatorId: string,
  publicKey: string | undefined,
): Promise<SystemKey> {
  const wallets = await walletsOf(deps, validatorId);
  const found = publicKey === undefined ? wallets.at(-1) : wallets.find((each) => isOf(each, publicKey));
  if (found === undefined) throw refusal('SIGNING_KEY_UNKNOWN');
  return openKey(deps, found, DOCKET_SIGNING);
}

/**
 * The successor of a key of a validator, created when it does not exist; a rotation changes to it. The function is
 * idempotent, so a repeated rotation request creates one key.
 * @throws AppError not_found SIGNING_KEY_UNKNOWN, conflict SIGNING_KEYS_EXHAUSTED
 */
export async function nextValidatorKey(
  deps: SystemKeyDeps,
  validatorId: string,
  afterPublicKey: string,
): Promise<SystemKey> {
  const wallets = await walletsOf(deps, validatorId);
  const index = wallets.findIndex((each) => isOf(each, afterPublicKey));
  if (index === -1) throw refusal('SIGNING_KEY_UNKNOWN');
  const ordinal = index + 2;
  if (ordinal > maxKeys) throw refusal('SIGNING_KEYS_EXHAUSTED');
  return systemKey(deps, identityOf(validatorId, ordinal), DOCKET_SIGNING);
}

// Each identity has its own seed instead of a branch of one system seed, so the loss of one identity affects no other.
// The address is that of the key at the slot of the context, the only key of the seed in use.
async function systemKey(deps: SystemKeyDeps, identity: string, context: ContextName): Promise<SystemKey> {
  const found = await findSystemWallet(deps.db.read, identity);
  return openKey(deps, found ?? (await makeSystemWallet(deps, identity, context)), context);
}

async function openKey(deps: SystemKeyDeps, wallet: Wallet, context: ContextName): Promise<SystemKey> {
  if (wallet.status === 'Locked') throw refusal('WALLET_LOCKED');
  const signer = await deps.keyring.signer(wallet, slotPath(contextSlot(context)));
  return { signer, address: walletAddress(signer.algorithm, signer.publicKey) };
}

async function makeSystemWallet(
  deps: SystemKeyDeps,
  identity: string,
  context: ContextName,
): Promise<Wallet> {
  const { material } = createSeed(24, '');
  const slot = contextSlot(context);
  const keys = await makeKeys(deps.kek, 'ED25519', material, slot);
  const wallet: Wallet = {
    id: randomUUID(),
    address: keys.address,
    kind: 'System',
    ownerUserId: undefined,
    ownerOrganizationId: undefined,
    systemIdentity: identity,
    title: identity,
    description: undefined,
    keyType: 'ED25519',
    slot,
    publicKey: keys.publicKey,
    encryptionKey: keys.encryptionKey,
    status: 'Active',
    createdBy: 'system',
    createdAtMs: deps.clock.nowMs(),
  };
  const inserted = await deps.db.transact((tx) => insertWallet(tx, wallet, keys.secret));
  // When another replica inserted first, its row is committed by now, because the insert waited for that transaction.
  const stored = inserted ? wallet : await findSystemWallet(deps.db.read, identity);
  if (stored === undefined) throw refusal('WALLET_NOT_FOUND');
  return stored;
}

/**
 * Destroys all keys of a permanently removed validator; if it returns, it gets a new key. Existing signatures stay
 * verifiable, because the ledger stores the public keys.
 * @returns the number of destroyed keys
 */
export function destroyValidatorKeys(
  { db }: Pick<SystemKeyDeps, 'db'>,
  validatorId: string,
): Promise<number> {
  return db.transact((tx) => deleteSystemWallets(tx, validatorId));
}
