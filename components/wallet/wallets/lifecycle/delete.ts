import { apiTimestamp } from '#core/encoding/timestamp.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Transactor } from '#kit/db/db.ts';
import type { Keyring } from '../../custody/keyring.ts';
import type { WalletDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { authorizeGovernance, personOf } from '../../grants/authority.ts';
import { endGrants } from '../../grants/store.ts';
import { appendAudit, changeWallet, eraseSecret, lockWallet } from '../records/changes/store.ts';
import { getWallet } from '../records/store.ts';
import { administers, type Wallet } from '../records/wallet.ts';
import { appendWalletEvent } from '../records/wallet-event.ts';
import type { ChangeDeps } from './change.ts';

export interface DeleteDeps extends ChangeDeps {
  readonly keyring: Pick<Keyring, 'forget'>;
  /** Time that a wallet must have been locked before it can be deleted. */
  readonly deletionHours: number;
}

const hourMs = 3_600_000;

/**
 * Erases the key material of a locked wallet and ends its grants. Address and public keys stay, so that signatures of
 * the past can be attributed. Deleting a deleted wallet changes nothing.
 */
export async function deleteWallet(deps: DeleteDeps, caller: Caller, idOrAddress: string): Promise<void> {
  const found = await getWallet(deps.db.read, idOrAddress);
  authorizeGovernance(deps, caller, found);
  if (found.kind === 'Derived' && !administers(found, caller)) throw refusal('WALLET_ACCESS_DENIED');
  const nowMs = deps.clock.nowMs();
  const isNews = await deps.db.transact(async (tx) => {
    const wallet = await lockWallet(tx, found.id);
    if (wallet.status === 'Deleted') return false;
    assertDeletable(wallet, nowMs, deps.deletionHours);
    await erase(tx, wallet, { atMs: nowMs, platformUserId: personOf(caller) });
    return true;
  });
  if (!isNews) return;
  deps.keyring.forget(found.id);
  deps.notify();
}

function assertDeletable({ status, lockedAtMs }: Wallet, nowMs: number, deletionHours: number): void {
  if (status !== 'Locked' || lockedAtMs === undefined) throw refusal('WALLET_NOT_LOCKED');
  const deletableAtMs = lockedAtMs + deletionHours * hourMs;
  if (nowMs >= deletableAtMs) return;
  const text = `the wallet was locked too recently; it can be deleted from ${apiTimestamp(deletableAtMs)}`;
  throw refusal('WALLET_LOCKED_TOO_RECENTLY', { message: text });
}

async function erase(
  tx: Transactor<WalletDatabase>,
  { id }: Wallet,
  by: { readonly atMs: number; readonly platformUserId: string },
): Promise<void> {
  await eraseSecret(tx, id);
  await endGrants(tx, id, by.atMs);
  const wallet = await changeWallet(tx, id, { status: 'Deleted' });
  await appendWalletEvent(tx, 'WalletStatusChanged', wallet);
  await appendAudit(tx, wallet, { ...by, act: 'WalletDeleted' });
}
