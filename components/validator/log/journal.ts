import { AppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Entry } from './format.ts';
import { type Replay, Segments } from './segments.ts';
import { nodeStorage, type Storage } from './storage.ts';
import { isNoRoom, type Volume } from './volume.ts';

export interface JournalOptions {
  readonly directory: string;
  readonly segmentBytes: number;
  /** Oldest segments go when all of them together are larger; the newest one always stays. */
  readonly retainBytes: number;
  readonly log: Logger;
  /** The file system of the machine when absent. */
  readonly storage?: Storage | undefined;
  /** Told when there is no room for a write, and when there is again. */
  readonly volume: Volume;
  /** Acts once after that many milliseconds: a write that found no room is tried again. */
  later(ms: number, act: () => void): void;
  /** What of a segment that is about to go must live on, in segment `into`; undefined when nothing may go yet. */
  carry(segment: number, into: number): Entry[] | undefined;
}

/** The number of the segment an entry went to, known once it is on disk. */
export type Appended = Promise<number>;

interface Waiting {
  readonly entries: readonly Entry[];
  readonly resolve: (segment: number) => void;
  readonly reject: (error: Error) => void;
}

const largestBatchBytes = 8 * 1024 * 1024;
/** A validator that is paused says next to nothing; one that has so much to say is not. */
const mostHeldBytes = 64 * 1024 * 1024;
const retryMs = { first: 250, last: 5_000 } as const;

/**
 * The append-only log of one validator (decision D16). Appends made while a write is under way share the next one: one
 * write and one fdatasync for all of them, after which their promises resolve. A write without room waits, and all others
 * behind it, until it succeeds. A write that fails otherwise closes the log for good: what is on disk is then unknown, and
 * only a restart reads it.
 */
export class Journal {
  readonly #options: JournalOptions;
  readonly #segments: Segments;
  #waiting: Waiting[] = [];
  /** What is being written, or was when there was no room. */
  #taken: Waiting[] | undefined;
  /** The current segment is full, another one must begin. */
  #isRotating = false;
  /** What must live on of a segment that goes: gathered once, because gathering it moves it. */
  #carried: { readonly oldest: number; readonly entries: readonly Entry[] } | undefined;
  #writing: Promise<void> | undefined;
  #failure: Error | undefined;
  #forces = 0;
  #isHeld = false;
  #delayMs: number = retryMs.first;

  private constructor(options: JournalOptions) {
    this.#options = options;
    this.#segments = new Segments(options.storage ?? nodeStorage(), options.directory, options.log);
  }

  /**
   * Opens the log of a directory and hands every whole batch to `replay`, oldest first. A tail that a crash cut short is
   * removed; damage anywhere else is refused.
   * @throws AppError internal JOURNAL_DAMAGED naming file and position, unavailable JOURNAL_UNAVAILABLE without room
   */
  static async open(options: JournalOptions, replay: Replay): Promise<Journal> {
    const journal = new Journal(options);
    try {
      await journal.#segments.load(replay);
    } catch (error) {
      await journal.#segments.close();
      if (!isNoRoom(error)) throw error;
      options.volume.filled(error);
      throw unusable(error);
    }
    options.volume.freed();
    return journal;
  }

  /** Hands every entry that is on disk to `take`, oldest first. For the time before the first append. */
  replay(take: Replay): Promise<void> {
    return this.#segments.replay(take);
  }

  get sizeBytes(): number {
    return this.#segments.sizeBytes;
  }

  /** Forced writes so far. */
  get forces(): number {
    return this.#forces;
  }

  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Resolves when the entries, and all entries appended before them, are on disk. */
  append(...entries: Entry[]): Appended {
    if (this.#failure !== undefined) return Promise.reject(unusable(this.#failure));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entries, resolve, reject });
      if (this.#isHeld) this.#boundHeld();
      else this.#start();
    });
  }

  async close(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    if (this.#isHeld) this.#fail(new Error('the log was closed without room for its last entries'));
    this.#failure ??= new Error('the log is closed');
    await this.#segments.close();
  }

  /** What is appended in the same turn shares the write. */
  #start(): void {
    this.#writing ??= Promise.resolve().then(() => this.#drain());
  }

  async #drain(): Promise<void> {
    while (this.#failure === undefined && this.#hasWork) {
      try {
        if (this.#isRotating) await this.#rotate();
        else await this.#writeNext();
      } catch (error) {
        if (isNoRoom(error)) {
          this.#hold(error);
          break;
        }
        this.#fail(error instanceof Error ? error : new Error(String(error)));
      }
    }
    this.#writing = undefined;
    if (!this.#isHeld && this.#failure === undefined) {
      this.#delayMs = retryMs.first;
      this.#options.volume.freed();
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

  /** Everything that waits, up to a size that keeps one batch readable at once. */
  #take(): Waiting[] {
    let size = 0;
    let count = 0;
    for (const { entries } of this.#waiting) {
      size += sizeOf(entries);
      if (count > 0 && size > largestBatchBytes) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  async #write(entries: readonly Entry[]): Promise<void> {
    await this.#segments.write(entries);
    this.#forces += 1;
  }

  /** Nothing of the write counts; it is tried again, later each time. */
  #hold(error: Error): void {
    this.#isHeld = true;
    this.#options.volume.filled(error);
    this.#options.later(this.#delayMs, () => {
      if (this.#failure !== undefined) return;
      this.#isHeld = false;
      this.#start();
    });
    this.#delayMs = Math.min(this.#delayMs * 2, retryMs.last);
  }

  #boundHeld(): void {
    let size = 0;
    for (const { entries } of this.#waiting) size += sizeOf(entries);
    if (size > mostHeldBytes) this.#fail(new Error('too much waits for room on the disk'));
  }

  #fail(error: Error): void {
    this.#failure = error;
    this.#isHeld = false;
    this.#options.log.error(
      { err: error, segment: this.#segments.current },
      'the log cannot be written: nothing more is signed here until the validator is started again',
    );
    for (const waiting of [...(this.#taken ?? []), ...this.#waiting]) waiting.reject(unusable(error));
    this.#taken = undefined;
    this.#waiting = [];
  }

  async #rotate(): Promise<void> {
    const { retainBytes, carry } = this.#options;
    if (this.#carried === undefined) {
      await this.#segments.begin();
      const { oldest, current, sizeBytes } = this.#segments;
      const entries = sizeBytes <= retainBytes || oldest === current ? undefined : carry(oldest, current);
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
  return new AppError('unavailable', 'JOURNAL_UNAVAILABLE', 'The log of the validator cannot be written', {
    cause,
  });
}
