import type { AppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import { failure } from '../../errors.ts';
import { nodeStorage, type Storage } from '../volume/storage.ts';
import { isDiskFull, type Volume } from '../volume/volume.ts';
import type { Entry } from './format.ts';
import { type Replay, Segments } from './segments.ts';

export interface JournalOptions {
  readonly directory: string;
  readonly segmentBytes: number;
  /** The oldest segments are deleted when all together are larger; the newest is always kept. */
  readonly retainBytes: number;
  readonly log: Logger;
  /** The local file system when absent. */
  readonly storage?: Storage | undefined;
  /** Notified when a write finds the disk full, and when space is available again. */
  readonly volume: Volume;
  /** Runs the callback after that many milliseconds, to retry a write that found the disk full. */
  schedule(ms: number, callback: () => void): void;
}

/** Collects the entries of a segment about to be deleted that must be written to segment `into`. */
export type CarryOver = (segment: number, into: number) => Entry[];

/** The number of the segment that holds the entry, known once it is on disk. */
type Appended = Promise<number>;

interface PendingAppend {
  readonly entries: readonly Entry[];
  readonly resolve: (segment: number) => void;
  readonly reject: (error: Error) => void;
}

const maxBatchBytes = 8 * 1024 * 1024;
/** Bound of entries that wait for disk space. A paused validator writes little, so a larger backlog is a fault. */
const maxPendingBytes = 64 * 1024 * 1024;
const retryMs = { first: 250, last: 5_000 } as const;

/**
 * The append-only log of one validator. Appends during a write share the next one: one write and one fdatasync for all of
 * them, after which their promises resolve. A write that finds the disk full waits until it succeeds, and all later writes
 * wait behind it. Any other write error closes the log for good: the content of the disk is then unknown until a restart
 * reads it.
 */
export class Journal {
  readonly #options: JournalOptions;
  readonly #segments: Segments;
  #waiting: PendingAppend[] = [];
  /** The batch that is being written, or that waits for disk space. */
  #taken: PendingAppend[] | undefined;
  /** The current segment is full and the next one must begin. */
  #isRotating = false;
  /** Carried-over entries of the segment to delete. They are collected once, because collecting them moves their transactions. */
  #carried: { readonly oldest: number; readonly entries: readonly Entry[] } | undefined;
  #carryOver: CarryOver | undefined;
  #writing: Promise<void> | undefined;
  #failure: Error | undefined;
  #forcedWrites = 0;
  #isSuspended = false;
  #delayMs: number = retryMs.first;

  private constructor(options: JournalOptions) {
    this.#options = options;
    this.#segments = new Segments(options.storage ?? nodeStorage(), options.directory, options.log);
  }

  /**
   * Opens the log of a directory and passes every valid entry to `replay`, oldest first. A tail that a crash cut short is
   * truncated; damage anywhere else is an error.
   * @throws AppError internal JOURNAL_DAMAGED naming file and position, unavailable JOURNAL_UNAVAILABLE on a full disk
   */
  static async open(options: JournalOptions, replay: Replay): Promise<Journal> {
    const journal = new Journal(options);
    try {
      await journal.#segments.load(replay);
    } catch (error) {
      await journal.#segments.close();
      if (!isDiskFull(error)) throw error;
      options.volume.onFull(error);
      throw unusable(error);
    }
    options.volume.onSpaceFreed();
    return journal;
  }

  /** Passes every entry on disk to the callback, oldest first. Only allowed before the first append. */
  replay(take: Replay): Promise<void> {
    return this.#segments.replay(take);
  }

  /** Allows the deletion of old segments, which the log keeps until this call. */
  allowDeletion(carryOver: CarryOver): void {
    this.#carryOver = carryOver;
  }

  get sizeBytes(): number {
    return this.#segments.sizeBytes;
  }

  /** Number of forced writes. */
  get forcedWrites(): number {
    return this.#forcedWrites;
  }

  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Resolves when the entries and all earlier ones are on disk. */
  append(...entries: Entry[]): Appended {
    if (this.#failure !== undefined) return Promise.reject(unusable(this.#failure));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entries, resolve, reject });
      if (this.#isSuspended) this.#limitPending();
      else this.#start();
    });
  }

  async close(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    if (this.#isSuspended)
      this.#fail(new Error('the log was closed while its last entries waited for disk space'));
    this.#failure ??= new Error('the log is closed');
    await this.#segments.close();
  }

  /** Appends of the same event-loop turn share the write. */
  #start(): void {
    this.#writing ??= Promise.resolve().then(() => this.#drain());
  }

  async #drain(): Promise<void> {
    while (this.#failure === undefined && this.#hasWork) {
      try {
        if (this.#isRotating) await this.#rotate();
        else await this.#writeNext();
      } catch (error) {
        if (isDiskFull(error)) {
          this.#suspend(error);
          break;
        }
        this.#fail(error instanceof Error ? error : new Error(String(error)));
      }
    }
    this.#writing = undefined;
    if (!this.#isSuspended && this.#failure === undefined) {
      this.#delayMs = retryMs.first;
      this.#options.volume.onSpaceFreed();
    }
  }

  get #hasWork(): boolean {
    return this.#isRotating || this.#taken !== undefined || this.#waiting.length > 0;
  }

  async #writeNext(): Promise<void> {
    const taken = this.#taken ?? this.#take();
    this.#taken = taken;
    await this.#write(taken.flatMap((waiting) => waiting.entries));
    this.#taken = undefined;
    for (const waiting of taken) waiting.resolve(this.#segments.current);
    this.#isRotating = this.#segments.position >= this.#options.segmentBytes;
  }

  /** All waiting appends up to a size limit, so that a batch fits into memory when it is read. */
  #take(): PendingAppend[] {
    let size = 0;
    let count = 0;
    for (const { entries } of this.#waiting) {
      size += sizeOf(entries);
      if (count > 0 && size > maxBatchBytes) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  async #write(entries: readonly Entry[]): Promise<void> {
    await this.#segments.write(entries);
    this.#forcedWrites += 1;
  }

  /** The write does not count and is retried with a growing delay. */
  #suspend(error: Error): void {
    this.#isSuspended = true;
    this.#options.volume.onFull(error);
    this.#options.schedule(this.#delayMs, () => {
      if (this.#failure !== undefined) return;
      this.#isSuspended = false;
      this.#start();
    });
    this.#delayMs = Math.min(this.#delayMs * 2, retryMs.last);
  }

  #limitPending(): void {
    let size = 0;
    for (const { entries } of this.#waiting) size += sizeOf(entries);
    if (size > maxPendingBytes) this.#fail(new Error('too many entries wait for disk space'));
  }

  #fail(error: Error): void {
    this.#failure = error;
    this.#isSuspended = false;
    this.#options.log.error(
      { err: error, segment: this.#segments.current },
      'the log cannot be written; this validator signs nothing more until it is restarted',
    );
    for (const waiting of [...(this.#taken ?? []), ...this.#waiting]) waiting.reject(unusable(error));
    this.#taken = undefined;
    this.#waiting = [];
  }

  async #rotate(): Promise<void> {
    if (this.#carried === undefined) {
      await this.#segments.begin();
      const { oldest, current, sizeBytes } = this.#segments;
      const isDue = sizeBytes > this.#options.retainBytes && oldest !== current;
      const entries = isDue ? this.#carryOver?.(oldest, current) : undefined;
      if (entries !== undefined) this.#carried = { oldest, entries };
    }
    const carried = this.#carried;
    if (carried !== undefined) {
      if (carried.entries.length > 0) await this.#write(carried.entries);
      this.#carried = undefined;
      await this.#segments.remove(carried.oldest);
    }
    this.#isRotating = false;
  }
}

function sizeOf(entries: readonly Entry[]): number {
  return entries.reduce((size, { body }) => size + body.length, 0);
}

function unusable(cause: Error): AppError {
  return failure('JOURNAL_UNAVAILABLE', { cause });
}
