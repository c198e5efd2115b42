import type { Clock } from '#kit/clock/clock.ts';
import type { Timers } from '#kit/clock/timers.ts';

/** A process of the simulated world. Its pending callbacks are dropped once it is dead. */
export interface ProcessHandle {
  readonly name: string;
  alive: boolean;
}

interface Planned {
  readonly atMs: number;
  readonly order: number;
  readonly handle: ProcessHandle | undefined;
  readonly callback: () => void;
  cancelled: boolean;
}

/**
 * Virtual time: a heap of events ordered by time and then by order of planning. All promises settle between two events, so
 * that a process can be stopped at any event without a half-finished step.
 */
export class EventQueue {
  readonly #heap: Planned[] = [];
  readonly #startMs: number;
  #elapsedMs = 0;
  #order = 0;
  #done = 0;
  /** Receives errors thrown by events; rethrown when absent. */
  onThrown: ((error: unknown, handle: ProcessHandle | undefined) => void) | undefined;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  /** Milliseconds since the start of the world. */
  get elapsedMs(): number {
    return this.#elapsedMs;
  }

  /** Number of events so far. */
  get done(): number {
    return this.#done;
  }

  /** Plans an event; it is dropped when its process has died by then. */
  after(delayMs: number, callback: () => void, handle?: ProcessHandle): () => void {
    this.#order += 1;
    const planned = {
      atMs: this.#elapsedMs + Math.max(0, delayMs),
      order: this.#order,
      handle,
      callback,
      cancelled: false,
    };
    this.#push(planned);
    return () => {
      planned.cancelled = true;
    };
  }

  /** Resolves after the delay, unless the process dies before. */
  wait(delayMs: number, handle?: ProcessHandle): Promise<void> {
    return new Promise((resolve) => this.after(delayMs, resolve, handle));
  }

  /** The clock of a machine that is off by `offsetMs`, which may vary. */
  clock(offsetMs: () => number): Clock {
    const micros = () => Math.round((this.#startMs + this.#elapsedMs + offsetMs()) * 1000);
    return { nowMs: () => Math.floor(micros() / 1000), nowMicros: () => BigInt(micros()) };
  }

  timers(handle: ProcessHandle): Timers {
    return {
      start: (afterMs, callback) => this.after(afterMs, callback, handle),
      defer: (callback) => void this.after(0, callback, handle),
    };
  }

  /**
   * Runs events one by one until `until` returns true, no event is left, or the end time is reached. `until` receives the
   * process of the event; undefined when the event may have affected any process.
   */
  async run(endMs: number, until: (handle: ProcessHandle | undefined) => boolean): Promise<void> {
    for (let next = this.#pop(); next !== undefined; next = this.#pop()) {
      if (next.atMs > endMs) {
        this.#push(next);
        this.#elapsedMs = endMs;
        return;
      }
      this.#elapsedMs = next.atMs;
      if (next.cancelled || next.handle?.alive === false) continue;
      this.#done += 1;
      this.#run(next);
      await settled();
      if (until(next.handle)) return;
    }
  }

  #run({ callback, handle }: Planned): void {
    try {
      callback();
    } catch (error) {
      if (this.onThrown === undefined) throw error;
      this.onThrown(error, handle);
    }
  }

  #push(planned: Planned): void {
    const heap = this.#heap;
    let at = heap.push(planned) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || isBefore(above, planned)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = planned;
  }

  #pop(): Planned | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      const left = heap[2 * at + 1];
      if (left === undefined) break;
      const right = heap[2 * at + 2];
      const isRight = right !== undefined && isBefore(right, left);
      const below = isRight ? right : left;
      if (isBefore(last, below)) break;
      heap[at] = below;
      at = 2 * at + (isRight ? 2 : 1);
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(a: Planned, b: Planned): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** All settled promises have run their callbacks when the event loop turns. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
