import { nextTimestamp } from '../building/docket.ts';
import { judgeAlone } from '../building/overlay.ts';
import type { Tombstone } from '../log/entries.ts';
import type { Pool } from '../pool/pool.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import type { RegisterState } from './state.ts';

/** Tombstones of a transaction that will never be sealed and of its descendants, which go the same way. */
export function buried(tombstone: Tombstone, removed: readonly PooledTransaction[]): Tombstone[] {
  return removed.map(({ txId }) =>
    txId === tombstone.txId
      ? tombstone
      : {
          ...tombstone,
          txId,
          status: 'rejected',
          code: 'VAL_CHAIN_001',
          message: `The previous transaction ${tombstone.txId} is ${tombstone.status}`,
        },
  );
}

/** What a decided docket has shut out: it repeats a sealed transaction. */
export function repeated({ registerId, txId }: PooledTransaction, holder: string, atMs: number): Tombstone {
  const message = `The transaction repeats ${holder}`;
  return { registerId, txId, status: 'rejected', code: 'VAL_REPLAY_001', message, atMs };
}

/** What a decided docket has shut out: it follows a transaction that has another successor now. */
export function shutOut({ registerId, txId }: PooledTransaction, atMs: number): Tombstone {
  return {
    registerId,
    txId,
    status: 'rejected',
    code: 'VAL_CHAIN_FORK',
    message: 'Another successor of the same transaction was sealed',
    atMs,
  };
}

/** A transaction in whose place another one was sealed, and its descendants. */
export function outdone(line: readonly PooledTransaction[], pool: Pool, atMs: number): Tombstone[] {
  const [first] = line;
  if (first === undefined) return [];
  const holder = first.replayKey === undefined ? undefined : pool.findReplay(first.replayKey);
  return buried(holder === undefined ? shutOut(first, atMs) : repeated(first, holder, atMs), line);
}

/** What waits and the rules of the register no longer let in, each with the reason. */
export function ruledOut(
  state: RegisterState,
  waiting: Iterable<PooledTransaction>,
  nowMs: number,
): Tombstone[] {
  if (state.height === 0) return [];
  const timestamp = nextTimestamp(state, BigInt(nowMs) * 1000n);
  const tombstones: Tombstone[] = [];
  for (const transaction of waiting) {
    const [first] = judgeAlone(state, transaction, timestamp);
    if (first === undefined || mayFitLater(first.code)) continue;
    const { registerId, txId } = transaction;
    const { code, message } = first;
    tombstones.push({ registerId, txId, status: 'rejected', code, message, atMs: nowMs });
  }
  return tombstones;
}

/** Dockets that only the end of a transition fills have no room for another change of the set. */
function mayFitLater(code: string): boolean {
  return code === 'VAL_PERM_016';
}
