import { type KeyKind, mayHold, wordsOfHex } from '#core/ledger/key-filter.ts';
import { hasExclusiveSuccessor, type PooledTransaction } from '../pool/transaction.ts';
import { GrowingFilter } from './growing-filter.ts';
import type { KeySnapshot } from './key-snapshot.ts';
import type { LookupAnswer, LookupQuery } from './lookup.ts';
import { RecentTypes } from './recent-types.ts';

/** Latest transactions whose types are known exactly, so that most predecessors are. At most twice as many are kept. */
const recentTransactions = 4_096;
/** Heights at which the number of transactions is remembered. */
const countedHeights = 64;

/** The part of a docket that has keys. */
export interface KeyedDocket {
  readonly header: { readonly docketNumber: number };
  readonly transactions: readonly KeyedTransaction[];
}

type KeyedTransaction = Pick<
  PooledTransaction,
  'txId' | 'type' | 'previousTransactionId' | 'exclusivePredecessor' | 'replayKey' | 'step'
>;

/** `stale`: dockets between the snapshot and the latest ones are missing; `divergent`: it belongs to another chain. */
export type TakeOver = 'complete' | 'stale' | 'divergent' | 'discarded';

/**
 * The keys of one register: what is not among them is certainly new. A snapshot of the register service covers the
 * dockets below a height, and a growing filter covers the latest decided dockets; the two may overlap.
 *
 * A key that is missing here would admit a duplicate, so the keys answer only while both parts together cover every docket
 * below the register's height (`covers`). A surplus key only causes a question.
 */
export class RegisterKeys {
  readonly #isGated: boolean;
  #latest: GrowingFilter | undefined;
  /** `#latest` holds the keys of the dockets from `#from` to `#next` - 1. */
  #from = 0;
  #next = 0;
  #sizes: number[] = [];
  #snapshot: KeySnapshot | undefined;
  #snapshotKeys = 0;
  #snapshotBytes = 0;
  /** Number of transactions in all dockets below a height, by height. */
  readonly #counts = new Map<number, number>();
  readonly #recent = new RecentTypes(recentTransactions);

  /** @param isGated false only in the proof that the simulator notices incomplete keys */
  constructor(isGated = true) {
    this.#isGated = isGated;
  }

  /** Nothing is held, and nothing is being loaded. */
  get isEmpty(): boolean {
    return this.#latest === undefined;
  }

  /** Memory of filters and latest ids. */
  get bytes(): number {
    return this.#snapshotBytes + (this.#latest?.bytes ?? 0) + this.#recent.bytes;
  }

  /**
   * Begins to keep the keys of decided dockets, before a snapshot is requested.
   * @param height of the register
   * @param unstored its latest dockets, which the register service may not have yet
   * @returns the load, which names it in `takeOver`
   */
  begin(height: number, unstored: readonly KeyedDocket[]): object {
    this.discard();
    const isGapless = unstored.every(
      ({ header }, index) => header.docketNumber === height - unstored.length + index,
    );
    const load = new GrowingFilter();
    this.#latest = load;
    this.#from = isGapless ? height - unstored.length : height;
    this.#next = this.#from;
    if (isGapless) for (const docket of unstored) this.add(docket);
    return load;
  }

