import { encodeHex } from '#core/encoding/hex.ts';
import { equalBytes } from '#core/encoding/text.ts';
import type { LookupAnswer } from '../../chain/keys/lookup.ts';
import { hasExclusiveSuccessor } from '../../chain/pool/transaction.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import type { Candidate, Predecessor } from '../verification/judge.ts';
import { type Admitted, conflict } from './answer.ts';

/** The pooled transaction with the same record. Throws a conflict for a different record under the same id. */
export function findPooledDuplicate(register: RegisterChain, candidate: Candidate): Admitted | undefined {
  const known = register.pool.find(candidate.txId);
  if (known === undefined) return undefined;
  if (!equalBytes(known.transaction.leaf, candidate.leaf)) throw conflict(candidate.txId);
  const { registerId, txId: transactionId, addedAtMs } = known.transaction;
  return { transactionId, registerId, addedAtMs, added: false };
}

/** As findPooledDuplicate, for what the register has stored. */
export function findSealedDuplicate(
  candidate: Candidate,
  answer: LookupAnswer | undefined,
  nowMs: number,
): Admitted | undefined {
  if (answer === undefined || answer.sealedRecordHash === '') return undefined;
  if (answer.sealedRecordHash !== encodeHex(candidate.leaf)) throw conflict(candidate.txId);
  const { registerId, txId: transactionId } = candidate;
  return { transactionId, registerId, addedAtMs: nowMs, added: false };
}

/** The transaction that already has the replay key, pooled or sealed. */
export function findReplay(
  register: RegisterChain,
  replayKey: string | undefined,
  answer: LookupAnswer | undefined,
): string | undefined {
  if (replayKey === undefined) return undefined;
  return register.pool.findReplay(replayKey) ?? (answer?.sealedReplay || undefined);
}

/** The state of the predecessor in the pool and the register; undefined when there is none. */
export function findPredecessor(
  register: RegisterChain,
  candidate: Candidate,
  answer: LookupAnswer | undefined,
): Predecessor | undefined {
  const previous = candidate.previousTransactionId;
  if (previous === undefined) return undefined;
  const pooled = pooledType(register, previous);
  const sealed = answer?.previousKnown === true ? answer.previousType : undefined;
  const type = pooled ?? sealed;
  const successor = register.pool.findSuccessor(previous) ?? (answer?.previousSuccessor || undefined);
  return { known: type !== undefined, exclusive: hasExclusiveSuccessor(type ?? 'Action'), successor };
}

/** The type of a pooled transaction. */
export function pooledType({ pool }: RegisterChain, txId: string): string | undefined {
  return pool.find(txId)?.transaction.type;
}
