import { apiTimestamp } from '#core/encoding/timestamp.ts';
import type { WalletEventKind, WalletFact } from '#core/events/wallet-events.ts';
import type { Transactor } from '#kit/db/db.ts';
import { appendEvent } from '#kit/db/outbox.ts';
import type { WalletDatabase } from '../../database/schema.ts';
import type { Wallet } from './wallet.ts';

/** The state of a wallet after a change, as its event carries it. */
type WalletState = Pick<Wallet, 'id' | 'address' | 'kind' | 'createdAtMs' | 'status'> &
  Pick<Wallet, 'ownerUserId' | 'ownerOrganizationId'>;

/**
 * Appends the event of a change in the transaction that makes it. Every use case that creates, recovers, locks, unlocks
 * or deletes a wallet calls it and notifies the consumers after the commit. System wallets have no events.
 */
export async function appendWalletEvent(
  tx: Transactor<WalletDatabase>,
  kind: WalletEventKind,
  wallet: WalletState,
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
