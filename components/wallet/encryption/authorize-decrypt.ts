import type { Caller } from '#core/identity/claims.ts';
import { PAYLOAD_ENCRYPTION } from '../custody/contexts.ts';
import { type AuthorityDeps, authorizeUse } from '../grants/authority.ts';
import { getWallet } from '../wallets/records/store.ts';
import { assertUsable } from '../wallets/records/usable.ts';
import type { Wallet } from '../wallets/records/wallet.ts';

/** A wallet and the right by which a caller decrypts with its keys. */
export interface DecryptAuthority {
  readonly wallet: Wallet;
  /** A delegate uses the key of `platform:payload-encryption` alone. */
  readonly authority: 'owner' | 'delegate';
}

/**
 * The wallet of an id or address, for a caller who may decrypt with its keys: the owner, or a delegate whose grant names
 * `platform:payload-encryption`.
 * @throws AppError not_found WALLET_NOT_FOUND, forbidden PERSON_REQUIRED or WALLET_ACCESS_DENIED, locked WALLET_LOCKED,
 * gone WALLET_DELETED
 */
export async function authorizeDecrypt(
  deps: AuthorityDeps,
  caller: Caller,
  idOrAddress: string,
): Promise<DecryptAuthority> {
  const wallet = await getWallet(deps.db.read, idOrAddress);
  const authority = await authorizeUse(deps, caller, wallet, {
    act: 'wallet.decrypt',
    derivationPath: PAYLOAD_ENCRYPTION,
    context: PAYLOAD_ENCRYPTION,
    hybridMode: false,
  });
  assertUsable(wallet, 'decrypt');
  return { wallet, authority };
}
