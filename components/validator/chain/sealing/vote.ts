import { encodeHex } from '#core/encoding/hex.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Signer } from './ports.ts';

export interface VoteSigning {
  readonly self: string;
  readonly signer: Signer;
  readonly clock: Clock;
}

/** A member's judgement of a docket in the specification's vote shape; `reason` makes it a rejection. */
interface VoteContent {
  readonly registerId: string;
  readonly docketHash: string;
  readonly reason?: string | undefined;
}

/**
 * Signs a vote in the specification's shape with the given signer. Rejects when the signing component refuses or the validator
 * stops.
 */
export async function signVote(
  { self, signer, clock }: VoteSigning,
  { registerId, docketHash, reason }: VoteContent,
): Promise<ConsensusVote> {
  const approved = reason === undefined;
  const timestamp = formatLedgerTimestamp(clock.nowMicros());
  const signature = await signer.sign({ kind: 'attestation', registerId, docketHash, approved, timestamp });
  const { publicKey, walletAddress: validatorAddress } = signer.key;
  return {
    docketHash,
    validatorAddress,
    approved,
    timestamp,
    signature: encodeHex(signature),
    ...(reason !== undefined && { reason }),
    validatorId: self,
    algorithm: 'ED25519',
    publicKey,
  };
}
