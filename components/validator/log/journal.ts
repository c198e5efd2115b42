import { join } from 'node:path';
import { AppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import {
  type Batch,
  type Entry,
  encodeBatch,
  encodeSegmentHeader,
  scanSegment,
  segmentHeaderBytes,
} from './format.ts';
import { nodeStorage, type Storage, type StorageFile } from './storage.ts';

export interface JournalOptions {
  readonly directory: string;
  readonly segmentBytes: number;
  /** Oldest segments go when all of them together are larger; the newest one always stays. */
  readonly retainBytes: number;
  readonly log: Logger;
  /** The file system of the machine when absent. */
  readonly storage?: Storage | undefined;
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

const filePattern = /^journal-(\d{10})\.log$/;
const largestBatchBytes = 8 * 1024 * 1024;

function fileName(segment: number): string {
  return `journal-${String(segment).padStart(10, '0')}.log`;
}

/**
 * The append-only log of one validator (decision D16). Appends made while a write is under way share the next one: one
 * write and one fdatasync for all of them, after which their promises resolve. A write that fails closes the log for good:
 * what is on disk is then unknown, and only a restart reads it.
 */
export class Journal {
  readonly #options: JournalOptions;
  readonly #storage: Storage;
  readonly #sizes = new Map<number, number>();
  #file: StorageFile | undefined;
  #segment = 0;
  #position = 0;
  #sequence = 0;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  #failure: Error | undefined;
  #forces = 0;

  private constructor(options: JournalOptions) {
    this.#options = options;
    this.#storage = options.storage ?? nodeStorage();
  }

  /**
   * Opens the log of a directory and hands every whole batch to `replay`, oldest first. A tail that a crash cut short is
   * removed; damage anywhere else is refused.
   * @throws AppError internal JOURNAL_DAMAGED naming file and position
   */
  static async open(
    options: JournalOptions,
    replay: (entry: Entry, segment: number) => void,
  ): Promise<Journal> {
    const journal = new Journal(options);
    await journal.#storage.prepare(options.directory);
    await journal.#load(replay);
    return journal;
  }

  /** Hands every entry that is on disk to `take`, oldest first. For the time before the first append. */
  async replay(take: (entry: Entry, segment: number) => void): Promise<void> {
    for (const segment of [...this.#sizes.keys()].toSorted((a, b) => a - b)) {
      const bytes = await this.#storage.read(join(this.#options.directory, fileName(segment)));
      for (const batch of scanSegment(bytes, segment).batches) {
        for (const entry of batch.entries) take(entry, segment);
      }
    }
  }

  get sizeBytes(): number {
    let size = 0;
    for (const bytes of this.#sizes.values()) size += bytes;
    return size;
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
      // What is appended in the same turn shares the write.
      this.#writing ??= Promise.resolve().then(() => this.#drain());
    });
  }

  async close(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    this.#failure ??= new Error('the log is closed');
    await this.#closeFile();
  }

  async #closeFile(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  async #load(replay: (entry: Entry, segment: number) => void): Promise<void> {
    const { directory } = this.#options;
    const names = await this.#storage.list(directory);
    const segments = names.flatMap((name) => filePattern.exec(name)?.[1] ?? []).map(Number);
    segments.sort((a, b) => a - b);
    for (const [index, segment] of segments.entries()) {
      if (index > 0 && segment !== (segments[index - 1] ?? 0) + 1)
        throw damaged(fileName(segment - 1), 0, 'is missing');
      await this.#loadSegment(segment, index === segments.length - 1, replay);
    }
    const last = segments.at(-1);
    if (last !== undefined && this.#sizes.has(last)) {
      this.#segment = last;
      this.#position = this.#sizes.get(last) ?? segmentHeaderBytes;
      this.#file = await this.#storage.open(join(directory, fileName(last)));
      // A process that died may have left bytes that were written and not forced; what was replayed must stay.
      await this.#file.force();
      await this.#storage.forceNames(directory);
    } else {
      this.#segment = last === undefined ? 0 : last - 1;
      await this.#beginSegment();
    }
  }

  async #loadSegment(
    segment: number,
    isLast: boolean,
    replay: (entry: Entry, segment: number) => void,
  ): Promise<void> {
    const path = join(this.#options.directory, fileName(segment));
    const bytes = await this.#storage.read(path);
    const scan = scanSegment(bytes, segment);
    if (scan.state === 'damaged' || (scan.state === 'torn' && !isLast)) {
      throw damaged(fileName(segment), scan.end, 'is damaged');
    }
    if (scan.state === 'torn') {
      this.#options.log.warn(
        { file: fileName(segment), at: scan.end, lost: bytes.length - scan.end },
        'log tail cut',
      );
      if (scan.end === 0) {
        await this.#storage.remove(path);
        return;
      }
      await this.#storage.truncate(path, scan.end);
    }
    this.#checkSequence(scan.batches, segment);
    for (const batch of scan.batches) for (const entry of batch.entries) replay(entry, segment);
    this.#sizes.set(segment, scan.end);
  }

  #checkSequence(batches: readonly Batch[], segment: number): void {
    for (const { sequence } of batches) {
      if (this.#sequence !== 0 && sequence !== this.#sequence + 1) {
        throw damaged(fileName(segment), 0, `lacks batch ${this.#sequence + 1}`);
      }
      this.#sequence = sequence;
    }
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0 && this.#failure === undefined) {
      const taken = this.#take();
      try {
        await this.#write(taken.flatMap((waiting) => waiting.entries));
        for (const waiting of taken) waiting.resolve(this.#segment);
        if (this.#position >= this.#options.segmentBytes) await this.#rotate();
      } catch (error) {
        this.#fail(error instanceof Error ? error : new Error(String(error)), taken);
      }
    }
    this.#writing = undefined;
  }

  /** Everything that waits, up to a size that keeps one batch readable at once. */
  #take(): Waiting[] {
    let size = 0;
    let count = 0;
    for (const { entries } of this.#waiting) {
      for (const entry of entries) size += entry.body.length;
      if (count > 0 && size > largestBatchBytes) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  async #write(entries: readonly Entry[]): Promise<void> {
    if (this.#file === undefined) throw new Error('the log has no open segment');
    const batch = encodeBatch(this.#sequence + 1, entries);
    await this.#file.write(batch, this.#position);
    await this.#file.force();
    this.#forces += 1;
    this.#sequence += 1;
    this.#position += batch.length;
    this.#sizes.set(this.#segment, this.#position);
  }

  #fail(error: Error, taken: readonly Waiting[]): void {
    this.#failure = error;
    this.#options.log.error({ err: error, segment: this.#segment }, 'the log cannot be written');
    for (const waiting of [...taken, ...this.#waiting]) waiting.reject(unusable(error));
    this.#waiting = [];
  }

  async #rotate(): Promise<void> {
    await this.#closeFile();
    await this.#beginSegment();
    const oldest = Math.min(...this.#sizes.keys());
    if (this.sizeBytes <= this.#options.retainBytes || oldest === this.#segment) return;
    const carried = this.#options.carry(oldest, this.#segment);
    if (carried === undefined) return;
    if (carried.length > 0) await this.#write(carried);
    await this.#storage.remove(join(this.#options.directory, fileName(oldest)));
    this.#sizes.delete(oldest);
  }

  /** The header is on disk under the segment's name or the name does not exist. */
  async #beginSegment(): Promise<void> {
    const { directory } = this.#options;
    const segment = this.#segment + 1;
    const path = join(directory, fileName(segment));
    const fresh = `${path}.new`;
    const file = await this.#storage.create(fresh);
    // Kept at once, so that closing the log closes it also when a step below fails.
    this.#file = file;
    await file.write(encodeSegmentHeader(segment), 0);
    await file.force();
    await this.#storage.rename(fresh, path);
    await this.#storage.forceNames(directory);
    this.#segment = segment;
    this.#position = segmentHeaderBytes;
    this.#sizes.set(segment, segmentHeaderBytes);
  }
}

function damaged(file: string, position: number, what: string): AppError {
  return new AppError(
    'internal',
    'JOURNAL_DAMAGED',
    `${file} ${what} at ${position}; restore the directory or remove it`,
    {
      details: { file, position },
    },
  );
}

function unusable(cause: Error): AppError {
  return new AppError('unavailable', 'JOURNAL_UNAVAILABLE', 'The log of the validator cannot be written', {
    cause,
  });
}
