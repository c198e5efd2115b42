import type { Caller } from '#core/identity/claims.ts';
import type { Transactor } from '#kit/db/db.ts';
import { claimKey } from '#kit/db/idempotency.ts';
import { PRIMARY_SLOT } from '../../custody/contexts.ts';
import { createSeed } from '../../custody/material.ts';
import type { KeyType, WalletDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { personOf } from '../../grants/authority.ts';
import { type CreateDeps, type CreatedWallet, describeWallet, storeWallet } from '../create.ts';
import { appendAudit, changeWallet } from '../records/changes/store.ts';
import { makeKeys } from '../records/make-keys.ts';
import { findWallet, holdOrganizationWallet } from '../records/store.ts';
import { isAdministratorOf } from '../records/wallet.ts';
import { appendWalletEvent } from '../records/wallet-event.ts';
import { hasDerivedKeys } from './store.ts';

export type MasterKeyDeps = Omit<CreateDeps, 'rsa'>;

interface NewMasterKey {
  readonly organizationId: string;
  readonly keyType: Exclude<KeyType, 'RSA'>;
  /** address of the master key that the new one replaces */
  readonly replaces: string | undefined;
}

const wordCount = 24;
const title = 'Organisation master key';

/**
 * Makes the wallet of an organisation, whose seed its derived keys come from. A master key that no key was derived from
 * can be replaced, because the answer with its words can get lost: the earlier wallet is locked and leaves its place.
 */
export async function createMasterKey(
  deps: MasterKeyDeps,
  caller: Caller,
  request: NewMasterKey,
  idempotencyKey: string | undefined,
): Promise<CreatedWallet> {
  const person = personOf(caller);
  const { organizationId, keyType, replaces } = request;
  if (!isAdministratorOf(organizationId, caller)) throw refusal('WALLET_ACCESS_DENIED');
  const { material, mnemonic } = createSeed(wordCount, '');
  const keys = await makeKeys(deps.kek, keyType, material, PRIMARY_SLOT);
  const described = { title, description: undefined, keyType, organizationId };
  const wallet = describeWallet(described, keys, person, deps.clock.nowMs());
  const by = { atMs: wallet.createdAtMs, platformUserId: person };
  const created = await deps.db.transact(async (tx) => {
    const body = { keyType, replaces: replaces ?? '' };
    const repeatable = { key: idempotencyKey, scope: [person, 'master key', organizationId], body };
    // only the id is stored under the key, never the mnemonic
    const earlier = await claimKey(tx, repeatable, { answer: wallet.id, nowMs: by.atMs });
    const made = earlier === undefined ? undefined : await findWallet(tx, earlier);
    if (made !== undefined) return { wallet: made, mnemonic: undefined, replayed: true };
    if (replaces !== undefined) await replaceMasterKey(tx, organizationId, replaces, by);
    await storeWallet(tx, wallet, keys, person);
    await appendAudit(tx, wallet, { ...by, act: 'MasterKeyCreated' });
    return { wallet, mnemonic, replayed: false };
  });
  if (!created.replayed) deps.notify();
  return created;
}

async function replaceMasterKey(
  tx: Transactor<WalletDatabase>,
  organizationId: string,
  address: string,
  by: { readonly atMs: number; readonly platformUserId: string },
): Promise<void> {
  const present = await holdOrganizationWallet(tx, organizationId, 'update');
  if (present?.address !== address) throw refusal('MASTER_KEY_CHANGED');
  if (await hasDerivedKeys(tx, present.id)) throw refusal('MASTER_KEY_IN_USE');
  const lockedAtMs = present.lockedAtMs ?? by.atMs;
  const replaced = await changeWallet(tx, present.id, {
    status: 'Locked',
    lockedAtMs,
    replacedAtMs: by.atMs,
  });
  await appendWalletEvent(tx, 'WalletStatusChanged', replaced);
  await appendAudit(tx, replaced, { ...by, act: 'MasterKeyReplaced' });
}
