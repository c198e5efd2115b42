import { randomUUID } from 'node:crypto';
import type { Caller } from '#core/identity/claims.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import { claimKey } from '#kit/db/idempotency.ts';
import { PRIMARY_SLOT, REGISTER_ATTESTATION } from '../custody/contexts.ts';
import type { KekProvider } from '../custody/kek.ts';
import { createSeed, type KeyMaterial, recoverMaterial } from '../custody/material.ts';
import type { RsaGenerator } from '../custody/rsa.ts';
import type { KeyType, WalletDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { personOf } from '../grants/authority.ts';
import { insertGrant } from '../grants/store.ts';
import { appendAudit, lockWallet, restoreWallet } from './records/changes/store.ts';
import { type MadeKeys, makeKeys } from './records/make-keys.ts';
import { findOrganizationWallet, findWallet, insertWallet } from './records/store.ts';
import { isAdministratorOf, type Wallet } from './records/wallet.ts';
import { appendWalletEvent } from './records/wallet-event.ts';

export interface CreateDeps {
  readonly db: Database<WalletDatabase>;
  readonly kek: KekProvider;
  readonly clock: Clock;
  readonly rsa: RsaGenerator;
  /** Notifies the consumers of the event log of a new event. */
  readonly notify: () => void;
}

interface NewWallet {
  readonly title: string;
  readonly description: string | undefined;
  readonly keyType: KeyType;
  readonly organizationId: string | undefined;
  readonly wordCount: 12 | 24;
  readonly passphrase: string;
}

export interface CreatedWallet {
  readonly wallet: Wallet;
  readonly mnemonic: string | undefined;
  /**
   * an earlier request with the Idempotency-Key created the wallet; its mnemonic was returned then and is not stored
   */
  readonly replayed: boolean;
}

const creatorGrantMs = 90 * 24 * 60 * 60 * 1000;

/**
 * Creates a wallet of the caller, or the only wallet of an organisation with a grant of 90 days for the creator
 * (specification document 3, section 4).
 */
export async function createWallet(
  deps: CreateDeps,
  caller: Caller,
  request: NewWallet,
  idempotencyKey: string | undefined,
): Promise<CreatedWallet> {
  const person = personOf(caller);
  assertMayCreate(caller, request);
  const { material, mnemonic } = await newMaterial(deps.rsa, request);
  const keys = await makeKeys(deps.kek, request.keyType, material, PRIMARY_SLOT);
  const wallet = describeWallet(request, keys, person, deps.clock.nowMs());
  const created = await deps.db.transact(async (tx) => {
    const repeatable = { key: idempotencyKey, scope: [`${person} wallets`], body: bodyOf(request) };
    // only the id is stored under the key, never the mnemonic
    const earlier = await claimKey(tx, repeatable, { answer: wallet.id, nowMs: wallet.createdAtMs });
    const made = earlier === undefined ? undefined : await findWallet(tx, earlier);
    if (made !== undefined) return { wallet: made, mnemonic: undefined, replayed: true };
    await storeWallet(tx, wallet, keys, person);
    return { wallet, mnemonic, replayed: false };
  });
  if (!created.replayed) deps.notify();
  return created;
}

interface Recovery {
  readonly title: string;
  readonly description: string | undefined;
  readonly keyType: KeyType;
  readonly mnemonic: string;
  readonly passphrase: string;
  readonly organizationId: string | undefined;
}

/**
 * Recovers a wallet of the caller, or of an organisation that the caller administers, from its mnemonic: a wallet with
 * the same address, the existing wallet, or the deleted one with its keys.
 */
export async function recoverWallet(
  deps: CreateDeps,
  caller: Caller,
  request: Recovery,
): Promise<CreatedWallet> {
  const person = personOf(caller);
  if (request.keyType === 'RSA') throw refusal('KEY_TYPE_NOT_RECOVERABLE');
  assertMayCreate(caller, request);
  const material = recoverMaterial(request.mnemonic, request.passphrase);
  const keys = await makeKeys(deps.kek, request.keyType, material, PRIMARY_SLOT);
  const wallet = describeWallet(request, keys, person, deps.clock.nowMs());
  const recovered = await deps.db.transact((tx) => storeRecovered(tx, wallet, keys, person));
  if (!recovered.replayed) deps.notify();
  return recovered;
}

async function storeRecovered(
  tx: Transactor<WalletDatabase>,
  wallet: Wallet,
  keys: MadeKeys,
  person: string,
): Promise<CreatedWallet> {
  const act = { atMs: wallet.createdAtMs, platformUserId: person, act: 'WalletRecovered' };
  if (await insertWallet(tx, wallet, keys.secret)) {
    await announce(tx, wallet, person);
    await appendAudit(tx, wallet, act);
    return { wallet, mnemonic: undefined, replayed: false };
  }
  const known = await findWallet(tx, wallet.address);
  if (known === undefined) throw refusal('ORGANIZATION_WALLET_EXISTS');
  const present = await lockWallet(tx, known.id);
  if (!hasSameOwner(present, wallet)) throw refusal('WALLET_EXISTS');
  if (present.status !== 'Deleted') return { wallet: present, mnemonic: undefined, replayed: true };
  const { ownerOrganizationId } = present;
  if (ownerOrganizationId !== undefined && (await findOrganizationWallet(tx, ownerOrganizationId)))
    throw refusal('ORGANIZATION_WALLET_EXISTS');
  const restored = await restoreWallet(tx, present.id, keys.secret);
  await appendWalletEvent(tx, 'WalletStatusChanged', restored);
  await appendAudit(tx, restored, act);
  if (restored.kind === 'Organization')
    await grantCreator(tx, { ...restored, createdAtMs: wallet.createdAtMs }, person);
  return { wallet: restored, mnemonic: undefined, replayed: false };
}

function hasSameOwner(one: Wallet, other: Wallet): boolean {
  return (
    one.kind === other.kind &&
    one.ownerUserId === other.ownerUserId &&
    one.ownerOrganizationId === other.ownerOrganizationId
  );
}

async function newMaterial(
  rsa: RsaGenerator,
  request: NewWallet,
): Promise<{ material: KeyMaterial; mnemonic: string | undefined }> {
  if (request.keyType !== 'RSA') return createSeed(request.wordCount, request.passphrase);
  return { material: await rsa.generate(), mnemonic: undefined };
}

function assertMayCreate(caller: Caller, request: Pick<NewWallet, 'organizationId' | 'keyType'>): void {
  if (request.organizationId === undefined) return;
  if (!isAdministratorOf(request.organizationId, caller)) throw refusal('WALLET_ACCESS_DENIED');
  if (request.keyType === 'RSA') throw refusal('ORGANIZATION_KEY_TYPE');
}

/** Stores a wallet with its event; for an organisation, with the grant of its creator. */
export async function storeWallet(
  tx: Transactor<WalletDatabase>,
  wallet: Wallet,
  keys: MadeKeys,
  person: string,
): Promise<void> {
  if (!(await insertWallet(tx, wallet, keys.secret))) {
    const { ownerOrganizationId } = wallet;
    const present = ownerOrganizationId && (await findOrganizationWallet(tx, ownerOrganizationId));
    throw refusal(present ? 'ORGANIZATION_WALLET_EXISTS' : 'WALLET_EXISTS');
  }
  await announce(tx, wallet, person);
}

async function announce(tx: Transactor<WalletDatabase>, wallet: Wallet, person: string): Promise<void> {
  await appendWalletEvent(tx, 'WalletCreated', wallet);
  if (wallet.kind === 'Organization') await grantCreator(tx, wallet, person);
}

async function grantCreator(tx: Transactor<WalletDatabase>, wallet: Wallet, person: string): Promise<void> {
  await insertGrant(tx, {
    id: randomUUID(),
    walletId: wallet.id,
    subject: person,
    accessRight: 'ReadWrite',
    reason: 'organisation wallet creator',
    grantedBy: person,
    grantedAtMs: wallet.createdAtMs,
    expiresAtMs: wallet.createdAtMs + creatorGrantMs,
    ended: false,
    allowedContexts: [REGISTER_ATTESTATION],
  });
}

type Description = Pick<NewWallet, 'title' | 'description' | 'keyType' | 'organizationId'>;

export function describeWallet(request: Description, keys: MadeKeys, person: string, nowMs: number): Wallet {
  const { organizationId } = request;
  return {
    id: randomUUID(),
    address: keys.address,
    kind: organizationId === undefined ? 'User' : 'Organization',
    ownerUserId: organizationId === undefined ? person : undefined,
    ownerOrganizationId: organizationId,
    systemIdentity: undefined,
    title: request.title,
    description: request.description,
    keyType: request.keyType,
    slot: PRIMARY_SLOT,
    publicKey: keys.publicKey,
    encryptionKey: keys.encryptionKey,
    status: 'Active',
    createdBy: person,
    createdAtMs: nowMs,
  };
}

// The passphrase is left out, because a stored hash of it would allow guessing. The order of the members is part of the
// stored hash: rows of earlier releases were hashed in it.
function bodyOf(request: NewWallet) {
  const { title, description = '', keyType, organizationId = '', wordCount } = request;
  return { description, keyType, organizationId, title, wordCount };
}