  /**
   * Completes a load.
   * @param rootAt the log root of the register at a height in lower hex; undefined where it is not known
   */
  takeOver(load: object, snapshot: KeySnapshot, rootAt: (height: number) => string | undefined): TakeOver {
    if (this.#latest !== load) return 'discarded';
    const refused = this.#judge(snapshot, rootAt(snapshot.height));
    if (refused !== undefined) {
      this.discard();
      return refused;
    }
    this.#snapshot = snapshot;
    this.#snapshotBytes = snapshot.filters.reduce((sum, filter) => sum + filter.length, 0);
    this.#snapshotKeys = this.#snapshotBytes / 2;
    this.#counts.set(snapshot.height, snapshot.transactionCount);
    for (const [index, size] of this.#sizes.entries()) this.#count(this.#from + index, size);
    this.#sizes = [];
    return 'complete';
  }

  #judge({ height, logRoot }: KeySnapshot, root: string | undefined): TakeOver | undefined {
    if (root !== undefined && root !== logRoot) return 'divergent';
    return height < this.#from && this.#isGated ? 'stale' : undefined;
  }

  /** Adds the keys of a decided docket, in the same synchronous step that advances the register's height. */
  add({ header: { docketNumber }, transactions }: KeyedDocket): void {
    if (this.#latest === undefined) return;
    if (docketNumber !== this.#next && this.#isGated) {
      this.discard();
      return;
    }
    for (const transaction of transactions) this.#addTransaction(this.#latest, transaction);
    this.#next = docketNumber + 1;
    if (this.#snapshot === undefined) this.#sizes.push(transactions.length);
    else this.#count(docketNumber, transactions.length);
  }

  /** Drops everything. The register service answers all questions until a new snapshot is complete. */
  discard(): void {
    this.#latest = undefined;
    this.#snapshot = undefined;
    this.#snapshotKeys = 0;
    this.#snapshotBytes = 0;
    this.#sizes = [];
    this.#counts.clear();
    this.#recent.clear();
  }

  /** A load has failed. */
  abandon(load: object): void {
    if (this.#latest === load) this.discard();
  }

  /** The register continues at a height whose dockets were not all decided here. */
  skip(): void {
    if (this.#isGated) this.discard();
  }

  /** Whether every key of the dockets below a height is held. */
  covers(height: number): boolean {
    if (this.#latest === undefined || this.#snapshot === undefined) return false;
    return this.#next === height || !this.#isGated;
  }

  /**
   * Whether the register service counts as many transactions as were counted here, where that can be compared. It was
   * restored to an older state when it is behind its own snapshot.
   */
  agrees(height: number, transactionCount: number | undefined): boolean {
    if (this.#snapshot !== undefined && height < this.#snapshot.height) return false;
    const counted = this.#counts.get(height);
    return counted === undefined || transactionCount === undefined || counted === transactionCount;
  }

  /**
   * The answer about a transaction that is certainly new; undefined when only the register service can tell.
   * @param height of the register
   * @param typeHere type of the predecessor in the pool or in the same docket
   */
  answer(height: number, query: LookupQuery, typeHere: string | undefined): LookupAnswer | undefined {
    const { transactionId, previousTransactionId: previous, replayKey, pin } = query;
    // Only the register service knows publications, and the routing of a step that has left the pool.
    if (pin !== '' || (typeHere === undefined && this.#recent.isStep(previous))) return undefined;
    if (!this.covers(height) || this.#mayHold('id', transactionId)) return undefined;
    const sealedType = this.#recent.find(previous);
    const type = typeHere ?? sealedType;
    if (previous !== '' && type === undefined) return undefined;
    const isOnlySuccessor = type !== undefined && hasExclusiveSuccessor(type);
    if (isOnlySuccessor ? this.#mayHold('successor', previous) : this.#mayHold('replay', replayKey))
      return undefined;
    return {
      sealedRecordHash: '',
      previousKnown: sealedType !== undefined,
      previousType: sealedType ?? '',
      previousSuccessor: '',
      sealedReplay: '',
      previousRouting: '',
      pinKnown: false,
    };
  }

  #mayHold(kind: KeyKind, key: string): boolean {
    if (key === '') return false;
    const words = wordsOfHex(kind, key);
    if (this.#latest?.mayHold(words) === true) return true;
    return this.#snapshot?.filters.some((filter) => mayHold(filter, words)) === true;
  }

  #addTransaction(latest: GrowingFilter, transaction: KeyedTransaction): void {
    const { txId, type, replayKey, exclusivePredecessor, previousTransactionId: previous } = transaction;
    const isStep = transaction.step !== undefined;
    const addKey = (kind: KeyKind, key: string) => latest.add(wordsOfHex(kind, key), this.#snapshotKeys);
    addKey('id', txId);
    if (replayKey !== undefined) addKey('replay', replayKey);
    if (exclusivePredecessor && previous !== undefined) addKey('successor', previous);
    this.#recent.add(txId, type, isStep);
  }

  #count(docketNumber: number, transactions: number): void {
    const before = this.#counts.get(docketNumber);
    if (before === undefined) return;
    this.#counts.set(docketNumber + 1, before + transactions);
    this.#counts.delete(docketNumber - countedHeights);
  }
}
