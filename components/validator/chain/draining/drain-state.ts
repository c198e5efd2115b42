import { failure } from '../../errors.ts';

/** Whether this validator drains: read by the parts that accept, propose and announce, changed by the drain alone. */
export class DrainState {
  /** Start of the requested drain. */
  sinceMs: number | undefined;
  /** The process is about to end. */
  isStopping = false;

  /** @param sinceMs start of a drain that the log recorded and that has not ended */
  constructor(sinceMs: number | undefined) {
    this.sinceMs = sinceMs;
  }

  get isDraining(): boolean {
    return this.sinceMs !== undefined || this.isStopping;
  }

  /** Throws AppError unavailable VALIDATOR_DRAINING during a drain. */
  assertAccepting(): void {
    if (!this.isDraining) return;
    throw failure('VALIDATOR_DRAINING', { retryAfterSeconds: 1, elsewhere: true });
  }
}
