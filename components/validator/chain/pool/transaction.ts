import type { Algorithm } from '#core/crypto/algorithm.ts';
import type { TransactionType } from '#core/ledger/transaction.ts';
import type { Step } from './step.ts';

/** Control holds genesis and control transactions and accepts them when the action lane is full, so that a register stays governable. */
export type Lane = 'control' | 'action';

/** A verified transaction that is not stored in a docket yet. */
export interface PooledTransaction {
  readonly registerId: string;
  readonly txId: string;
  readonly type: TransactionType;
  readonly lane: Lane;
  readonly senderAddress: string;
  readonly previousTransactionId: string | undefined;
  /** A second successor of this predecessor is a fork: the predecessor is neither Control nor Genesis. */
  readonly exclusivePredecessor: boolean;
  /** Replay protection key of an Action; undefined where the exclusive successor or the type already prevents a replay. */
  readonly replayKey: string | undefined;
  /** JCS bytes of the sealed record. */
  readonly record: Uint8Array;
  /** Leaf hash of the record: its identity. */
  readonly leaf: Uint8Array;
  /** The bytes that payloadHash covers. */
  readonly payload: Uint8Array;
  readonly payloadHashForm: 'jcs' | 'compact';
  /** Whether the id is derived from the envelope. */
  readonly bound: boolean;
  /** Of the signatures, in order. */
  readonly algorithms: readonly Algorithm[];
  readonly sizeBytes: number;
  readonly createdAt: string;
  readonly expiresAtMs: number;
  readonly addedAtMs: number;
  /** Set for every step of a workflow. */
  readonly step?: Step | undefined;
}

/** Whether a transaction of this type may have only one successor. */
export function hasExclusiveSuccessor(type: string): boolean {
  return type !== 'Control' && type !== 'Genesis';
}
