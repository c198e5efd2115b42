import type { Caller } from '#core/identity/claims.ts';
import type { Keyring } from '../custody/keyring.ts';
import { refusal } from '../errors.ts';
import { type AuthorityDeps, authorizeView } from '../grants/authority.ts';
import { getWallet } from '../wallets/records/store.ts';
import { assertUsable } from '../wallets/records/usable.ts';
import type { Wallet } from '../wallets/records/wallet.ts';
import { authorizeDecrypt } from './authorize-decrypt.ts';
import { decryptWith, encryptFor, requestedKey } from './jwe.ts';
import { keyPath } from './key-id.ts';

export interface DecryptDeps extends AuthorityDeps {
  readonly keyring: Keyring;
}

/**
 * A compact JWE of `text` for the recipient, which must not be locked. The caller must be allowed to see the wallet that
 * it encrypts from.
 */
export async function encryptFrom(
  deps: AuthorityDeps,
  caller: Caller,
  sender: string,
  message: { readonly recipient: string; readonly text: string },
): Promise<{ jwe: string; recipient: Wallet }> {
  await authorizeView(deps, caller, await getWallet(deps.db.read, sender));
  const recipient = await getWallet(deps.db.read, message.recipient);
  assertUsable(recipient, 'encrypt');
  return { jwe: await encryptFor(recipient, message.text), recipient };
}

/**
 * The text of a compact JWE for the wallet. The owner may decrypt with either key; a delegate needs a grant that names
 * `platform:payload-encryption` and may use that key only.
 */
export async function decryptAs(
  deps: DecryptDeps,
  caller: Caller,
  idOrAddress: string,
  jwe: string,
): Promise<string> {
  const { wallet, authority } = await authorizeDecrypt(deps, caller, idOrAddress);
  const requested = requestedKey(jwe, wallet.address);
  if (authority === 'delegate' && requested === 'primary') throw refusal('WALLET_ACCESS_DENIED');
  const key = await deps.keyring.privateKey(wallet, keyPath(requested));
  try {
    return await decryptWith(key, jwe);
  } finally {
    key.privateKey.fill(0);
  }
}
