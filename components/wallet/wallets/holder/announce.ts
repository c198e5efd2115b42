import { credentialAvailable, credentialStatusChanged, deviceRevoked } from '#core/events/holder-events.ts';
import type { Transactor } from '#kit/db/db.ts';
import { appendEvent } from '#kit/db/outbox.ts';
import { currentTraceId } from '#kit/telemetry/telemetry.ts';
import type { WalletDatabase } from '../../database/schema.ts';
import { personOfWallet, type Wallet } from '../records/wallet.ts';
import { deleteNotice } from './store.ts';

/** A credential of a wallet. */
interface HeldCredential {
  readonly wallet: Pick<Wallet, 'address' | 'kind' | 'ownerUserId'>;
  /** 1 to 200 characters. */
  readonly credentialId: string;
}

type Tx = Transactor<WalletDatabase>;

/**
 * Announces a new credential in the transaction that stores it, and clears the notice that the person waits for one.
 * The caller notifies the readers of the event log after the commit, as after each event of this file.
 */
export async function announceCredential(tx: Tx, credential: HeldCredential): Promise<void> {
  const { platformUserId } = factsOf(credential);
  if (platformUserId !== undefined) await deleteNotice(tx, platformUserId);
  await appendEvent(tx, credentialAvailable(factsOf(credential)));
}

/** Announces the new status of a credential in the transaction that changes it. */
export async function announceCredentialStatus(tx: Tx, credential: HeldCredential): Promise<void> {
  await appendEvent(tx, credentialStatusChanged(factsOf(credential)));
}

/** Announces in the transaction that records it that a device of a person was revoked. */
export async function announceRevokedDevice(
  tx: Tx,
  { platformUserId, deviceId }: { readonly platformUserId: string; readonly deviceId: string },
): Promise<void> {
  await appendEvent(tx, deviceRevoked({ platformUserId, deviceId, traceId: currentTraceId() }));
}

function factsOf({ wallet, credentialId }: HeldCredential) {
  const platformUserId = personOfWallet(wallet);
  return { walletAddress: wallet.address, platformUserId, credentialId, traceId: currentTraceId() };
}
