import { AppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Volume } from './log/volume.ts';

/** Something that an operator should know of a validator. */
export interface Condition {
  /** Paused, SealingStopped; another validator may know more of them */
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly sinceMs: number;
}

export interface HealthOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly volume: Volume;
  /** Why the log is closed for good. */
  logFailure(): Error | undefined;
}

/** Whether a validator can do its work: it ends for good when the log or the signing component fails, and pauses without room. */
export class Health {
  readonly #options: HealthOptions;
  #failure: { readonly error: unknown; readonly sinceMs: number } | undefined;

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  /** The log or the signing component failed for good. */
  failed(error: unknown): void {
    if (this.#failure !== undefined) return;
    this.#options.log.error({ err: error }, 'sealing stopped');
    this.#failure = { error, sinceMs: this.#options.clock.nowMs() };
  }

  /** Throws AppError unavailable SEALING_STOPPED once nothing can be sealed here any more. */
  assertWorking(): void {
    const broken = this.#options.logFailure() ?? this.#failure?.error;
    if (broken === undefined) return;
    throw new AppError('unavailable', 'SEALING_STOPPED', 'This validator has stopped sealing', {
      cause: broken,
      retryAfterSeconds: 5,
    });
  }

  /** Throws AppError unavailable also while there is no room on the volume: VALIDATOR_PAUSED. */
  assertOpen(): void {
    this.assertWorking();
    this.#options.volume.assertRoom();
  }

  /** Empty when nothing is wrong. */
  get conditions(): readonly Condition[] {
    const { volume } = this.#options;
    const broken = this.#options.logFailure() ?? this.#failure?.error;
    if (broken !== undefined) {
      const cause = broken instanceof Error ? broken.message : String(broken);
      const reason = this.#options.logFailure() === undefined ? 'signing failed' : 'log failed';
      const message = `${cause}; nothing more is signed here until the validator is started again`;
      return [{ type: 'SealingStopped', reason, message, sinceMs: this.#failure?.sinceMs ?? 0 }];
    }
    if (volume.full === undefined) return [];
    const message = 'There is no room on the volume of the log; the validator goes on when there is';
    return [{ type: 'Paused', ...volume.full, message }];
  }
}

/** A proposal of a clock that is ahead by more than the default precision of policies is late for everybody else. */
const largestClockErrorMs = 500;

/** Throws while the clock is too far from those of the other validators; they have not said theirs: undefined. */
export function assertClock(aheadMs: number | undefined): void {
  if (aheadMs === undefined || Math.abs(aheadMs) <= largestClockErrorMs) return;
  const side = aheadMs > 0 ? 'ahead of' : 'behind';
  throw new Error(`the clock is ${Math.abs(Math.round(aheadMs))} ms ${side} the other validators`);
}
