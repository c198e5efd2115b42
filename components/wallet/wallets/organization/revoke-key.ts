import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { WALLET_KEY_REVOKED, type WalletKeyRevoked } from '#core/events/wallet-events.ts';
import type { Caller } from '#core/identity/claims.ts';
import { memberDid } from '#core/ledger/did.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import { appendEvent } from '#kit/db/outbox.ts';
import type { WalletDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { AuthorityDeps } from '../../grants/authority.ts';
import { appendAudit, changeWallet, lockWallet } from '../records/changes/store.ts';
import { appendWalletEvent } from '../records/wallet-event.ts';
import { administratorOf } from './derive-key.ts';
import { type DerivedKey, findDerivedKey, markEnd } from './store.ts';

interface RevokeDeps extends AuthorityDeps {
  readonly db: Database<WalletDatabase>;
  /** Notifies the consumers of the event log of a new event. */
  readonly notify: () => void;
}

/** Revokes a key for good: its wallet is locked. A repetition returns the time of the first revocation. */
export async function revokeDerivedKey(
  deps: RevokeDeps,
  caller: Caller,
  { organizationId, id }: { readonly organizationId: string; readonly id: string },
): Promise<{ key: DerivedKey; revokedAtMs: number }> {
  const platformUserId = administratorOf(caller, organizationId);
  const nowMs = deps.clock.nowMs();
  const revoked = await deps.db.transact(async (tx) => {
    if ((await findDerivedKey(tx, organizationId, id)) === undefined) throw refusal('DERIVED_KEY_NOT_FOUND');
    await lockWallet(tx, id);
    const key = await findDerivedKey(tx, organizationId, id);
    if (key === undefined) throw refusal('DERIVED_KEY_NOT_FOUND');
    if (key.revokedAtMs !== undefined) return { key, revokedAtMs: key.revokedAtMs, isNew: false };
    await revoke(tx, key, { atMs: nowMs, platformUserId });
    return { key, revokedAtMs: nowMs, isNew: true };
  });
  if (revoked.isNew) deps.notify();
  return revoked;
}

async function revoke(
  tx: Transactor<WalletDatabase>,
  { wallet, usage }: DerivedKey,
  by: { readonly atMs: number; readonly platformUserId: string },
): Promise<void> {
  const { id, address, status, lockedAtMs = by.atMs } = wallet;
  const isDeleted = status === 'Deleted';
  const changed = await changeWallet(tx, id, {
    keyStatus: 'Revoked',
    ...(isDeleted ? {} : { status: 'Locked', lockedAtMs }),
  });
  await markEnd(tx, id, 'revoked', by.atMs);
  await appendAudit(tx, changed, { ...by, act: 'KeyRevoked' });
  if (status !== changed.status) await appendWalletEvent(tx, 'WalletStatusChanged', changed);
  if (usage !== 'Identity') return;
  const data: WalletKeyRevoked = {
    derivedKeyId: id,
    walletAddress: address,
    did: memberDid(address),
    revokedAt: apiTimestamp(by.atMs),
  };
  await appendEvent(tx, { kind: WALLET_KEY_REVOKED, key: id, data });
}
