import { createPublicKey } from 'node:crypto';
import { spkiOf } from '#core/crypto/public-key.ts';
import type { Signer } from '#core/crypto/sign.ts';
import type { Caller } from '#core/identity/claims.ts';
import { CITIZEN_HOLDER, contextSlot, slotPath } from '../../custody/contexts.ts';
import { refusal } from '../../errors.ts';
import { personOf } from '../../grants/authority.ts';
import type { SignDeps } from '../../signing/sign.ts';
import { findHolderWallet } from '../records/store.ts';
import { assertUsable } from '../records/usable.ts';
import type { Wallet } from '../records/wallet.ts';
import { assertKeyBinding, type KeyBindingAlgorithm } from './key-binding.ts';

export type HolderKeyDeps = Pick<SignDeps, 'db' | 'keyring' | 'clock'>;

interface HolderKey {
  readonly wallet: Wallet;
  readonly signer: Signer;
  readonly algorithm: KeyBindingAlgorithm;
}

/** A public JWK (RFC 7517) of a holder key. */
interface HolderJwk {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
  readonly y?: string;
  readonly alg: KeyBindingAlgorithm;
}

/**
 * The holder key of the caller: `platform:citizen-holder`, slot 108, of their wallet that holds credentials. The token
 * alone says whose wallet that is; tokens of citizens name no wallet.
 * @throws AppError not_found WALLET_NOT_FOUND when the caller has no such wallet
 */
export async function getHolderKey(deps: HolderKeyDeps, caller: Caller): Promise<HolderKey> {
  const wallet = await findHolderWallet(deps.db.read, personOf(caller));
  if (wallet === undefined) throw refusal('WALLET_NOT_FOUND');
  return holderKeyOf(deps, wallet);
}

/** The holder key of a wallet that derives keys. */
export async function holderKeyOf(deps: Pick<HolderKeyDeps, 'keyring'>, wallet: Wallet): Promise<HolderKey> {
  const signer = await deps.keyring.signer(wallet, slotPath(contextSlot(CITIZEN_HOLDER)));
  return { wallet, signer, algorithm: wallet.keyType === 'NISTP256' ? 'ES256' : 'EdDSA' };
}

export function holderJwk({ signer, algorithm }: HolderKey): HolderJwk {
  const der = Buffer.from(spkiOf(signer.algorithm, signer.publicKey));
  const {
    kty = '',
    crv = '',
    x = '',
    y,
  } = createPublicKey({ key: der, format: 'der', type: 'spki' }).export({
    format: 'jwk',
  });
  return { kty, crv, x, ...(y !== undefined && { y }), alg: algorithm };
}

/**
 * Signs a key-binding JWT with the holder key.
 * Checks run in this order: existence of the wallet, shape of the input, state of the wallet.
 */
export async function signKeyBinding(
  deps: HolderKeyDeps,
  caller: Caller,
  signingInput: string,
): Promise<{ readonly signature: Uint8Array; readonly algorithm: KeyBindingAlgorithm }> {
  const { wallet, signer, algorithm } = await getHolderKey(deps, caller);
  assertKeyBinding(signingInput, { algorithm, nowMs: deps.clock.nowMs() });
  assertUsable(wallet, 'sign');
  return { signature: signer.sign(Buffer.from(signingInput, 'ascii')), algorithm };
}
