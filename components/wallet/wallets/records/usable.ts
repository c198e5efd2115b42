import { refusal } from '../../errors.ts';
import type { Wallet } from './wallet.ts';

/** What a key of the wallet is used for; `encrypt` uses its public key alone. */
type KeyRight = 'sign' | 'decrypt' | 'encrypt';

/**
 * Judges the state of a wallet before its keys are used. A rotated key signs nothing and still decrypts, so content may
 * still be encrypted for it.
 * @throws AppError locked WALLET_LOCKED, gone WALLET_DELETED, forbidden KEY_ROTATED
 */
export function assertUsable(wallet: Pick<Wallet, 'status' | 'keyStatus'>, right: KeyRight): void {
  if (wallet.status === 'Deleted') throw refusal('WALLET_DELETED');
  if (wallet.status === 'Locked') throw refusal('WALLET_LOCKED');
  if (wallet.keyStatus === 'Rotated' && right === 'sign') throw refusal('KEY_ROTATED');
}
