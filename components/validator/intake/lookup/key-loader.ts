import { isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Scheduler } from '#kit/clock/timers.ts';
import type { Logger } from '#kit/log/log.ts';
import { collectKeys, type KeySnapshot } from '../../chain/keys/key-snapshot.ts';
import type { RegisterKeys, TakeOver } from '../../chain/keys/register-keys.ts';
import type { Ledger, RegisterFacts, SealedDocket } from '../../chain/sealing/ports.ts';

/** Outcome of a load, or the reason why keys were dropped. */
export type KeyEvent = TakeOver | 'failed' | 'mismatch' | 'idle' | 'room';

interface KeyLoaderOptions {
  readonly ledger: Pick<Ledger, 'readKeys'>;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly log: Logger;
  /** Bound of the memory of all keys. */
  readonly maxBytes: number;
  /** Questions about a register from which its keys are loaded. */
  readonly leastQuestions?: number | undefined;
  onEvent(event: KeyEvent): void;
}

/** A register with its keys. */
interface KeyedRegister {
  readonly id: string;
  readonly keys: RegisterKeys;
  readonly state: { readonly height: number };
  /** Dockets that are decided and not known to be stored. */
  readonly unstored: readonly SealedDocket[];
  /** Log root of the register at one of its latest heights. */
  rootAt(height: number): string | undefined;
}

interface Entry {
  readonly register: KeyedRegister;
  usedAtMs: number;
  questions: number;
  /** No load before this time. */
  retryAtMs: number;
  /** Wait after the next load that is not complete. */
  retryWaitMs: number;
  /** The last snapshot was complete at this time. */
  loadedAtMs: number;
  isQueued: boolean;
}

/** A load reads up to a segment of keys at the register service, which is too much for a register that is hardly used. */
const leastQuestions = 16;
const idleMs = 5 * 60_000;
/** A register used within this time keeps its keys: with more registers than room they would evict each other. */
const busyMs = 60_000;
const sweepMs = 30_000;
/** Wait after a load that is not complete; it doubles with each further one, since a load is expensive. */
const retryMs = 10_000;
/** Longest wait; also that for keys that do not fit, and for register services of an earlier version. */
const retryLaterMs = 5 * 60_000;
const loadTimeoutMs = 10 * 60_000;

/**
 * Loads the keys of registers in use from the register service, one register at a time and in the background, and drops
 * those of idle registers. Memory is bounded; the least recently used register gives way.
 */
export class KeyLoader {
  readonly #options: KeyLoaderOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #queue: Entry[] = [];
  readonly #stopped = new AbortController();
  #isLoading = false;
  #pendingBytes = 0;

  constructor(options: KeyLoaderOptions) {
    this.#options = options;
  }

  /** Memory of all keys. */
  get bytes(): number {
    let sum = this.#pendingBytes;
    for (const { register } of this.#entries.values()) sum += register.keys.bytes;
    return sum;
  }

  /** A question about the register is about to be answered. */
  used(register: KeyedRegister): void {
    const nowMs = this.#options.clock.nowMs();
    const entry = this.#entryOf(register);
    entry.usedAtMs = nowMs;
    entry.questions += 1;
    const isWanted = register.keys.isEmpty && !entry.isQueued && nowMs >= entry.retryAtMs;
    if (!isWanted || entry.questions < (this.#options.leastQuestions ?? leastQuestions)) return;
    entry.isQueued = true;
    this.#queue.push(entry);
    this.#loadNext();
  }

  /**
   * The register service tells its state of a register: keys that do not agree with it are dropped.
   * @param askedAtMs an answer may be older than the snapshot
   */
  learned(
    {
      registerId,
      height,
      transactionCount,
    }: Pick<RegisterFacts, 'registerId' | 'height' | 'transactionCount'>,
    askedAtMs: number,
  ): void {
    const entry = this.#entries.get(registerId);
    if (entry === undefined || askedAtMs <= entry.loadedAtMs) return;
    if (entry.register.keys.agrees(height, transactionCount)) return;
    this.#options.log.error(
      { registerId, height, transactionCount },
      'the register service is behind its snapshot of keys or counts other transactions than this validator; the keys of the register are read again',
    );
    this.#drop(entry, 'mismatch');
  }

  stop(): void {
    this.#stopped.abort();
  }

  #entryOf(register: KeyedRegister): Entry {
    const known = this.#entries.get(register.id);
    if (known?.register === register) return known;
    if (this.#entries.size === 0) this.#sweepLater();
    const entry = {
      register,
      usedAtMs: 0,
      questions: 0,
      retryAtMs: 0,
      retryWaitMs: retryMs,
      loadedAtMs: 0,
      isQueued: false,
    };
    this.#entries.set(register.id, entry);
    return entry;
  }

  #loadNext(): void {
    if (this.#isLoading || this.#stopped.signal.aborted) return;
    const entry = this.#queue.shift();
    if (entry === undefined) return;
    this.#isLoading = true;
    void this.#load(entry).then((event) => {
      this.#isLoading = false;
      this.#pendingBytes = 0;
      entry.isQueued = false;
      this.#options.onEvent(event);
      this.#loadNext();
    });
  }

