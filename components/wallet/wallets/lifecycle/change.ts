import type { Caller } from '#core/identity/claims.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { WalletDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { type AuthorityDeps, authorizeGovernance, personOf } from '../../grants/authority.ts';
import { appendAudit, changeWallet, lockWallet } from '../records/changes/store.ts';
import { getWallet } from '../records/store.ts';
import { administers, type Wallet } from '../records/wallet.ts';
import { appendWalletEvent } from '../records/wallet-event.ts';

export interface ChangeDeps extends AuthorityDeps {
  readonly db: Database<WalletDatabase>;
  /** Notifies the consumers of the event log of a new event. */
  readonly notify: () => void;
}

interface Change {
  readonly title: string | undefined;
  /** null removes it */
  readonly description: string | null | undefined;
  readonly status: 'Active' | 'Locked' | undefined;
}

/**
 * Changes the texts of a wallet, locks or unlocks it. The state that the request asks for may be there already; a lock
 * keeps the time of the first request.
 */
export async function updateWallet(
  deps: ChangeDeps,
  caller: Caller,
  idOrAddress: string,
  change: Change,
): Promise<Wallet> {
  const found = await getWallet(deps.db.read, idOrAddress);
  authorizeGovernance(deps, caller, found);
  const nowMs = deps.clock.nowMs();
  const { changed, isNews } = await deps.db.transact(async (tx) => {
    const wallet = await lockWallet(tx, found.id);
    if (wallet.status === 'Deleted') throw refusal('WALLET_DELETED');
    const { status } = change;
    const described = await describe(tx, wallet, change);
    if (status === undefined || status === wallet.status) return { changed: described, isNews: false };
    assertMaySwitch(caller, wallet, status);
    const switched = await switchStatus(tx, wallet, { status, nowMs, platformUserId: personOf(caller) });
    return { changed: switched, isNews: true };
  });
  if (isNews) deps.notify();
  return changed;
}

async function describe(
  tx: Transactor<WalletDatabase>,
  wallet: Wallet,
  { title, description }: Change,
): Promise<Wallet> {
  if (title === undefined && description === undefined) return wallet;
  return changeWallet(tx, wallet.id, { title, description });
}

/** The user of a derived key may lock it; unlocking is for Administrators, who may have locked it against the user. */
function assertMaySwitch(caller: Caller, wallet: Wallet, status: 'Active' | 'Locked'): void {
  if (status === 'Locked') return;
  if (wallet.keyStatus === 'Revoked') throw refusal('KEY_REVOKED');
  if (wallet.kind === 'Derived' && !administers(wallet, caller)) throw refusal('WALLET_ACCESS_DENIED');
}

interface Switch {
  readonly status: 'Active' | 'Locked';
  readonly nowMs: number;
  readonly platformUserId: string;
}

async function switchStatus(
  tx: Transactor<WalletDatabase>,
  { id }: Wallet,
  { status, nowMs, platformUserId }: Switch,
): Promise<Wallet> {
  const isLocked = status === 'Locked';
  const wallet = await changeWallet(tx, id, { status, lockedAtMs: isLocked ? nowMs : null });
  await appendWalletEvent(tx, 'WalletStatusChanged', wallet);
  const act = isLocked ? 'WalletLocked' : 'WalletUnlocked';
  await appendAudit(tx, wallet, { atMs: nowMs, platformUserId, act });
  return wallet;
}
