import type { PooledTransaction } from '../pool/transaction.ts';
import type { Ledger } from '../sealing/ports.ts';

const lookupBatch = 500;

/** A transaction of the log and the segment that holds it. */
export interface LoggedEntry {
  readonly transaction: PooledTransaction;
  readonly segment: number;
}

/** A transaction that the register service has not sealed. */
export interface PendingEntry extends LoggedEntry {
  /** The sealed transaction with the same replay key; empty when there is none. */
  readonly sealedReplay: string;
}

/** The transactions that the register service has not sealed. Throws when any of the lookups fails. */
export async function findUnsealed(
  ledger: Pick<Ledger, 'lookup'>,
  registerId: string,
  logged: readonly LoggedEntry[],
): Promise<PendingEntry[]> {
  const pending: PendingEntry[] = [];
  for (let at = 0; at < logged.length; at += lookupBatch) {
    const batch = logged.slice(at, at + lookupBatch);
    const queries = batch.map(({ transaction }) => ({
      registerId,
      transactionId: transaction.txId,
      previousTransactionId: '',
      replayKey: transaction.replayKey ?? '',
      pin: '',
    }));
    const answers = await ledger.lookup(queries);
    for (const [index, each] of batch.entries()) {
      const answer = answers[index];
      if (answer?.sealedRecordHash === '') pending.push({ ...each, sealedReplay: answer.sealedReplay });
    }
  }
  return pending;
}

/** The waiting transactions whose predecessor has another exclusive successor by now. Throws when any of the lookups fails. */
export async function findConflicting(
  ledger: Pick<Ledger, 'lookup'>,
  waiting: readonly PooledTransaction[],
): Promise<PooledTransaction[]> {
  const exclusive = waiting.filter(({ exclusivePredecessor }) => exclusivePredecessor);
  const conflicting: PooledTransaction[] = [];
  for (let at = 0; at < exclusive.length; at += lookupBatch) {
    const batch = exclusive.slice(at, at + lookupBatch);
    const queries = batch.map(({ registerId, txId: transactionId, previousTransactionId = '' }) => ({
      registerId,
      transactionId,
      previousTransactionId,
      replayKey: '',
      pin: '',
    }));
    const answers = await ledger.lookup(queries);
    const isConflicting = (successor: string, txId: string) => successor !== '' && successor !== txId;
    conflicting.push(
      ...batch.filter(({ txId }, index) => isConflicting(answers[index]?.previousSuccessor ?? '', txId)),
    );
  }
  return conflicting;
}
