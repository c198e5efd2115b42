import { Heap } from './heap.ts';
import type { KubeMetrics } from './metrics.ts';
import { type Bucket, createBucket, type Rate } from './rate-limit.ts';
import type { Cancel, Timing } from './time.ts';

/** Higher goes first. A person who waits goes before what merely happens, and that before what is done to be sure. */
export const priority = { background: -100, normal: 0, edit: 100 } as const;

export interface QueueOptions {
  /** Of the controller, in metrics. */
  readonly name: string;
  readonly timing: Timing;
  readonly metrics: KubeMetrics;
  /** Pause of one key after its first failure, doubled by each further one; 100 ms to 5 min when absent. */
  readonly backoff?: { readonly firstMs: number; readonly lastMs: number };
  /** Retries of all keys together; 10 a second with a burst of 100 when absent. */
  readonly retryRate?: Rate;
}

/** A key that waits for a worker. */
interface Waiting {
  readonly key: string;
  readonly priority: number;
  /** Order of arrival. */
  readonly turn: number;
  readonly sinceMs: number;
}

interface Delayed {
  readonly key: string;
  readonly priority: number;
  readonly dueMs: number;
}

/**
 * Keys that want to be worked on. A key is there once however often it was added, no two workers have the same one,
 * and one that is added while it is worked on comes again afterwards.
 */
