import { AppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';

/** What an operator is told of a volume without room. */
export interface Fullness {
  readonly sinceMs: number;
  readonly reason: string;
}

export const diskFullReason = 'disk full';

/** Whether an error of the file system says that there is no room: space, or what a quota allows. */
export function isNoRoom(error: unknown): error is NodeJS.ErrnoException {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/**
 * Whether the volume of the log has room. While it has none the validator is paused: what it would say waits in memory
 * behind the log, nothing new is taken in, and what is there is served. It goes on by itself when there is room again.
 */
export class Volume {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #waiting = new Set<(error: AppError) => void>();
  readonly #roomed: (() => void)[] = [];
  #full: Fullness | undefined;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Undefined while there is room. */
  get full(): Fullness | undefined {
    return this.#full;
  }

  get isFull(): boolean {
    return this.#full !== undefined;
  }

  /** A write found no room. */
  filled(error: Error): void {
    if (this.#full !== undefined) return;
    this.#full = { sinceMs: this.#clock.nowMs(), reason: diskFullReason };
    this.#log.error(
      { err: error },
      'Paused: disk full. Nothing is taken in and nothing signed until there is room on the volume of the log; what is on it is safe',
    );
    for (const refuse of this.#waiting) refuse(paused());
    this.#waiting.clear();
  }

  /** Everything that waited is on disk. */
  freed(): void {
    if (this.#full === undefined) return;
    const fullForMs = this.#clock.nowMs() - this.#full.sinceMs;
    this.#full = undefined;
    this.#log.warn({ fullForMs }, 'There is room on the volume of the log again: the validator goes on');
    for (const act of this.#roomed) act();
  }

  /** Called each time when there is room again. */
  onRoom(act: () => void): void {
    this.#roomed.push(act);
  }

  /** Throws AppError unavailable VALIDATOR_PAUSED while the volume is full. */
  assertRoom(): void {
    if (this.#full !== undefined) throw paused();
  }

  /** What a write comes to, or AppError unavailable VALIDATOR_PAUSED as soon as it must wait for room: it may still be done. */
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
  return new AppError('unavailable', 'VALIDATOR_PAUSED', `This validator is Paused: ${diskFullReason}`, {
    retryAfterSeconds: 5,
  });
}
