import { randomUUID } from 'node:crypto';
import { walletAddress } from '#core/crypto/address.ts';
import type { Signer } from '#core/crypto/sign.ts';
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
import { findSystemWallet, insertWallet } from '../wallets/store.ts';
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

/** The one key of a validator, made on first use for its identity (decision D22). */
export function validatorKey(deps: SystemKeyDeps, validatorId: string): Promise<SystemKey> {
  return systemKey(deps, validatorId, DOCKET_SIGNING);
}

// Each identity has a seed of its own rather than a branch of one system seed: a lost or retired member takes nothing
// else with it. The address is that of the key at the context's slot, the only one that is ever used.
async function systemKey(deps: SystemKeyDeps, identity: string, context: ContextName): Promise<SystemKey> {
  const found = await findSystemWallet(deps.db.read, identity);
  const wallet = found ?? (await makeSystemWallet(deps, identity, context));
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
