import { join } from 'node:path';
import type { AppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import { failure } from '../../errors.ts';
import type { Storage, StorageFile } from '../volume/storage.ts';
import {
  type Batch,
  type Entry,
  encodeBatch,
  encodeSegmentHeader,
  scanSegment,
  segmentHeaderBytes,
} from './format.ts';

export type Replay = (entry: Entry, segment: number) => void;

const filePattern = /^journal-(\d{10})\.log$/;

function fileName(segment: number): string {
  return `journal-${String(segment).padStart(10, '0')}.log`;
}

/** The files of a log: the current one and the older ones. Calls must not overlap. */
export class Segments {
  readonly #storage: Storage;
  readonly #directory: string;
  readonly #log: Logger;
  readonly #sizes = new Map<number, number>();
  #file: StorageFile | undefined;
  #segment = 0;
  #position = 0;
  #sequence = 0;
  /** The last write failed, so the bytes behind the position are unknown. */
  #isUncertain = false;

  constructor(storage: Storage, directory: string, log: Logger) {
    this.#storage = storage;
    this.#directory = directory;
    this.#log = log;
  }

  /** Number of the current file. */
  get current(): number {
    return this.#segment;
  }

  get oldest(): number {
    return Math.min(...this.#sizes.keys());
  }

  /** Size of the current file in bytes. */
  get position(): number {
    return this.#position;
  }

  get sizeBytes(): number {
    let size = 0;
    for (const bytes of this.#sizes.values()) size += bytes;
    return size;
  }

  /** Reads the existing files, oldest first, and opens the newest one for writing. */
  async load(replay: Replay): Promise<void> {
    await this.#storage.prepare(this.#directory);
    const segments = await this.#numbers();
    let batches: readonly Batch[] = [];
    for (const [index, segment] of segments.entries()) {
      batches = await this.#loadSegment(segment, index === segments.length - 1);
      for (const { entries } of batches) for (const entry of entries) replay(entry, segment);
    }
    const last = segments.at(-1);
    if (last !== undefined && this.#sizes.has(last)) {
      this.#segment = last;
      this.#position = this.#sizes.get(last) ?? segmentHeaderBytes;
      await this.#makeDurable(batches.at(-1));
    } else {
      this.#segment = last === undefined ? 0 : last - 1;
      await this.begin();
    }
  }

  /** Passes every entry on disk to the callback, oldest first. Only allowed before the first write. */
  async replay(take: Replay): Promise<void> {
    for (const segment of [...this.#sizes.keys()].toSorted((a, b) => a - b)) {
      const bytes = await this.#storage.read(this.#pathOf(segment));
      for (const batch of scanSegment(bytes, segment).batches) {
        for (const entry of batch.entries) take(entry, segment);
      }
    }
  }

  /**
   * Writes a batch and forces it to disk. A failed write does not count: the next call first truncates its remains, so that
   * neither a reader nor a later force takes them for written.
   */
  async write(entries: readonly Entry[]): Promise<void> {
    if (this.#isUncertain) await this.#repair();
    if (this.#file === undefined) throw new Error('the log has no open segment');
    const batch = encodeBatch(this.#sequence + 1, entries);
    this.#isUncertain = true;
    await this.#file.write(batch, this.#position);
    await this.#file.force();
    this.#isUncertain = false;
    this.#sequence += 1;
    this.#position += batch.length;
    this.#sizes.set(this.#segment, this.#position);
  }

  /** Begins the next file. Either its header is on disk or the file does not exist under its name. May be retried. */
  async begin(): Promise<void> {
    await this.close();
    const segment = this.#segment + 1;
    const path = this.#pathOf(segment);
    const fresh = `${path}.new`;
    const file = await this.#storage.create(fresh);
    // Assigned at once, so that closing the log closes the file even when a step below fails.
    this.#file = file;
    await file.write(encodeSegmentHeader(segment), 0);
    await file.force();
    await this.#storage.rename(fresh, path);
    await this.#storage.syncDirectory(this.#directory);
    this.#segment = segment;
    this.#position = segmentHeaderBytes;
    this.#sizes.set(segment, segmentHeaderBytes);
  }

  async remove(segment: number): Promise<void> {
    await this.#storage.remove(this.#pathOf(segment));
    this.#sizes.delete(segment);
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  #pathOf(segment: number): string {
    return join(this.#directory, fileName(segment));
  }

  /** Reopens and reads the file: after a failed force, the page cache proves nothing about the disk. */
  async #repair(): Promise<void> {
    const path = this.#pathOf(this.#segment);
    await this.close();
    await this.#storage.truncate(path, this.#position);
    this.#file = await this.#storage.open(path);
    await this.#file.force();
    const scan = scanSegment(await this.#storage.read(path), this.#segment);
    if (scan.state !== 'whole' || scan.end !== this.#position) {
      throw damaged(fileName(this.#segment), scan.end, 'is damaged');
    }
    this.#isUncertain = false;
  }

  /** Numbers of the existing files, ascending and without a gap. */
  async #numbers(): Promise<number[]> {
    const names = await this.#storage.list(this.#directory);
    const numbers = names.flatMap((name) => filePattern.exec(name)?.[1] ?? []).map(Number);
    numbers.sort((a, b) => a - b);
    for (const [index, number] of numbers.entries()) {
      if (index > 0 && number !== (numbers[index - 1] ?? 0) + 1)
        throw damaged(fileName(number - 1), 0, 'is missing');
    }
    return numbers;
  }

  async #loadSegment(segment: number, isLast: boolean): Promise<readonly Batch[]> {
    const path = this.#pathOf(segment);
    const bytes = await this.#storage.read(path);
    const scan = scanSegment(bytes, segment);
    if (scan.state === 'damaged' || (scan.state === 'torn' && !isLast)) {
      throw damaged(fileName(segment), scan.end, 'is damaged');
    }
    if (scan.state === 'torn') {
      const lost = bytes.length - scan.end;
      this.#log.warn(
        { file: fileName(segment), at: scan.end, lost },
        'an incomplete batch at the end of the log was truncated',
      );
      if (scan.end === 0) {
        await this.#storage.remove(path);
        return [];
      }
      await this.#storage.truncate(path, scan.end);
    }
    this.#checkSequence(scan.batches, segment);
    this.#sizes.set(segment, scan.end);
    return scan.batches;
  }

  #checkSequence(batches: readonly Batch[], segment: number): void {
    for (const { sequence } of batches) {
      if (this.#sequence !== 0 && sequence !== this.#sequence + 1) {
        throw damaged(fileName(segment), 0, `lacks batch ${this.#sequence + 1}`);
      }
      this.#sequence = sequence;
    }
  }

  /**
   * Makes the bytes that were read durable. A process that died may have left bytes that were written but not forced, and
   * after a failed force the page cache may mark them clean and never write them. Only the last batch can be affected, so it
   * is written again.
   */
  async #makeDurable(last: Batch | undefined): Promise<void> {
    this.#file = await this.#storage.open(this.#pathOf(this.#segment));
    if (last !== undefined) {
      const bytes = encodeBatch(last.sequence, last.entries);
      await this.#file.write(bytes, this.#position - bytes.length);
    }
    await this.#file.force();
    await this.#storage.syncDirectory(this.#directory);
  }
}

function damaged(file: string, position: number, what: string): AppError {
  const message = `${file} ${what} at ${position}; restore the directory or remove it`;
  return failure('JOURNAL_DAMAGED', { message, details: { file, position } });
}
