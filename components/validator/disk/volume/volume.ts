import type { AppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import { failure } from '../../errors.ts';

/** Since when and why the volume is full. */
interface DiskFullStatus {
  readonly sinceMs: number;
  readonly reason: string;
}

export const diskFullReason = 'disk full';

/** Whether a file system error means that the disk or the quota is full. */
export function isDiskFull(error: unknown): error is NodeJS.ErrnoException {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/**
 * Whether the volume of the log has space. While it is full the validator is paused: its messages wait in memory for the
 * log, new submissions are refused, and reads are served. It resumes by itself when space is available.
 */
export class Volume {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #waiting = new Set<(error: AppError) => void>();
  readonly #spaceListeners: (() => void)[] = [];
  #full: DiskFullStatus | undefined;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Undefined while there is space. */
  get full(): DiskFullStatus | undefined {
    return this.#full;
  }

  get isFull(): boolean {
    return this.#full !== undefined;
  }

  /** A write found the disk full. */
  onFull(error: Error): void {
    if (this.#full !== undefined) return;
    this.#full = { sinceMs: this.#clock.nowMs(), reason: diskFullReason };
    this.#log.error(
      { err: error },
      'Paused: disk full. Nothing is accepted or signed until space is freed on the volume of the log; its contents are intact',
    );
    for (const refuse of this.#waiting) refuse(paused());
    this.#waiting.clear();
  }

  /** All waiting entries are on disk. */
  onSpaceFreed(): void {
    if (this.#full === undefined) return;
    const fullForMs = this.#clock.nowMs() - this.#full.sinceMs;
    this.#full = undefined;
    this.#log.warn({ fullForMs }, 'The volume of the log has space again; the validator resumes');
    for (const callback of this.#spaceListeners) callback();
  }

  /** Registers a callback for each time when space is available again. */
  onDiskSpace(callback: () => void): void {
    this.#spaceListeners.push(callback);
  }

  /** Throws AppError unavailable VALIDATOR_PAUSED while the volume is full. */
  assertDiskSpace(): void {
    if (this.#full !== undefined) throw paused();
  }

  /** Resolves with the write, or rejects with AppError unavailable VALIDATOR_PAUSED as soon as it must wait for space; it may still happen. */
  unlessFull<T>(writing: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const done = <V>(settle: (value: V) => void) => {
        return (value: V) => {
          this.#waiting.delete(reject);
          settle(value);
        };
      };
      writing.then(done(resolve), done(reject));
      if (this.#full === undefined) this.#waiting.add(reject);
      else reject(paused());
    });
  }
}

function paused(): AppError {
  return failure('VALIDATOR_PAUSED', {
    message: `This validator is Paused: ${diskFullReason}`,
    retryAfterSeconds: 5,
  });
}
