import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { WALLET_CHANGED, type WalletChanged } from '#core/events/wallet-change-events.ts';
import { isUniqueViolation, type Transactor } from '#kit/db/db.ts';
import { appendEvent } from '#kit/db/outbox.ts';
import type { KeyStatus, WalletDatabase, WalletStatus } from '../../../database/schema.ts';
import { refusal } from '../../../errors.ts';
import { fromRow, insertSecret, type StoredSecret } from '../store.ts';
import type { Wallet } from '../wallet.ts';

type Tx = Transactor<WalletDatabase>;

/** Waits for other changes of the wallet and returns its state; later changes wait for this transaction. */
export async function lockWallet(tx: Tx, id: string): Promise<Wallet> {
  const row = await tx.selectFrom('wallets').selectAll().where('id', '=', id).forUpdate().executeTakeFirst();
  if (row === undefined) throw refusal('WALLET_NOT_FOUND');
  return fromRow(row);
}

interface WalletChange {
  readonly title?: string | undefined;
  readonly description?: string | null | undefined;
  readonly status?: WalletStatus | undefined;
  readonly keyStatus?: KeyStatus | undefined;
  /** null when the wallet becomes Active */
  readonly lockedAtMs?: number | null | undefined;
  readonly replacedAtMs?: number | null | undefined;
}

/** Applies the members of a change that are present. */
export async function changeWallet(tx: Tx, id: string, change: WalletChange): Promise<Wallet> {
  const { title, description, status, keyStatus, lockedAtMs, replacedAtMs } = change;
  const row = await tx
    .updateTable('wallets')
    .set({
      ...(title !== undefined && { title }),
      ...(description !== undefined && { description }),
      ...(status !== undefined && { status }),
      ...(keyStatus !== undefined && { key_status: keyStatus }),
      ...(lockedAtMs !== undefined && { locked_at: dateOf(lockedAtMs) }),
      ...(replacedAtMs !== undefined && { replaced_at: dateOf(replacedAtMs) }),
    })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst();
  if (row === undefined) throw refusal('WALLET_NOT_FOUND');
  return fromRow(row);
}

function dateOf(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}

/**
 * Erases the key material of a wallet, and the credentials that are sealed under its data key; its row, address and public
 * keys stay.
 */
export async function eraseSecret(tx: Tx, walletId: string): Promise<void> {
  await tx.deleteFrom('held_credentials').where('wallet_id', '=', walletId).execute();
  await tx.deleteFrom('wallet_secrets').where('wallet_id', '=', walletId).execute();
}

/**
 * Makes a deleted wallet Active again, with key material recovered from its words.
 * @throws AppError conflict ORGANIZATION_WALLET_EXISTS when another wallet has become that of the organisation, also in
 * a transaction that commits meanwhile
 */
export async function restoreWallet(tx: Tx, id: string, secret: StoredSecret): Promise<Wallet> {
  await insertSecret(tx, id, secret);
  try {
    return await changeWallet(tx, id, { status: 'Active', lockedAtMs: null, replacedAtMs: null });
  } catch (cause) {
    throw isUniqueViolation(cause, 'wallets_one_of_organization')
      ? refusal('ORGANIZATION_WALLET_EXISTS', { cause })
      : cause;
  }
}

interface WalletAct {
  readonly atMs: number;
  readonly platformUserId: string;
  readonly act: string;
}

/**
 * Appends the audit row of a change in the transaction that makes it, and for a wallet of an organisation the event for
 * its audit log.
 */
export async function appendAudit(
  tx: Tx,
  { id, address, ownerOrganizationId }: Pick<Wallet, 'id' | 'address' | 'ownerOrganizationId'>,
  { atMs, platformUserId, act }: WalletAct,
): Promise<void> {
  await tx
    .insertInto('wallet_audit')
    .values({
      at: new Date(atMs),
      platform_user_id: platformUserId,
      organization_id: ownerOrganizationId ?? null,
      act,
      wallet_id: id,
      wallet_address: address,
    })
    .execute();
  if (ownerOrganizationId === undefined) return;
  const data: WalletChanged = {
    walletId: id,
    address,
    organizationId: ownerOrganizationId,
    platformUserId,
    act,
    occurredAt: apiTimestamp(atMs),
  };
  await appendEvent(tx, { kind: WALLET_CHANGED, key: id, data });
}
