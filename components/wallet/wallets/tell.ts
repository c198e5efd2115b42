import { apiTimestamp } from '#core/encoding/timestamp.ts';
import type { WalletEventKind, WalletFact } from '#core/events/wallet-events.ts';
import type { Transactor } from '#kit/db/db.ts';
import { appendEvent } from '#kit/db/outbox.ts';
import type { WalletDatabase } from '../database/schema.ts';
import type { Wallet } from './wallet.ts';

/** A wallet as its event tells it: its state after the change. */
export type ToldWallet = Pick<Wallet, 'id' | 'address' | 'kind' | 'createdAtMs'> &
  Pick<Wallet, 'ownerUserId' | 'ownerOrganizationId'> & {
    readonly status: Wallet['status'] | 'Deleted';
  };

/**
 * Tells in the transaction that changes a wallet; whoever creates, locks, unlocks or deletes one calls it and rings
 * after the commit. Keys of the system are nobody's wallets and are not told.
 */
export async function tellWallet(
  tx: Transactor<WalletDatabase>,
  kind: WalletEventKind,
  wallet: ToldWallet,
): Promise<void> {
  const ownerId = wallet.ownerUserId ?? wallet.ownerOrganizationId;
  if (ownerId === undefined) return;
  const data: WalletFact = {
    walletId: wallet.id,
    address: wallet.address,
    ownerKind: wallet.kind,
    ownerId,
    status: wallet.status,
    createdAt: apiTimestamp(wallet.createdAtMs),
  };
  await appendEvent(tx, { kind, key: wallet.id, data });
}
