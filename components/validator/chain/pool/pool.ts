import { equalBytes } from '#core/encoding/text.ts';
import type { Budget } from './budget.ts';
import type { Lane, PooledTransaction } from './transaction.ts';

/** Bounds of every pool of a validator. An operator may change the first two at runtime. */
export interface PoolBounds {
  maxTransactions: number;
  maxBytes: number;
  readonly maxControlTransactions: number;
  /** Shared budget of all registers of the validator. */
  readonly budget: Budget;
}

export type PoolLimit = 'count' | 'bytes' | 'sender' | 'total';

/** waiting: may be proposed; sealing: in a decided docket that is not stored; leaving: stored, kept for duplicate detection. */
type Stage = 'waiting' | 'sealing' | 'stored';

interface Slot {
  readonly transaction: PooledTransaction;
  stage: Stage;
  /** The log segment that holds the transaction; 0 until it is on disk. */
  segment: number;
}

/** A pooled transaction, looked up as a predecessor or duplicate. */
interface PooledEntry {
  readonly transaction: PooledTransaction;
  readonly stage: Stage;
  /** 0 until it is on disk. */
  readonly segment: number;
}

/** The effect of a decided docket on a pool. */
interface SealEffect {
  /** Waiting transactions that can no longer be sealed, each followed by its descendants. */
  readonly dropped: readonly (readonly PooledTransaction[])[];
  /** The docket's transactions that were not in this pool. */
  readonly added: readonly PooledTransaction[];
}

/**
 * The mempool of one register: two lanes, first in first out, bounded by count, bytes and sender. Stored transactions are kept
 * until every admission that began earlier has ended, because its lookup may have been answered before the docket was stored.
 */
export class Pool {
  readonly #bounds: Readonly<PoolBounds>;
  readonly #maxPerSender: () => number;
  readonly #slots = new Map<string, Slot>();
  readonly #lanes: Record<Lane, Set<PooledTransaction>> = { control: new Set(), action: new Set() };
  readonly #senders = new Map<string, number>();
  readonly #successors = new Map<string, string>();
  readonly #replays = new Map<string, string>();
  readonly #stored: { readonly epoch: number; readonly txIds: readonly string[] }[] = [];
  #bytes = 0;
  #heldBytes = 0;
  #latestAtMs = Number.NEGATIVE_INFINITY;

  /** @param maxPerSender a policy of the register, which may change */
  constructor(bounds: Readonly<PoolBounds>, maxPerSender: () => number) {
    this.#bounds = bounds;
    this.#maxPerSender = maxPerSender;
  }

  /** Transactions that may be proposed. */
  get size(): number {
    return this.#lanes.control.size + this.#lanes.action.size;
  }

  /** Number of waiting genesis and control transactions. */
  get controlSize(): number {
    return this.#lanes.control.size;
  }

  /** Bound of waiting Action transactions. */
  get maxSize(): number {
    return this.#bounds.maxTransactions;
  }

