import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Volume } from '../../disk/volume/volume.ts';
import { failure } from '../../errors.ts';

/** A condition that an operator should see. */
export interface Condition {
  /** Paused or SealingStopped; a newer validator may report others. */
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly sinceMs: number;
}

interface HealthOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly volume: Volume;
  /** The error that closed the log permanently. */
  logFailure(): Error | undefined;
}

/** Tracks whether a validator can seal. A failure of the log or the signing component stops it for good; a full disk pauses it. */
export class Health {
  readonly #options: HealthOptions;
  #failure: { readonly error: unknown; readonly sinceMs: number } | undefined;

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  /** Records a permanent failure of the log or the signing component. */
  failed(error: unknown): void {
    if (this.#failure !== undefined) return;
    this.#options.log.error(
      { err: error },
      'sealing stopped; restart the validator once the cause is resolved',
    );
    this.#failure = { error, sinceMs: this.#options.clock.nowMs() };
  }

  /** Throws AppError unavailable SEALING_STOPPED once sealing has stopped for good. */
  assertWorking(): void {
    const broken = this.#options.logFailure() ?? this.#failure?.error;
    if (broken === undefined) return;
    throw failure('SEALING_STOPPED', { cause: broken, retryAfterSeconds: 5 });
  }

  /** As assertWorking; throws AppError unavailable VALIDATOR_PAUSED as well while the disk is full. */
  assertOpen(): void {
    this.assertWorking();
    this.#options.volume.assertDiskSpace();
  }

  /** Empty when the validator is healthy. */
  get conditions(): readonly Condition[] {
    const { volume } = this.#options;
    const broken = this.#options.logFailure() ?? this.#failure?.error;
    if (broken !== undefined) {
      const cause = broken instanceof Error ? broken.message : String(broken);
      const reason = this.#options.logFailure() === undefined ? 'signing failed' : 'log failed';
      const message = `${cause}; this validator signs nothing more until it is restarted`;
      return [{ type: 'SealingStopped', reason, message, sinceMs: this.#failure?.sinceMs ?? 0 }];
    }
    if (volume.full === undefined) return [];
    const message = 'The volume of the log is full; the validator resumes by itself when space is freed';
    return [{ type: 'Paused', ...volume.full, message }];
  }
}

/** A proposal that is ahead by more than the policies' default precision is late for the other members. */
const maxClockErrorMs = 500;

/** Throws while the clock deviates too far from the other validators' clocks. Undefined: no peer has reported its clock yet. */
export function assertClock(aheadMs: number | undefined): void {
  if (aheadMs === undefined || Math.abs(aheadMs) <= maxClockErrorMs) return;
  const side = aheadMs > 0 ? 'ahead of' : 'behind';
  throw new Error(`the clock is ${Math.abs(Math.round(aheadMs))} ms ${side} the other validators`);
}
