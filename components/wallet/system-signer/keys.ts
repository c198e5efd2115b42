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
import { refuse } from '../errors.ts';
import { makeKeys } from '../wallets/make.ts';
import { deleteSystemWallets, findSystemWallet, insertWallet, listSystemWallets } from '../wallets/store.ts';
import type { Wallet } from '../wallets/wallet.ts';

export interface SystemKeyDeps {
  readonly db: Database<WalletDatabase>;
  readonly kek: KekProvider;
  readonly keyring: Keyring;
  readonly clock: Clock;
}

export interface SystemKey {
  readonly signer: Signer;
  /** of the key itself */
  readonly address: string;
}

const CONTROL_IDENTITY = 'register-control';

/** The installation's one key for genesis, control transactions and checkpoints; made when it is missing. */
export function controlKey(deps: SystemKeyDeps): Promise<SystemKey> {
  return systemKey(deps, CONTROL_IDENTITY, REGISTER_CONTROL);
}

/** The first key of a validator, created on its first use. Each validator has a seed of its own. */
export function validatorKey(deps: SystemKeyDeps, validatorId: string): Promise<SystemKey> {
  return systemKey(deps, validatorId, DOCKET_SIGNING);
}

/** A rotation makes one more key of an identity; each has a seed of its own. Older ones stay, for registers that name them. */
const MOST_KEYS = 1_000;

function identityOf(validatorId: string, ordinal: number): string {
  return ordinal === 1 ? validatorId : `${validatorId}/${ordinal}`;
}

/** All keys of a validator that were made, the first one first. */
async function walletsOf(deps: SystemKeyDeps, validatorId: string): Promise<Wallet[]> {
  const known = await listSystemWallets(deps.db.read, validatorId);
  const named = new Map(known.map((wallet) => [wallet.systemIdentity, wallet]));
  return known.flatMap((_, index) => named.get(identityOf(validatorId, index + 1)) ?? []);
}

function isOf({ publicKey }: Wallet, key: string): boolean {
  return encodeBase64(publicKey) === key;
}

/**
 * One of a validator's keys.
 * @param publicKey standard base64; undefined for the one that was made last
 * @throws AppError not_found SIGNING_KEY_UNKNOWN when the key is none of this validator's
 */
export async function heldValidatorKey(
  deps: SystemKeyDeps,
  validatorId: string,
  publicKey: string | undefined,
): Promise<SystemKey> {
  const wallets = await walletsOf(deps, validatorId);
  const found = publicKey === undefined ? wallets.at(-1) : wallets.find((each) => isOf(each, publicKey));
  if (found === undefined) throw refuse('SIGNING_KEY_UNKNOWN');
  return openKey(deps, found, DOCKET_SIGNING);
}

/**
 * The key of a validator that follows another one of its keys, made when there is none: what a rotation rotates to. The
 * same question has the same answer, so a rotation that was asked for twice makes one key.
 * @throws AppError not_found SIGNING_KEY_UNKNOWN, conflict SIGNING_KEYS_EXHAUSTED
 */
export async function nextValidatorKey(
  deps: SystemKeyDeps,
  validatorId: string,
  afterPublicKey: string,
): Promise<SystemKey> {
  const wallets = await walletsOf(deps, validatorId);
  const place = wallets.findIndex((each) => isOf(each, afterPublicKey));
  if (place === -1) throw refuse('SIGNING_KEY_UNKNOWN');
  const ordinal = place + 2;
  if (ordinal > MOST_KEYS) throw refuse('SIGNING_KEYS_EXHAUSTED');
  return systemKey(deps, identityOf(validatorId, ordinal), DOCKET_SIGNING);
}

// Each identity has a seed of its own rather than a branch of one system seed: a lost or retired member takes nothing
// else with it. The address is that of the key at the context's slot, the only one that is ever used.
async function systemKey(deps: SystemKeyDeps, identity: string, context: ContextName): Promise<SystemKey> {
  const found = await findSystemWallet(deps.db.read, identity);
  return openKey(deps, found ?? (await makeSystemWallet(deps, identity, context)), context);
}

async function openKey(deps: SystemKeyDeps, wallet: Wallet, context: ContextName): Promise<SystemKey> {
  if (wallet.status === 'Locked') throw refuse('WALLET_LOCKED');
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
  // Another replica was first: its row is committed, for the insert waited for it.
  const made = inserted ? wallet : await findSystemWallet(deps.db.read, identity);
  if (made === undefined) throw refuse('WALLET_NOT_FOUND');
  return made;
}

/**
 * Destroys all keys of a validator that left for good; should it ever come back, it gets a new one. What was signed with
 * them is verified by public keys, which the ledger holds.
 * @returns how many there were
 */
export function destroyValidatorKeys(
  { db }: Pick<SystemKeyDeps, 'db'>,
  validatorId: string,
): Promise<number> {
  return db.transact((tx) => deleteSystemWallets(tx, validatorId));
}