  /** Arrival of the oldest waiting transaction; undefined when the pool is empty. */
  get oldestAtMs(): number | undefined {
    const heads = Object.values(this.#lanes).flatMap((lane) => lane.values().next().value?.addedAtMs ?? []);
    return heads.length === 0 ? undefined : Math.min(...heads);
  }

  /** Latest arrival of any transaction. */
  get latestAtMs(): number {
    return this.#latestAtMs;
  }

  /** Bytes of waiting transactions. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes of waiting transactions and of those being sealed. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  get isEmpty(): boolean {
    return this.#slots.size === 0;
  }

  find(txId: string): PooledEntry | undefined {
    return this.#slots.get(txId);
  }

  /** A transaction that is decided and still here. */
  findDecided(txId: string): PooledTransaction | undefined {
    const slot = this.#slots.get(txId);
    return slot === undefined || slot.stage === 'waiting' ? undefined : slot.transaction;
  }

  /** The pooled successor of a predecessor that may have only one. */
  findSuccessor(txId: string): string | undefined {
    return this.#successors.get(txId);
  }

  /** The pooled transaction with a replay key. */
  findReplay(replayKey: string): string | undefined {
    return this.#replays.get(replayKey);
  }

  /** The bound that a transaction would exceed; undefined when it fits. Genesis and control have a bound of their own. */
  exceededLimit(lane: Lane, sender: string, sizeBytes: number): PoolLimit | undefined {
    const { maxTransactions, maxControlTransactions, maxBytes, budget } = this.#bounds;
    if (lane === 'control') {
      return this.#lanes.control.size >= maxControlTransactions ? 'count' : undefined;
    }
    if (this.#lanes.action.size >= maxTransactions) return 'count';
    if (this.#heldBytes + sizeBytes > maxBytes) return 'bytes';
    if (!budget.fits(sizeBytes)) return 'total';
    return (this.#senders.get(sender) ?? 0) >= this.#maxPerSender() ? 'sender' : undefined;
  }

  add(transaction: PooledTransaction): void {
    this.#slots.set(transaction.txId, { transaction, stage: 'waiting', segment: 0 });
    this.#addToLane(transaction);
    this.#suspend(transaction.sizeBytes);
    this.#latestAtMs = Math.max(this.#latestAtMs, transaction.addedAtMs);
    if (transaction.exclusivePredecessor && transaction.previousTransactionId !== undefined) {
      this.#successors.set(transaction.previousTransactionId, transaction.txId);
    }
    const { replayKey, txId } = transaction;
    if (replayKey !== undefined && !this.#replays.has(replayKey)) this.#replays.set(replayKey, txId);
  }

  /** Records the log segment that holds a transaction. */
  setSegment(txId: string, segment: number): void {
    const slot = this.#slots.get(txId);
    if (slot !== undefined) slot.segment = segment;
  }

  /** The transactions in a log segment about to be deleted, which move to another segment. */
  *moveSegment(segment: number, into: number): Iterable<PooledTransaction> {
    for (const slot of this.#slots.values()) {
      if (slot.segment !== segment || slot.stage === 'stored') continue;
      slot.segment = into;
      yield slot.transaction;
    }
  }

  /** Waiting transactions, control before action, oldest first. */
  *waiting(): Iterable<PooledTransaction> {
    yield* this.#lanes.control;
    yield* this.#lanes.action;
  }

  /**
   * Marks the transactions of a decided docket, whether they waited here or not. A conflicting waiting transaction is removed:
   * a different record of the same id, another exclusive successor, or the same replay key. Returns the removed ones and those
   * that were not in this pool.
   */
  seal(transactions: readonly PooledTransaction[]): SealEffect {
    const dropped: PooledTransaction[][] = [];
    const added: PooledTransaction[] = [];
    for (const transaction of transactions) {
      const { txId } = transaction;
      const slot = this.#slots.get(txId);
      if (slot !== undefined && slot.stage !== 'waiting') continue;
      if (slot !== undefined) this.#removeWaiting(slot);
      const isSame = slot !== undefined && equalBytes(slot.transaction.leaf, transaction.leaf);
      if (!isSame) added.push(transaction);
      this.#slots.set(txId, { transaction, stage: 'sealing', segment: isSame ? slot.segment : 0 });
      this.#suspend(transaction.sizeBytes);
      dropped.push(this.#setSuccessor(transaction), this.#setReplayHolder(transaction));
    }
    return { dropped: dropped.filter((chain) => chain.length > 0), added };
  }

  /** Makes the transaction the exclusive successor of its predecessor and removes a waiting conflicting one. */
  #setSuccessor({ txId, previousTransactionId: previous, exclusivePredecessor }: PooledTransaction) {
    if (!exclusivePredecessor || previous === undefined) return [];
    const conflicting = this.#successors.get(previous);
    const removed = conflicting === undefined || conflicting === txId ? [] : this.remove(conflicting);
    this.#successors.set(previous, txId);
    return removed;
  }

  /** Makes the transaction the holder of its replay key and removes a waiting conflicting one. */
  #setReplayHolder({ txId, replayKey }: PooledTransaction) {
    if (replayKey === undefined) return [];
    const conflicting = this.#replays.get(replayKey);
    const removed = conflicting === undefined || conflicting === txId ? [] : this.remove(conflicting);
    this.#replays.set(replayKey, txId);
    return removed;
  }

  /** Marks transactions as stored; they are kept until admissions up to this epoch have ended. */
  markStored(txIds: readonly string[], epoch: number): void {
    for (const txId of txIds) {
      const slot = this.#slots.get(txId);
      if (slot === undefined || slot.stage === 'stored') continue;
      if (slot.stage === 'waiting') this.#removeFromLane(slot.transaction);
      slot.stage = 'stored';
      this.#suspend(-slot.transaction.sizeBytes);
    }
    this.#stored.push({ epoch, txIds });
  }

  /** Forgets transactions that were stored before every admission still in progress. */
  forgetStored(oldestActiveEpoch: number): void {
    while ((this.#stored[0]?.epoch ?? Number.POSITIVE_INFINITY) < oldestActiveEpoch) {
      for (const txId of this.#stored.shift()?.txIds ?? []) this.#forget(txId);
    }
  }

  /** Removes a waiting transaction together with its descendants, which are returned with it. */
  remove(txId: string): PooledTransaction[] {
    const removed: PooledTransaction[] = [];
    const open = [txId];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const slot = this.#slots.get(next);
      if (slot?.stage !== 'waiting') continue;
      removed.push(slot.transaction);
      this.#removeFromLane(slot.transaction);
      this.#suspend(-slot.transaction.sizeBytes);
      this.#forget(next);
      open.push(...this.#children(next));
    }
    return removed;
  }

  /** Waiting transactions that have expired. */
  expired(nowMs: number): PooledTransaction[] {
    return [...this.waiting()].filter((transaction) => transaction.expiresAtMs <= nowMs);
  }

  #suspend(bytes: number): void {
    this.#heldBytes += bytes;
    this.#bounds.budget.hold(bytes);
  }

  #removeWaiting({ transaction }: Slot): void {
    this.#removeFromLane(transaction);
    this.#suspend(-transaction.sizeBytes);
  }

  #children(txId: string): string[] {
    return [...this.waiting()].flatMap((each) => (each.previousTransactionId === txId ? each.txId : []));
  }

  #addToLane(transaction: PooledTransaction): void {
    this.#lanes[transaction.lane].add(transaction);
    this.#bytes += transaction.sizeBytes;
    const sender = transaction.senderAddress;
    this.#senders.set(sender, (this.#senders.get(sender) ?? 0) + 1);
  }

  #removeFromLane(transaction: PooledTransaction): void {
    this.#lanes[transaction.lane].delete(transaction);
    this.#bytes -= transaction.sizeBytes;
    const sender = transaction.senderAddress;
    const left = (this.#senders.get(sender) ?? 1) - 1;
    if (left > 0) this.#senders.set(sender, left);
    else this.#senders.delete(sender);
  }

  #forget(txId: string): void {
    const slot = this.#slots.get(txId);
    if (slot === undefined) return;
    this.#slots.delete(txId);
    const { previousTransactionId: previous, replayKey } = slot.transaction;
    if (replayKey !== undefined && this.#replays.get(replayKey) === txId) this.#replays.delete(replayKey);
    if (previous !== undefined && this.#successors.get(previous) === txId) this.#successors.delete(previous);
  }
}
