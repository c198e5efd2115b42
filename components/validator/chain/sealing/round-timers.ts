import type { Scheduler } from '#kit/clock/timers.ts';
import type { Input } from '../consensus/messages.ts';

type Timeout = Extract<Input, { kind: 'timeout' }>;

/**
 * The timers of the steps of one register. While a batch is being signed its timeouts are held, because the votes of the round
 * may be signed already and the signer refuses any other.
 */
export class RoundTimers {
  readonly #registerId: string;
  readonly #scheduler: Scheduler;
  readonly #onTimeout: (timeout: Timeout) => void;
  readonly #keys = new Set<string>();
  #holds = 0;
  #held: Timeout[] = [];

  constructor(registerId: string, scheduler: Scheduler, onTimeout: (timeout: Timeout) => void) {
    this.#registerId = registerId;
    this.#scheduler = scheduler;
    this.#onTimeout = onTimeout;
  }

  set(at: Omit<Timeout, 'kind'>, afterMs: number): void {
    const { height, round, step } = at;
    const key = `${this.#registerId}/${height}/${round}/${step}`;
    this.#keys.add(key);
    this.#scheduler.set(key, afterMs, () => {
      this.#keys.delete(key);
      this.#fire({ kind: 'timeout', height, round, step });
    });
  }

  /** Holds timeouts until the returned function is called. */
  hold(): () => void {
    this.#holds += 1;
    return () => {
      this.#holds -= 1;
      if (this.#holds > 0) return;
      for (const timeout of this.#held.splice(0)) this.#fire(timeout);
    };
  }

  /** Forgets all timers and held timeouts. */
  clear(): void {
    for (const key of this.#keys) this.#scheduler.clear(key);
    this.#keys.clear();
    this.#held = [];
  }

  #fire(timeout: Timeout): void {
    if (this.#holds > 0) this.#held.push(timeout);
    else this.#onTimeout(timeout);
  }
}
