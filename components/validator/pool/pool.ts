import { equalBytes } from '#core/encoding/text.ts';
import type { Budget } from './budget.ts';
import type { Lane, PooledTransaction } from './transaction.ts';

/** Bounds of every pool of a validator. An operator may change the first two at run time. */
export interface PoolBounds {
  maxTransactions: number;
  maxBytes: number;
  readonly maxControlTransactions: number;
  /** What all registers of the validator may hold together. */
  readonly budget: Budget;
}

export type Full = 'count' | 'bytes' | 'sender' | 'total';

/** waiting: may be proposed; sealing: in a docket that is decided and not stored; leaving: stored, still remembered. */
type Stage = 'waiting' | 'sealing' | 'leaving';

interface Slot {
  readonly transaction: PooledTransaction;
  stage: Stage;
  /** The log segment that holds it; 0 until it is on disk. */
  segment: number;
}

/** A sealed or waiting transaction as a predecessor or duplicate. */
export interface Known {
  readonly transaction: PooledTransaction;
  readonly stage: Stage;
  /** 0 while it is on its way to the disk. */
  readonly segment: number;
}

/** What a decided docket does to a pool. */
export interface Sealing {
  /** Waited here and can no longer be sealed, each in front of its descendants. */
  readonly dropped: readonly (readonly PooledTransaction[])[];
  /** Of the docket's transactions, those that were not known here. */
  readonly fresh: readonly PooledTransaction[];
}

/**
 * What one register waits to seal: two lanes, first in first out, bounded by count, bytes and sender. Transactions stay
 * known after they were stored until every admission that began before has ended, because the answer such an admission
 * got from the register may be older than the docket.
 */
export class Pool {
  readonly #bounds: Readonly<PoolBounds>;
  readonly #maxPerSender: () => number;
  readonly #slots = new Map<string, Slot>();
  readonly #lanes: Record<Lane, Set<PooledTransaction>> = { control: new Set(), action: new Set() };
  readonly #senders = new Map<string, number>();
  readonly #successors = new Map<string, string>();
  readonly #replays = new Map<string, string>();
  readonly #leaving: { readonly serial: number; readonly txIds: readonly string[] }[] = [];
  #bytes = 0;
  #heldBytes = 0;

  /** @param maxPerSender a policy of the register, which may change */
  constructor(bounds: Readonly<PoolBounds>, maxPerSender: () => number) {
    this.#bounds = bounds;
    this.#maxPerSender = maxPerSender;
  }

  /** Transactions that may be proposed. */
  get size(): number {
    return this.#lanes.control.size + this.#lanes.action.size;
  }

  /** Of those, genesis and control transactions. */
  get controlSize(): number {
    return this.#lanes.control.size;
  }

  /** Most Action transactions that may wait. */
  get maxSize(): number {
    return this.#bounds.maxTransactions;
  }

