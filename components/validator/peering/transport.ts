import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import type { ValidatorMember } from '#core/ledger/consensus.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import type { Evidence, Proposal, TimedStep, Vote } from '../consensus/messages.ts';

/** A transaction as it travels and as it is stored: the record's JCS bytes and the bytes that payloadHash is of. */
export interface SealedTransaction {
  readonly record: Uint8Array;
  readonly payload: Uint8Array;
  readonly payloadHashForm: 'jcs' | 'compact';
}

/** Where one register stands at a member. */
export interface Head {
  readonly registerId: string;
  /** Number of decided dockets. */
  readonly height: number;
  readonly round: number;
  readonly headHash: string;
}

/** Two certificates of one height: proof that more members failed than the set tolerates. */
export interface CertificateConflict {
  readonly kind: 'conflicting-certificate';
  readonly first: Certificate;
  readonly second: Certificate;
}

/** Proof of a fault that anybody can check against V(h); suspicions are not evidence (L-116). */
export type PeerEvidence = Evidence | CertificateConflict;

/** What it takes to check the signatures of evidence without knowing the register. */
export interface Proof {
  readonly networkId: string;
  /** Of the set at that height, lower hex. */
  readonly validatorSetHash: string;
  /** The member that is convicted; of two certificates the whole set. */
  readonly signers: readonly ValidatorMember[];
  /** When this validator had it first. */
  readonly seenAtMs: number;
}

export interface ProposalEnvelope {
  readonly kind: 'proposal';
  readonly registerId: string;
  readonly proposal: Proposal;
  readonly header: DocketHeader;
  /** Leaf hashes of the records in lower hex, by transaction. */
  readonly recordHashes: readonly string[];
}

/** How far its sender is in the height it works on, so that the receiver sends what is missing there. */
export interface RoundState {
  readonly kind: 'round-state';
  readonly registerId: string;
  readonly height: number;
  readonly round: number;
  readonly step: TimedStep | 'idle' | 'decided';
  /** -1 for none. */
  readonly lockedRound: number;
  readonly validRound: number;
  readonly headHash: string;
  readonly hasProposal: boolean;
  /** Members heard in `round`, as places of the sorted set. */
  readonly prevotes: readonly number[];
  readonly precommits: readonly number[];
}

export interface Heartbeat {
  readonly kind: 'heartbeat';
  /** Empty: a heartbeat is between two validators, not between two members (D24). */
  readonly registerId: '';
  readonly validatorId: string;
  readonly atMs: number;
  readonly version: string;
  /** Registers that have moved since the receiver was told; bounded. */
  readonly heads: readonly Head[];
  /** It proposes nothing. */
  readonly draining: boolean;
}

/** Accepted transactions (D17): the others log them too. What is not carried is fetched. */
export interface Hint {
  readonly kind: 'hint';
  readonly registerId: string;
  readonly transactionIds: readonly string[];
  /** The first of them, in the same order, as far as they are small. */
  readonly transactions: readonly SealedTransaction[];
}

/** What one validator says to another; plain data, no protobuf. */
export type Envelope =
  | ProposalEnvelope
  | { readonly kind: 'vote'; readonly registerId: string; readonly vote: Vote }
  | {
      readonly kind: 'attestation';
      readonly registerId: string;
      readonly docketNumber: number;
      readonly vote: ConsensusVote;
    }
  | RoundState
  | Heartbeat
  | Hint
  | {
      readonly kind: 'stored';
      readonly registerId: string;
      /** Number of dockets that the register service holds; a rumour until it is asked itself. */
      readonly height: number;
      /** Docket `height - 1` was stored with the attestations of these members. */
      readonly attested: readonly string[];
    }
  | { readonly kind: 'evidence'; readonly registerId: string; readonly evidence: PeerEvidence };

/** A decided docket without its records. */
export interface CommitBundle {
  readonly header: DocketHeader;
  readonly certificate: Certificate;
  /** Leaf hashes of the records in lower hex, by transaction. */
  readonly recordHashes: readonly string[];
}

/** The wire as a validator sees it. Delivery may fail, repeat and reorder; consensus copes. */
export interface Transport {
  /** Best effort, through a bounded buffer; never throws. */
  send(to: string, envelope: Envelope): void;
  /** As many of them as the other has and one answer holds. Throws AppError when the other cannot be asked. */
  fetchRecords(
    to: string,
    registerId: string,
    transactionIds: readonly string[],
    signal?: AbortSignal,
  ): Promise<readonly SealedTransaction[]>;
  /** Undefined when the other does not have it. Throws AppError when the other cannot be asked. */
  fetchCommit(
    to: string,
    registerId: string,
    height: number,
    signal?: AbortSignal,
  ): Promise<CommitBundle | undefined>;
}

/**
 * What the transport gives to the validator. `from` is authentic: the identity of the connection. Nothing else is: whatever
 * is in an envelope may have been made up by its sender.
 */
export interface Inbox {
  receive(from: string, envelope: Envelope): void;
  /** A connection to the other stands, for the first time or again. */
  connected(peer: string): void;
  records(from: string, registerId: string, transactionIds: readonly string[]): readonly SealedTransaction[];
  commit(from: string, registerId: string, height: number): CommitBundle | undefined;
}
