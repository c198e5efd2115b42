import { parseTimestamp } from '#core/encoding/timestamp.ts';
import { nextTimestamp } from '../building/docket.ts';
import { judgeAlone } from '../building/overlay.ts';
import type { Pool } from '../pool/pool.ts';
import { judgeWorkflow } from '../pool/step.ts';
import type { Tombstone, Tombstones } from '../pool/tombstones.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import type { RegisterState } from '../state/state.ts';

/** Tombstones of a transaction that can no longer be sealed, and of its descendants. */
function evictionTombstones(tombstone: Tombstone, removed: readonly PooledTransaction[]): Tombstone[] {
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

/** Tombstone of a transaction whose replay key a sealed transaction has. */
export function replayTombstone(
  { registerId, txId }: PooledTransaction,
  holder: string,
  atMs: number,
): Tombstone {
  const message = `The transaction repeats ${holder}`;
  return { registerId, txId, status: 'rejected', code: 'VAL_REPLAY_001', message, atMs };
}

/** Tombstone of a transaction whose predecessor has another successor now. */
export function conflictTombstone({ registerId, txId }: PooledTransaction, atMs: number): Tombstone {
  return {
    registerId,
    txId,
    status: 'rejected',
    code: 'VAL_CHAIN_FORK',
    message: 'Another successor of the same transaction was sealed',
    atMs,
  };
}

/** Tombstones of a transaction that a sealed one supersedes, and of its descendants. */
function supersededTombstones(chain: readonly PooledTransaction[], pool: Pool, atMs: number): Tombstone[] {
  const [first] = chain;
  if (first === undefined) return [];
  const holder = first.replayKey === undefined ? undefined : pool.findReplay(first.replayKey);
  return evictionTombstones(
    holder === undefined ? conflictTombstone(first, atMs) : replayTombstone(first, holder, atMs),
    chain,
  );
}

/**
 * Tombstones of waiting transactions that the register's rules no longer admit, with the reason; among them steps whose time
 * has run out.
 */
export function inadmissibleTombstones(
  state: RegisterState,
  pool: Pick<Pool, 'waiting' | 'find'>,
  nowMs: number,
): Tombstone[] {
  if (state.height === 0) return [];
  const timestamp = nextTimestamp(state, BigInt(nowMs) * 1000n);
  const nowTicks = parseTimestamp(timestamp);
  const find = (txId: string) => pool.find(txId)?.transaction;
  const tombstones: Tombstone[] = [];
  for (const transaction of pool.waiting()) {
    const [first] = [
      ...judgeAlone(state, transaction, timestamp),
      ...judgeWorkflow(transaction, { nowTicks, find }),
    ];
    if (first === undefined || mayFitLater(first.code)) continue;
    const { registerId, txId } = transaction;
    const { code, message } = first;
    tombstones.push({ registerId, txId, status: 'rejected', code, message, atMs: nowMs });
  }
  return tombstones;
}

/** A change of the set that only lacks room in a docket at the end of a transition may fit a later docket. */
function mayFitLater(code: string): boolean {
  return code === 'VAL_PERM_016';
}

/** Removes accepted transactions of one register that can no longer be sealed. */
export class Evictions {
  readonly #pool: Pool;
  readonly #tombstones: Tombstones;
  readonly #nowMs: () => number;

  constructor(pool: Pool, tombstones: Tombstones, nowMs: () => number) {
    this.#pool = pool;
    this.#tombstones = tombstones;
    this.#nowMs = nowMs;
  }

  /** Drops a transaction and its descendants; returns their tombstones. */
  drop(tombstone: Tombstone): Tombstone[] {
    const tombstones = evictionTombstones(tombstone, this.#pool.remove(tombstone.txId));
    for (const each of tombstones) this.#tombstones.add(each, this.#nowMs());
    return tombstones;
  }

  /** Drops waiting transactions that the rules of the state no longer admit. */
  dropInadmissible(state: RegisterState): Tombstone[] {
    const found = inadmissibleTombstones(state, this.#pool, this.#nowMs());
    return found.flatMap((tombstone) => this.drop(tombstone));
  }

  /** Tombstones of transactions that the pool dropped because a sealed one supersedes them, by chain. */
  addSuperseded(dropped: readonly (readonly PooledTransaction[])[]): Tombstone[] {
    const atMs = this.#nowMs();
    const tombstones = dropped.flatMap((chain) => supersededTombstones(chain, this.#pool, atMs));
    for (const each of tombstones) this.#tombstones.add(each, atMs);
    return tombstones;
  }
}
