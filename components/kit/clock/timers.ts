import type { Clock } from './clock.ts';

/** The timers of the process, or those of a simulation. */
export interface Timers {
  /** Runs the callback once after that many milliseconds, unless the returned function is called before. */
  start(afterMs: number, callback: () => void): () => void;
  /** Runs the callback once the events already queued are handled. */
  defer(callback: () => void): void;
}

/** The timers of the process. */
function processTimers(): Timers {
  return {
    start(afterMs, callback) {
      const timer = setTimeout(callback, afterMs);
      return () => clearTimeout(timer);
    },
    defer: (callback) => void setImmediate(callback),
  };
}

interface ScheduledTimer {
  readonly key: string;
  readonly atMs: number;
  readonly callback: () => void;
}

/**
 * Multiplexes all timers of the process over one: a heap ordered by time. Setting a key again replaces its timer; idle
 * registers have none. Errors thrown by callbacks are not caught.
 */
export class Scheduler {
  readonly #clock: Clock;
  readonly #heap: ScheduledTimer[] = [];
  readonly #current = new Map<string, ScheduledTimer>();
  readonly #timers: Timers;
  #stopTimer: (() => void) | undefined;
  #timerAtMs = 0;
  #stopped = false;

  constructor(clock: Clock, timers: Timers = processTimers()) {
    this.#clock = clock;
    this.#timers = timers;
  }

  /** Number of active timers. */
  get size(): number {
    return this.#current.size;
  }

  set(key: string, afterMs: number, callback: () => void): void {
    if (this.#stopped) return;
    const timer = { key, atMs: this.#clock.nowMs() + afterMs, callback };
    this.#current.set(key, timer);
    this.#push(timer);
    if (this.#heap.length > 2 * this.#current.size + 64) this.#compact();
    this.#arm();
  }

  /** Runs the callback once the events already queued are handled, even after the scheduler has stopped. */
  defer(callback: () => void): void {
    this.#timers.defer(callback);
  }

  clear(key: string): void {
    this.#current.delete(key);
  }

  stop(): void {
    this.#stopped = true;
    this.#current.clear();
    this.#heap.length = 0;
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  /** Fires the timers that are due. Tests with a manual clock call it directly. */
  run(): void {
    const nowMs = this.#clock.nowMs();
    for (let next = this.#heap[0]; next !== undefined && next.atMs <= nowMs; next = this.#heap[0]) {
      this.#pop();
      if (this.#current.get(next.key) !== next) continue;
      this.#current.delete(next.key);
      next.callback();
    }
    this.#arm();
  }

  #arm(): void {
    while (this.#heap[0] !== undefined && this.#current.get(this.#heap[0].key) !== this.#heap[0]) this.#pop();
    const next = this.#heap[0];
    if (this.#stopTimer !== undefined && (next === undefined || next.atMs !== this.#timerAtMs)) {
      this.#stopTimer();
      this.#stopTimer = undefined;
    }
    if (next === undefined || this.#stopTimer !== undefined) return;
    this.#timerAtMs = next.atMs;
    this.#stopTimer = this.#timers.start(Math.max(0, next.atMs - this.#clock.nowMs()), () => {
      this.#stopTimer = undefined;
      this.run();
    });
  }

  #compact(): void {
    const alive = this.#heap.filter((timer) => this.#current.get(timer.key) === timer);
    alive.sort((a, b) => a.atMs - b.atMs);
    this.#heap.splice(0, this.#heap.length, ...alive);
  }

  #push(timer: ScheduledTimer): void {
    const heap = this.#heap;
    let at = heap.push(timer) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#time(parent) <= timer.atMs) break;
      this.#swap(at, parent);
      at = parent;
    }
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    heap[0] = last;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const smaller = this.#time(left + 1) < this.#time(left) ? left + 1 : left;
      if (this.#time(smaller) >= last.atMs) break;
      this.#swap(at, smaller);
      at = smaller;
    }
  }

  #time(at: number): number {
    return this.#heap[at]?.atMs ?? Number.POSITIVE_INFINITY;
  }

  #swap(a: number, b: number): void {
    const [first, second] = [this.#heap[a], this.#heap[b]];
    if (first === undefined || second === undefined) return;
    this.#heap[a] = second;
    this.#heap[b] = first;
  }
}
