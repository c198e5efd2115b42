import { encodeHex } from '#core/encoding/hex.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { AttestationRequest, Signer } from './ports.ts';

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

/** A vote that is not signed yet. */
export interface VoteDraft {
  readonly request: AttestationRequest;
  complete(signature: Uint8Array): ConsensusVote;
}

/** Drafts a vote in the specification's shape for the key of the given signer. */
export function draftVote(
  { self, signer, clock }: VoteSigning,
  { registerId, docketHash, reason }: VoteContent,
): VoteDraft {
  const approved = reason === undefined;
  const timestamp = formatLedgerTimestamp(clock.nowMicros());
  const { publicKey, walletAddress: validatorAddress } = signer.key;
  return {
    request: { kind: 'attestation', registerId, docketHash, approved, timestamp },
    complete: (signature) => ({
      docketHash,
      validatorAddress,
      approved,
      timestamp,
      signature: encodeHex(signature),
      ...(reason !== undefined && { reason }),
      validatorId: self,
      algorithm: 'ED25519',
      publicKey,
    }),
  };
}

/**
 * Signs a vote in the specification's shape with the given signer. Rejects when the signing component refuses or the validator
 * stops.
 */
export async function signVote(signing: VoteSigning, content: VoteContent): Promise<ConsensusVote> {
  const draft = draftVote(signing, content);
  return draft.complete(await signing.signer.sign(draft.request));
}
