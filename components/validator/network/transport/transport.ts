import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import type { PeerEvidence } from '../../chain/consensus/evidence.ts';
import type { Proposal, TimedStep, Vote } from '../../chain/consensus/messages.ts';

/** A transaction as it is sent and stored: the record's JCS bytes and the bytes that payloadHash covers. */
export interface SealedTransaction {
  readonly record: Uint8Array;
  readonly payload: Uint8Array;
  readonly payloadHashForm: 'jcs' | 'compact';
}

/** The chain head of one register at a member. */
export interface Head {
  readonly registerId: string;
  /** Number of decided dockets. */
  readonly height: number;
  readonly round: number;
  readonly headHash: string;
}

export interface ProposalEnvelope {
  readonly kind: 'proposal';
  readonly registerId: string;
  readonly proposal: Proposal;
  readonly header: DocketHeader;
  /** Leaf hashes of the records in lower hex, by transaction. */
  readonly recordHashes: readonly string[];
}

/** The sender's round state at its current height, so that the receiver sends the missing messages. */
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
  /** Members whose vote in `round` was received, as indexes into the sorted set. */
  readonly prevotes: readonly number[];
  readonly precommits: readonly number[];
}

export interface Heartbeat {
  readonly kind: 'heartbeat';
  /** Empty: a heartbeat is exchanged by two validators, not by two members of a register. */
  readonly registerId: '';
  readonly validatorId: string;
  readonly atMs: number;
  readonly version: string;
  /** Registers that advanced since they were last reported; bounded. */
  readonly heads: readonly Head[];
  /** Whether the sender drains. */
  readonly draining: boolean;
}

/** An announcement of accepted transactions, which the receivers log too. Transactions that are not inlined are fetched. */
export interface Hint {
  readonly kind: 'hint';
  readonly registerId: string;
  readonly transactionIds: readonly string[];
  /** The first of them, in the same order: the small ones, inlined. */
  readonly transactions: readonly SealedTransaction[];
}

/** A message from one validator to another as plain data, independent of protobuf. */
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
      /** Number of dockets that the register service holds; unverified until this member asks the register service itself. */
      readonly height: number;
      /** Members whose attestations were stored with docket `height - 1`. */
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

/** The transport between validators. Delivery may fail, repeat and reorder; consensus tolerates that. */
export interface Transport {
  /** Best effort, through a bounded buffer; never throws. */
  send(to: string, envelope: Envelope): void;
  /** Returns the available ones, up to the size of one answer. Throws AppError when the peer is unreachable. */
  fetchRecords(
    to: string,
    registerId: string,
    transactionIds: readonly string[],
    signal?: AbortSignal,
  ): Promise<readonly SealedTransaction[]>;
  /** Undefined when the peer does not have it. Throws AppError when the peer is unreachable. */
  fetchCommit(
    to: string,
    registerId: string,
    height: number,
    signal?: AbortSignal,
  ): Promise<CommitBundle | undefined>;
}

/**
 * The receiving side of a validator. `from` is the authenticated identity of the connection. Nothing else in an envelope is
 * authenticated.
 */
export interface Inbox {
  receive(from: string, envelope: Envelope): void;
  /** A connection to the peer was established or re-established. */
  connected(peer: string): void;
  records(from: string, registerId: string, transactionIds: readonly string[]): readonly SealedTransaction[];
  commit(from: string, registerId: string, height: number): CommitBundle | undefined;
}
