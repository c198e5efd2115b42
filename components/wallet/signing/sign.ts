import { walletAddress } from '#core/crypto/address.ts';
import type { Algorithm } from '#core/crypto/algorithm.ts';
import type { Caller } from '#core/identity/claims.ts';
import { type Derivation, resolveDerivation } from '../custody/derivation.ts';
import type { Keyring } from '../custody/keyring.ts';
import { refusal } from '../errors.ts';
import { type AuthorityDeps, authorizeUse } from '../grants/authority.ts';
import { getWallet } from '../wallets/records/store.ts';
import { assertUsable } from '../wallets/records/usable.ts';
import { algorithmOf, type Wallet } from '../wallets/records/wallet.ts';

export interface SignDeps extends AuthorityDeps {
  readonly keyring: Keyring;
}

interface SignRequest {
  readonly data: Uint8Array;
  /** `data` is a 32-byte digest: signed as such by P-256 and RSA, as the message by Ed25519 */
  readonly preHashed: boolean;
  readonly derivationPath: string | undefined;
  /** refused when it does not match the wallet; absent skips the comparison */
  readonly algorithm: string | undefined;
  readonly hybridMode: boolean;
}

interface Signed {
  readonly wallet: Wallet;
  readonly algorithm: Algorithm;
  readonly signature: Uint8Array;
  /** of the key that signed: a derived key when a context was named */
  readonly publicKey: Uint8Array;
  readonly keyAddress: string;
}

/** Key uses that may sign bytes chosen by the caller. */
export const signable: readonly Derivation['use'][] = ['primary', 'raw', 'signing'];

/**
 * Signs as the caller with a wallet by id or address.
 * Checks run in this order: existence, authority, shape of the request, state of the wallet.
 */
export async function signAs(
  deps: SignDeps,
  caller: Caller,
  idOrAddress: string,
  request: SignRequest,
): Promise<Signed> {
  const wallet = await getWallet(deps.db.read, idOrAddress);
  const derivation = resolveDerivation(request.derivationPath);
  await authorizeUse(deps, caller, wallet, {
    act: 'wallet.sign',
    derivationPath: request.derivationPath ?? '',
    context: derivation?.context,
    hybridMode: request.hybridMode,
  });
  if (derivation === undefined) throw refusal('UNKNOWN_DERIVATION_CONTEXT');
  if (!signable.includes(derivation.use)) throw refusal('DERIVATION_CONTEXT_RESERVED');
  assertSignable(wallet, request);
  const signer = await deps.keyring.signer(wallet, derivation.path);
  const signature = request.preHashed ? signer.signDigest(request.data) : signer.sign(request.data);
  const keyAddress = walletAddress(signer.algorithm, signer.publicKey);
  return { wallet, algorithm: signer.algorithm, signature, publicKey: signer.publicKey, keyAddress };
}

function assertSignable(wallet: Wallet, request: SignRequest): void {
  const { algorithm } = request;
  const spellings: readonly string[] = [wallet.keyType, algorithmOf(wallet.keyType)];
  if (algorithm !== undefined && !spellings.includes(algorithm)) throw refusal('ALGORITHM_MISMATCH');
  if (request.hybridMode) throw refusal('HYBRID_UNSUPPORTED');
  if (request.preHashed && request.data.length !== 32) throw refusal('PREHASH_LENGTH');
  assertUsable(wallet, 'sign');
}