export class WorkQueue {
  readonly #options: QueueOptions;
  readonly #retryRate: Bucket;
  /** Every key that must be worked on (again); those not in work are in the heap of the ready as well. */
  readonly #dirty = new Map<string, Waiting>();
  readonly #ready = new Heap<Waiting>((a, b) =>
    a.priority === b.priority ? a.turn < b.turn : a.priority > b.priority,
  );
  readonly #working = new Map<string, number>();
  readonly #delayed = new Map<string, Delayed>();
  readonly #due = new Heap<Delayed>((a, b) => a.dueMs < b.dueMs);
  readonly #failures = new Map<string, number>();
  readonly #workers: ((key: string | undefined) => void)[] = [];
  readonly #idle = Promise.withResolvers<void>();
  readonly #readings: (() => void)[];
  readonly #labels: { readonly name: string; readonly controller: string };
  #turns = 0;
  #alarm: Cancel | undefined;
  #isStopped = false;

  constructor(options: QueueOptions) {
    const { timing, metrics, name } = options;
    this.#options = options;
    this.#retryRate = createBucket(options.retryRate ?? { perSecond: 10, burst: 100 }, timing);
    this.#labels = { name, controller: name };
    const ages = () => [...this.#working.values()].map((sinceMs) => (timing.monotonicMs() - sinceMs) / 1000);
    this.#readings = [
      metrics.queue.depth.add(this.#labels, () => this.depth),
      metrics.queue.unfinished.add(this.#labels, () => ages().reduce((sum, age) => sum + age, 0)),
      metrics.queue.longest.add(this.#labels, () => Math.max(0, ...ages())),
    ];
  }

  /** Keys that wait for a worker now, those with a time to come left out. */
  get depth(): number {
    return [...this.#dirty.keys()].filter((key) => !this.#working.has(key)).length;
  }

  /** A key that is there already only rises, if the new priority is higher. */
  add(key: string, urgency: number = priority.normal): void {
    if (this.#isStopped) return;
    const before = this.#dirty.get(key);
    if (before !== undefined && before.priority >= urgency) return;
    const now = this.#options.timing.monotonicMs();
    this.#turns += 1;
    const waiting = {
      key,
      priority: urgency,
      turn: before?.turn ?? this.#turns,
      sinceMs: before?.sinceMs ?? now,
    };
    this.#dirty.set(key, waiting);
    if (before === undefined) this.#options.metrics.queue.adds.inc(this.#labels);
    if (!this.#working.has(key)) this.#offer(waiting);
  }

  /** Adds a key `ms` milliseconds from now. Of several times the earliest holds. */
  addAfter(key: string, ms: number, urgency: number = priority.background): void {
    if (this.#isStopped) return;
    if (ms <= 0) {
      this.add(key, urgency);
      return;
    }
    const before = this.#delayed.get(key);
    const dueMs = this.#options.timing.monotonicMs() + ms;
    if (before !== undefined && before.dueMs <= dueMs && before.priority >= urgency) return;
    const delayed = {
      key,
      priority: Math.max(urgency, before?.priority ?? urgency),
      dueMs: Math.min(dueMs, before?.dueMs ?? dueMs),
    };
    this.#delayed.set(key, delayed);
    this.#due.push(delayed);
    this.#arm();
  }

  /**
   * Adds a key that failed, later each time, and not before `atLeastMs` milliseconds.
   * @returns the milliseconds until then
   */
  retry(key: string, atLeastMs = 0): number {
    const { firstMs, lastMs } = this.#options.backoff ?? { firstMs: 100, lastMs: 300_000 };
    const failures = this.failures(key);
    this.#failures.set(key, failures + 1);
    const ownMs = Math.min(lastMs, firstMs * 2 ** Math.min(failures, 40));
    const waitMs = Math.max(ownMs, this.#retryRate.reserve(), atLeastMs);
    this.#options.metrics.queue.retries.inc(this.#labels);
    this.addAfter(key, waitMs, priority.normal);
    return waitMs;
  }

  /** The key went well, or will not be tried again: its next failure is a first one. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** Failures in a row. */
  failures(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  /** The next key, which is the caller's until `done`; undefined once the queue was stopped. */
  take(): Promise<string | undefined> {
    return new Promise((resolve) => {
      this.#workers.push(resolve);
      this.#serve();
    });
  }

  /** Gives a key back. */
  done(key: string): void {
    const { timing, metrics } = this.#options;
    const sinceMs = this.#working.get(key);
    if (sinceMs === undefined) return;
    this.#working.delete(key);
    metrics.queue.worked.observe(this.#labels, (timing.monotonicMs() - sinceMs) / 1000);
    const again = this.#dirty.get(key);
    if (again !== undefined) this.#offer(again);
    this.#settle();
  }

  /** Hands out nothing more; resolves when every key in work was given back. What waits is dropped: it is in the cluster. */
  stop(): Promise<void> {
    this.#isStopped = true;
    this.#alarm?.();
    for (const end of this.#readings) end();
    this.#serve();
    this.#settle();
    return this.#idle.promise;
  }

  #settle(): void {
    if (this.#isStopped && this.#working.size === 0) this.#idle.resolve();
  }

  #offer(waiting: Waiting): void {
    this.#ready.push(waiting);
    this.#serve();
  }

  #serve(): void {
    if (this.#isStopped) {
      for (const worker of this.#workers.splice(0)) worker(undefined);
      return;
    }
    while (this.#workers.length > 0) {
      const key = this.#begin();
      if (key === undefined) return;
      this.#workers.shift()?.(key);
    }
  }

  /** Takes the first ready key into work; entries whose key has risen or gone since are passed over. */
  #begin(): string | undefined {
    for (let next = this.#ready.pop(); next !== undefined; next = this.#ready.pop()) {
      if (this.#dirty.get(next.key) !== next) continue;
      const now = this.#options.timing.monotonicMs();
      this.#dirty.delete(next.key);
      this.#working.set(next.key, now);
      this.#options.metrics.queue.waited.observe(this.#labels, (now - next.sinceMs) / 1000);
      return next.key;
    }
    return undefined;
  }

  /** One alarm, for the earliest time. */
  #arm(): void {
    this.#alarm?.();
    this.#alarm = undefined;
    const now = this.#options.timing.monotonicMs();
    for (let next = this.#due.first(); next !== undefined; next = this.#due.first()) {
      const isCurrent = this.#delayed.get(next.key) === next;
      if (isCurrent && next.dueMs > now) {
        this.#alarm = this.#options.timing.after(next.dueMs - now, () => this.#arm());
        return;
      }
      this.#due.pop();
      if (!isCurrent) continue;
      this.#delayed.delete(next.key);
      this.add(next.key, next.priority);
    }
  }
}
