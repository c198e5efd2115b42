import type { Scheduler } from './scheduler.ts';

interface Waiter {
  readonly docketNumber: number;
  readonly resolve: () => void;
}

/** Who waits until dockets of one register are stored. */
export class Waiters {
  readonly #registerId: string;
  readonly #scheduler: Scheduler;
  readonly #waiters = new Set<Waiter>();
  #count = 0;

  constructor(registerId: string, scheduler: Scheduler) {
    this.#registerId = registerId;
    this.#scheduler = scheduler;
  }

  get size(): number {
    return this.#waiters.size;
  }

  async wait(docketNumber: number, timeoutMs: number): Promise<'sealed' | 'timeout'> {
    const { promise, resolve } = Promise.withResolvers<'sealed' | 'timeout'>();
    const waiter = { docketNumber, resolve: () => resolve('sealed') };
    this.#count += 1;
    const key = `seal/${this.#registerId}/${this.#count}`;
    this.#waiters.add(waiter);
    this.#scheduler.set(key, timeoutMs, () => resolve('timeout'));
    const outcome = await promise;
    this.#scheduler.clear(key);
    this.#waiters.delete(waiter);
    return outcome;
  }

  stored(docketNumber: number): void {
    for (const waiter of this.#waiters) if (waiter.docketNumber <= docketNumber) waiter.resolve();
  }
}