  /** Never rejects. */
  async #load(entry: Entry): Promise<TakeOver | 'failed'> {
    const { clock, log } = this.#options;
    const { register } = entry;
    const dockets = register.unstored.map(({ docket }) => docket);
    const load = register.keys.begin(register.state.height, dockets);
    let outcome: TakeOver | 'failed' = 'failed';
    let waitMs = entry.retryWaitMs;
    try {
      const snapshot = await this.#read(register.id);
      outcome = register.keys.takeOver(load, snapshot, (height) => register.rootAt(height));
      if (outcome !== 'complete')
        log.warn(
          { registerId: register.id, height: snapshot.height, outcome, retryInMs: waitMs },
          'a snapshot of keys is not used',
        );
    } catch (error) {
      register.keys.abandon(load);
      if (isLasting(error)) waitMs = retryLaterMs;
      log.warn(
        { err: error, registerId: register.id, retryInMs: waitMs },
        'the keys of a register could not be read; the register service is asked about each transaction',
      );
    }
    const isComplete = outcome === 'complete';
    if (isComplete) entry.loadedAtMs = clock.nowMs();
    else entry.retryAtMs = clock.nowMs() + waitMs;
    entry.retryWaitMs = isComplete ? retryMs : Math.min(2 * entry.retryWaitMs, retryLaterMs);
    return outcome;
  }

  async #read(registerId: string): Promise<KeySnapshot> {
    const { ledger, scheduler } = this.#options;
    const late = new AbortController();
    scheduler.set('keys/load', loadTimeoutMs, () => late.abort());
    const signal = AbortSignal.any([this.#stopped.signal, late.signal]);
    try {
      return await collectKeys(ledger.readKeys(registerId, signal), (bytes) => {
        this.#pendingBytes = 0;
        const fits = this.#makeRoom(bytes);
        this.#pendingBytes = bytes;
        return fits;
      });
    } finally {
      scheduler.clear('keys/load');
    }
  }

  /** Drops the keys of registers that are not busy, least recently used first, until so many bytes fit. */
  #makeRoom(bytes: number): boolean {
    const { maxBytes, clock } = this.#options;
    const busyFromMs = clock.nowMs() - busyMs;
    const oldestFirst = [...this.#entries.values()].toSorted((a, b) => a.usedAtMs - b.usedAtMs);
    for (const entry of oldestFirst) {
      if (this.bytes + bytes <= maxBytes) break;
      if (entry.usedAtMs < busyFromMs && !entry.isQueued && !entry.register.keys.isEmpty)
        this.#drop(entry, 'room');
    }
    return this.bytes + bytes <= maxBytes;
  }

  #drop(entry: Entry, event: KeyEvent): void {
    entry.register.keys.discard();
    entry.questions = 0;
    this.#options.onEvent(event);
  }

  #sweepLater(): void {
    this.#options.scheduler.set('keys', sweepMs, () => this.#sweep());
  }

  #sweep(): void {
    const { clock, maxBytes } = this.#options;
    const idleFromMs = clock.nowMs() - idleMs;
    for (const [registerId, entry] of this.#entries) {
      if (entry.usedAtMs >= idleFromMs || entry.isQueued) continue;
      if (!entry.register.keys.isEmpty) this.#drop(entry, 'idle');
      this.#entries.delete(registerId);
    }
    const oldestFirst = [...this.#entries.values()].toSorted((a, b) => a.usedAtMs - b.usedAtMs);
    for (const entry of oldestFirst) {
      if (this.bytes <= maxBytes) break;
      if (entry.isQueued || entry.register.keys.isEmpty) continue;
      this.#drop(entry, 'room');
      entry.retryAtMs = clock.nowMs() + retryLaterMs;
    }
    if (this.#entries.size > 0) this.#sweepLater();
  }
}

/** The keys do not fit, or the register service is of an earlier version or has a fault. */
function isLasting(error: unknown): boolean {
  return isAppError(error, 'internal') || (isAppError(error) && error.code === 'KEYS_TOO_LARGE');
}
