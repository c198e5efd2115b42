import { walletAddress } from '#core/crypto/address.ts';
import type { Algorithm } from '#core/crypto/algorithm.ts';
import { contextSlot, REGISTER_ATTESTATION, slotPath } from '../custody/contexts.ts';
import type { Keyring } from '../custody/keyring.ts';
import { findWallet } from '../wallets/records/store.ts';
import { algorithmOf } from '../wallets/records/wallet.ts';
import type { SignDeps } from './sign.ts';

/** The key that attests for a wallet in the roster of a register. */
export interface AttestationKey {
  readonly walletAddress: string;
  /** empty for the primary key of the wallet */
  readonly derivationContext: string;
  readonly algorithm: Algorithm;
  readonly publicKey: Uint8Array;
  readonly keyAddress: string;
}

interface AttestationKeyDeps {
  readonly db: Pick<SignDeps['db'], 'read'>;
  readonly keyring: Pick<Keyring, 'signer'>;
}

/**
 * The key that a wallet, by id or address, attests with; undefined for an unknown wallet, for system keys and for a
 * deleted wallet whose key cannot be derived any more. A wallet of an organisation attests with a derived key, because
 * delegated signing needs a named context and never uses the primary key. Reading needs no authorisation, because the public key is not a secret; signing with it does.
 */
export async function findAttestationKey(
  deps: AttestationKeyDeps,
  idOrAddress: string,
): Promise<AttestationKey | undefined> {
  const wallet = await findWallet(deps.db.read, idOrAddress);
  if (wallet === undefined || wallet.kind === 'System') return undefined;
  const { address, publicKey } = wallet;
  const algorithm = algorithmOf(wallet.keyType);
  if (wallet.kind !== 'Organization') {
    return { walletAddress: address, derivationContext: '', algorithm, publicKey, keyAddress: address };
  }
  if (wallet.status === 'Deleted') return undefined;
  const derived = await deps.keyring.signer(wallet, slotPath(contextSlot(REGISTER_ATTESTATION)));
  return {
    walletAddress: address,
    derivationContext: REGISTER_ATTESTATION,
    algorithm,
    publicKey: derived.publicKey,
    keyAddress: walletAddress(algorithm, derived.publicKey),
  };
}
