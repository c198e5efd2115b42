import type { DocketHeader } from '#core/ledger/docket.ts';
import type { Scheduler } from '#kit/clock/timers.ts';

interface Waiter {
  readonly docketNumber: number;
  readonly resolve: (stored: DocketHeader) => void;
}

/** Callers that wait until dockets of one register are stored. */
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

  /** Resolves with the docket of that number or a later one once it is stored; undefined after the timeout. */
  async wait(docketNumber: number, timeoutMs: number): Promise<DocketHeader | undefined> {
    const { promise, resolve } = Promise.withResolvers<DocketHeader | undefined>();
    const waiter = { docketNumber, resolve };
    this.#count += 1;
    const key = `seal/${this.#registerId}/${this.#count}`;
    this.#waiters.add(waiter);
    this.#scheduler.set(key, timeoutMs, () => resolve(undefined));
    const stored = await promise;
    this.#scheduler.clear(key);
    this.#waiters.delete(waiter);
    return stored;
  }

  stored(header: DocketHeader): void {
    for (const waiter of this.#waiters)
      if (waiter.docketNumber <= header.docketNumber) waiter.resolve(header);
  }
}
