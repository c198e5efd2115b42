import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';

const windowMs = 10_000;
const maxFaults = 50;
/** Bound of tracked validators, above any installation's size. */
const maxTrackedValidators = 1_024;

interface FaultWindow {
  faults: number;
  sinceMs: number;
}

/**
 * Counts protocol violations by validator. A validator with too many of them in a window is ignored until the window ends, so
 * that a faulty peer cannot exhaust the others.
 */
export class PeerScore {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #count: (reason: string) => void;
  readonly #windows = new Map<string, FaultWindow>();

  constructor(clock: Clock, log: Logger, count: (reason: string) => void) {
    this.#clock = clock;
    this.#log = log;
    this.#count = count;
  }

  reportFault(validatorId: string, reason: string): void {
    this.#count(reason);
    const window = this.#window(validatorId);
    window.faults += 1;
    if (window.faults === 1) this.#log.warn({ validatorId, reason }, 'a validator sent a faulty message');
    if (window.faults === maxFaults)
      this.#log.error(
        { validatorId },
        'a validator sent too many faulty messages and is ignored for a while',
      );
  }

  isBanned(validatorId: string): boolean {
    return this.#windows.has(validatorId) && this.#window(validatorId).faults >= maxFaults;
  }

  #window(validatorId: string): FaultWindow {
    const nowMs = this.#clock.nowMs();
    let window = this.#windows.get(validatorId);
    if (window === undefined || nowMs - window.sinceMs >= windowMs) {
      window = { faults: 0, sinceMs: nowMs };
      this.#windows.delete(validatorId);
      this.#windows.set(validatorId, window);
      const [oldest] = this.#windows.keys();
      if (this.#windows.size > maxTrackedValidators && oldest !== undefined) this.#windows.delete(oldest);
    }
    return window;
  }
}
