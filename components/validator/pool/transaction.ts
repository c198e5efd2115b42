import type { Algorithm } from '#core/crypto/algorithm.ts';
import type { TransactionType } from '#core/ledger/transaction.ts';

/** Control holds genesis and control transactions; it stays open when the other lane is full (decision D26). */
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
  /** What no second Action of the register may repeat (L-39); undefined where an only successor or a type says enough. */
  readonly replayKey: string | undefined;
  /** JCS bytes of the sealed record. */
  readonly record: Uint8Array;
  /** Leaf hash of the record: its identity. */
  readonly leaf: Uint8Array;
  /** The bytes that payloadHash was made over. */
  readonly payload: Uint8Array;
  readonly payloadHashForm: 'jcs' | 'compact';
  /** Whether the id is the one derived from the envelope. */
  readonly bound: boolean;
  /** Of the signatures, in their order. */
  readonly algorithms: readonly Algorithm[];
  readonly sizeBytes: number;
  readonly createdAt: string;
  readonly expiresAtMs: number;
  readonly addedAtMs: number;
}

/** Types whose transactions may have any number of successors (L-43). */
export function hasExclusiveSuccessor(type: string): boolean {
  return type !== 'Control' && type !== 'Genesis';
}
