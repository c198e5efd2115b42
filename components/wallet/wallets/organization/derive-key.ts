import { randomUUID } from 'node:crypto';
import type { Caller } from '#core/identity/claims.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import { claimKey } from '#kit/db/idempotency.ts';
import { PRIMARY_SLOT } from '../../custody/contexts.ts';
import type { KekProvider } from '../../custody/kek.ts';
import type { Keyring } from '../../custody/keyring.ts';
import { nodeMaterial } from '../../custody/material.ts';
import type { KeyType, WalletDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { type AuthorityDeps, personOf } from '../../grants/authority.ts';
import { appendAudit, changeWallet, lockWallet } from '../records/changes/store.ts';
import { type MadeKeys, makeKeys } from '../records/make-keys.ts';
import { findOrganizationWallet, holdOrganizationWallet, insertWallet } from '../records/store.ts';
import { assertUsable } from '../records/usable.ts';
import { isAdministratorOf, type Wallet } from '../records/wallet.ts';
import { appendWalletEvent } from '../records/wallet-event.ts';
import { type DerivedKeyName, derivedKeyPath } from './path.ts';
import { type DerivedKey, findDerivedKey, findNamedKeys, insertDerivedKey, markEnd } from './store.ts';

/** Members of organisations, in the tenant service. */
export interface Members {
  /** The platform user of an active member; `userId` is that or the id inside the organisation. */
  find(organizationId: string, userId: string): Promise<string | undefined>;
}

export interface DeriveDeps extends AuthorityDeps {
  readonly db: Database<WalletDatabase>;
  readonly kek: KekProvider;
  readonly keyring: Keyring;
  readonly members: Members;
  /** Notifies the consumers of the event log of a new event. */
  readonly notify: () => void;
}

/**
 * The active key of a name, derived from the master key of the organisation when there is none. Concurrent requests get
 * the same key.
 */
export async function ensureDerivedKey(
  deps: DeriveDeps,
  caller: Caller,
  request: DerivedKeyName,
): Promise<{ key: DerivedKey; isNew: boolean }> {
  const by = administratorOf(caller, request.organizationId);
  const name = await memberName(deps, request);
  const present = await findNamedKeys(deps.db.read, name);
  if (present.active !== undefined) return { key: present.active, isNew: false };
  const successor = await derive(deps, name, present.nextIndex);
  const stored = await deps.db.transact((tx) => storeKey(tx, successor, by));
  if (stored) {
    deps.notify();
    return { key: successor.key, isNew: true };
  }
  const { active } = await findNamedKeys(deps.db.read, name);
  if (active === undefined) throw refusal('WALLET_EXISTS');
  return { key: active, isNew: false };
}

/**
 * Makes the successor of an active key in one transaction with the end of the key, which then only decrypts. One of two
 * concurrent rotations is refused.
 */
export async function rotateDerivedKey(
  deps: DeriveDeps,
  caller: Caller,
  { organizationId, id }: { readonly organizationId: string; readonly id: string },
  idempotencyKey: string | undefined,
): Promise<{ previous: DerivedKey; successor: DerivedKey }> {
  const by = administratorOf(caller, organizationId);
  const previous = await findDerivedKey(deps.db.read, organizationId, id);
  if (previous === undefined) throw refusal('DERIVED_KEY_NOT_FOUND');
  const made = await derive(deps, await memberName(deps, previous), previous.index + 1);
  const nowMs = made.key.createdAtMs;
  const rotated = await deps.db.transact(async (tx) => {
    const scope = [by, 'rotations', id];
    const repeatable = { key: idempotencyKey, scope, body: { organizationId } };
    const earlier = await claimKey(tx, repeatable, { answer: made.key.wallet.id, nowMs });
    const known = earlier === undefined ? undefined : await findDerivedKey(tx, organizationId, earlier);
    if (known !== undefined) return { successor: known, isNew: false };
    await endActive(tx, previous.wallet, { atMs: nowMs, platformUserId: by });
    if (!(await storeKey(tx, made, by))) throw refusal('WALLET_EXISTS');
    return { successor: made.key, isNew: true };
  });
  if (rotated.isNew) deps.notify();
  return { previous, successor: rotated.successor };
}

async function endActive(
  tx: Transactor<WalletDatabase>,
  { id }: Wallet,
  by: { readonly atMs: number; readonly platformUserId: string },
): Promise<void> {
  const wallet = await lockWallet(tx, id);
  if (wallet.keyStatus !== 'Active') throw refusal('KEY_NOT_ACTIVE');
  assertUsable(wallet, 'sign');
  await changeWallet(tx, id, { keyStatus: 'Rotated' });
  await markEnd(tx, id, 'rotated', by.atMs);
  await appendAudit(tx, wallet, { ...by, act: 'KeyRotated' });
}

/** The platform user of the caller. @throws AppError forbidden WALLET_ACCESS_DENIED unless an Administrator of it */
export function administratorOf(caller: Caller, organizationId: string): string {
  const person = personOf(caller);
  if (!isAdministratorOf(organizationId, caller)) throw refusal('WALLET_ACCESS_DENIED');
  return person;
}

async function memberName({ members }: DeriveDeps, name: DerivedKeyName): Promise<DerivedKeyName> {
  const { organizationId, departmentId, usage } = name;
  const userId = await members.find(organizationId, name.userId);
  if (userId === undefined) throw refusal('MEMBER_UNKNOWN');
  return { organizationId, departmentId, usage, userId };
}

interface Derived {
  readonly key: DerivedKey;
  readonly keys: MadeKeys;
}

/** Derives the key of a name and an index; stores nothing. */
async function derive(deps: DeriveDeps, name: DerivedKeyName, index: number): Promise<Derived> {
  const master = await findOrganizationWallet(deps.db.read, name.organizationId);
  if (master === undefined) throw refusal('MASTER_KEY_MISSING');
  assertUsable(master, 'sign');
  const keyType = derivable(master.keyType);
  const derivationPath = derivedKeyPath(name, index);
  const node = await deps.keyring.withMaterial(master, (seed) => nodeMaterial(keyType, seed, derivationPath));
  const keys = await makeKeys(deps.kek, keyType, node, PRIMARY_SLOT);
  const createdAtMs = deps.clock.nowMs();
  const wallet: Wallet = {
    id: randomUUID(),
    address: keys.address,
    kind: 'Derived',
    ownerUserId: name.userId,
    ownerOrganizationId: name.organizationId,
    systemIdentity: undefined,
    title: `${name.usage} key`,
    description: undefined,
    keyType,
    slot: PRIMARY_SLOT,
    publicKey: keys.publicKey,
    encryptionKey: keys.encryptionKey,
    status: 'Active',
    keyStatus: 'Active',
    createdBy: name.userId,
    createdAtMs,
  };
  const ends = { rotatedAtMs: undefined, revokedAtMs: undefined };
  const key = { ...name, wallet, masterId: master.id, index, derivationPath, createdAtMs, ...ends };
  return { key, keys };
}

function derivable(keyType: KeyType): Exclude<KeyType, 'RSA'> {
  if (keyType === 'RSA') throw refusal('ORGANIZATION_KEY_TYPE');
  return keyType;
}

/** False, with nothing written, when the key already exists. */
async function storeKey(
  tx: Transactor<WalletDatabase>,
  { key, keys }: Derived,
  platformUserId: string,
): Promise<boolean> {
  const wallet = { ...key.wallet, createdBy: platformUserId };
  const master = await holdOrganizationWallet(tx, key.organizationId, 'share');
  if (master?.id !== key.masterId || master.status !== 'Active') throw refusal('MASTER_KEY_CHANGED');
  if (!(await insertWallet(tx, wallet, keys.secret))) return false;
  await insertDerivedKey(tx, key);
  await appendWalletEvent(tx, 'WalletCreated', wallet);
  await appendAudit(tx, wallet, { atMs: key.createdAtMs, platformUserId, act: 'KeyDerived' });
  return true;
}
