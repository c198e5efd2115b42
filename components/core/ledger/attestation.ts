import { findAddressParts, walletAddress } from '../crypto/address.ts';
import type { Algorithm } from '../crypto/algorithm.ts';
import { parsePublicKey } from '../crypto/public-key.ts';
import type { Verifier } from '../crypto/verify.ts';
import { decodeHex } from '../encoding/hex.ts';
import { utf8 } from '../encoding/text.ts';
import { findTimestamp } from '../encoding/timestamp.ts';
import { isAppError } from '../errors/errors.ts';

/** The specification's consensus vote. It is issued after the decision and is never part of it. */
export interface ConsensusVote {
  readonly docketHash: string;
  /** Address of the voter's key. */
  readonly validatorAddress: string;
  readonly approved: boolean;
  /** Stored and signed verbatim. */
  readonly timestamp: string;
  /** Lower-case hex. */
  readonly signature: string;
  readonly reason?: string | undefined;
  readonly validatorId: string;
  readonly algorithm: Algorithm;
  /** Standard padded base64 of the canonical key form. */
  readonly publicKey: string;
}

type VoteFacts = Pick<ConsensusVote, 'docketHash' | 'validatorAddress' | 'approved' | 'timestamp'>;

/** The signed text `docketHash|validatorAddress|approved|timestamp`. */
export function voteText(vote: VoteFacts): string {
  return `${vote.docketHash}|${vote.validatorAddress}|${vote.approved ? 'true' : 'false'}|${vote.timestamp}`;
}

/** UTF-8 of the vote text: what is signed, not pre-hashed. */
export function voteBytes(vote: VoteFacts): Uint8Array {
  return utf8(voteText(vote));
}

/** Whether a vote is signed by the key it carries and that key has the address it names. */
export function verifyVote(vote: ConsensusVote, verifier: Verifier): boolean {
  try {
    const publicKey = parsePublicKey(vote.algorithm, vote.publicKey);
    const named = findAddressParts(vote.validatorAddress) !== undefined;
    if (!named || walletAddress(vote.algorithm, publicKey) !== vote.validatorAddress) return false;
    const signature = decodeHex(vote.signature);
    return verifier.verify({ algorithm: vote.algorithm, publicKey, message: voteBytes(vote), signature });
  } catch (error) {
    if (isAppError(error, 'invalid')) return false;
    throw error;
  }
}

/**
 * Whether a vote attests a docket with the key of the member that it names. A rejection does not: a sealed docket
 * carries only approving votes.
 */
export function isAttestation(
  vote: ConsensusVote,
  docketHash: string,
  members: readonly { readonly validatorId: string; readonly publicKey: string }[],
  verifier: Verifier,
): boolean {
  const voter = members.find((member) => member.validatorId === vote.validatorId);
  return (
    vote.docketHash === docketHash &&
    vote.approved &&
    vote.reason === undefined &&
    findTimestamp(vote.timestamp) !== undefined &&
    voter?.publicKey === vote.publicKey &&
    verifyVote(vote, verifier)
  );
}
