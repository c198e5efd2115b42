import { walletAddress } from '#core/crypto/address.ts';
import { parsePublicKey } from '#core/crypto/public-key.ts';
import type { ValidatorMember } from '#core/ledger/consensus.ts';
import type { Signer } from './ports.ts';

/**
 * The signer with the key that a set names for this validator. Keys rotate per register, so the signing key follows from the
 * set of the current height, before and after a restart. Outside the set the signer is returned unchanged.
 */
export function signerFor(members: readonly ValidatorMember[], self: string, signer: Signer): Signer {
  const own = members.find(({ validatorId }) => validatorId === self);
  if (own === undefined || own.publicKey === signer.key.publicKey) return signer;
  const { algorithm, publicKey } = own;
  const key = { publicKey, walletAddress: walletAddress(algorithm, parsePublicKey(algorithm, publicKey)) };
  return {
    key,
    get signsBatches() {
      return signer.signsBatches;
    },
    sign: (request) => signer.sign(request, publicKey),
    signBatch: (batch) => signer.signBatch(batch, publicKey),
  };
}