  /** When the oldest transaction that waits came; undefined when none does. */
  get oldestAtMs(): number | undefined {
    const heads = Object.values(this.#lanes).flatMap((lane) => lane.values().next().value?.addedAtMs ?? []);
    return heads.length === 0 ? undefined : Math.min(...heads);
  }

  /** Bytes of what may be proposed. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes of what may be proposed and of what is being sealed. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  get isEmpty(): boolean {
    return this.#slots.size === 0;
  }

  find(txId: string): Known | undefined {
    return this.#slots.get(txId);
  }

  /** The successor that a predecessor has here, when it may have only one. */
  findSuccessor(txId: string): string | undefined {
    return this.#successors.get(txId);
  }

  /** The transaction here that has a replay key. */
  findReplay(replayKey: string): string | undefined {
    return this.#replays.get(replayKey);
  }

  /** Why a transaction does not fit; undefined when it does. Genesis and control count against their own bound. */
  isFullFor(lane: Lane, sender: string, sizeBytes: number): Full | undefined {
    const { maxTransactions, maxControlTransactions, maxBytes, budget } = this.#bounds;
    if (lane === 'control') {
      return this.#lanes.control.size >= maxControlTransactions ? 'count' : undefined;
    }
    if (this.#lanes.action.size >= maxTransactions) return 'count';
    if (this.#heldBytes + sizeBytes > maxBytes) return 'bytes';
    if (!budget.hasRoomFor(sizeBytes)) return 'total';
    return (this.#senders.get(sender) ?? 0) >= this.#maxPerSender() ? 'sender' : undefined;
  }

  add(transaction: PooledTransaction): void {
    this.#slots.set(transaction.txId, { transaction, stage: 'waiting', segment: 0 });
    this.#enter(transaction);
    this.#hold(transaction.sizeBytes);
    if (transaction.exclusivePredecessor && transaction.previousTransactionId !== undefined) {
      this.#successors.set(transaction.previousTransactionId, transaction.txId);
    }
    const { replayKey, txId } = transaction;
    if (replayKey !== undefined && !this.#replays.has(replayKey)) this.#replays.set(replayKey, txId);
  }

  /** Remembers in which log segment a transaction lives. */
  place(txId: string, segment: number): void {
    const slot = this.#slots.get(txId);
    if (slot !== undefined) slot.segment = segment;
  }

  /** What lives in a log segment that goes; from now on it lives in another one. */
  *moveSegment(segment: number, into: number): Iterable<PooledTransaction> {
    for (const slot of this.#slots.values()) {
      if (slot.segment !== segment || slot.stage === 'leaving') continue;
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
   * They are in a decided docket, whether they waited here or not. What waited in the place of one of them, another record
   * of that id, another successor, or a repetition, gives way. Returns what can no longer be sealed, and what was not known here.
   */
  seal(transactions: readonly PooledTransaction[]): Sealing {
    const dropped: PooledTransaction[][] = [];
    const fresh: PooledTransaction[] = [];
    for (const transaction of transactions) {
      const { txId } = transaction;
      const slot = this.#slots.get(txId);
      if (slot !== undefined && slot.stage !== 'waiting') continue;
      if (slot !== undefined) this.#takeOut(slot);
      const isSame = slot !== undefined && equalBytes(slot.transaction.leaf, transaction.leaf);
      if (!isSame) fresh.push(transaction);
      this.#slots.set(txId, { transaction, stage: 'sealing', segment: isSame ? slot.segment : 0 });
      this.#hold(transaction.sizeBytes);
      dropped.push(this.#succeed(transaction), this.#repeat(transaction));
    }
    return { dropped: dropped.filter((line) => line.length > 0), fresh };
  }

  /** Makes it the one successor of its predecessor; another one that waits goes. */
  #succeed({ txId, previousTransactionId: previous, exclusivePredecessor }: PooledTransaction) {
    if (!exclusivePredecessor || previous === undefined) return [];
    const rival = this.#successors.get(previous);
    const removed = rival === undefined || rival === txId ? [] : this.remove(rival);
    this.#successors.set(previous, txId);
    return removed;
  }

  /** Makes it the one that has its replay key; another one that waits goes. */
  #repeat({ txId, replayKey }: PooledTransaction) {
    if (replayKey === undefined) return [];
    const rival = this.#replays.get(replayKey);
    const removed = rival === undefined || rival === txId ? [] : this.remove(rival);
    this.#replays.set(replayKey, txId);
    return removed;
  }

  /** They are stored; remembered until admissions up to `serial` have ended. */
  markStored(txIds: readonly string[], serial: number): void {
    for (const txId of txIds) {
      const slot = this.#slots.get(txId);
      if (slot === undefined || slot.stage === 'leaving') continue;
      if (slot.stage === 'waiting') this.#leaveLane(slot.transaction);
      slot.stage = 'leaving';
      this.#hold(-slot.transaction.sizeBytes);
    }
    this.#leaving.push({ serial, txIds });
  }

  /** Forgets what was stored before every admission that is still under way. */
  forgetStored(oldestActiveSerial: number): void {
    while ((this.#leaving[0]?.serial ?? Number.POSITIVE_INFINITY) < oldestActiveSerial) {
      for (const txId of this.#leaving.shift()?.txIds ?? []) this.#forget(txId);
    }
  }

  /** Takes a waiting transaction out; what descends from it goes too and is returned with it. */
  remove(txId: string): PooledTransaction[] {
    const removed: PooledTransaction[] = [];
    const open = [txId];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const slot = this.#slots.get(next);
      if (slot?.stage !== 'waiting') continue;
      removed.push(slot.transaction);
      this.#leaveLane(slot.transaction);
      this.#hold(-slot.transaction.sizeBytes);
      this.#forget(next);
      open.push(...this.#children(next));
    }
    return removed;
  }

  /** Waiting transactions whose time is over. */
  expired(nowMs: number): PooledTransaction[] {
    return [...this.waiting()].filter((transaction) => transaction.expiresAtMs <= nowMs);
  }

  #hold(bytes: number): void {
    this.#heldBytes += bytes;
    this.#bounds.budget.hold(bytes);
  }

  #takeOut({ transaction }: Slot): void {
    this.#leaveLane(transaction);
    this.#hold(-transaction.sizeBytes);
  }

  #children(txId: string): string[] {
    return [...this.waiting()].flatMap((each) => (each.previousTransactionId === txId ? each.txId : []));
  }

  #enter(transaction: PooledTransaction): void {
    this.#lanes[transaction.lane].add(transaction);
    this.#bytes += transaction.sizeBytes;
    const sender = transaction.senderAddress;
    this.#senders.set(sender, (this.#senders.get(sender) ?? 0) + 1);
  }

  #leaveLane(transaction: PooledTransaction): void {
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
