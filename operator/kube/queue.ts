import type { Cancel, Timing } from '#kit/clock/timing.ts';
import { Heap } from './heap.ts';
import type { KubeMetrics } from './metrics.ts';
import { type Bucket, createBucket, type Rate } from './rate-limit.ts';

/** Higher priorities are served first: edits of people, then other events, then periodic resyncs. */
export const priority = { background: -100, normal: 0, edit: 100 } as const;

export interface QueueOptions {
  /** Name of the controller, in metrics. */
  readonly name: string;
  readonly timing: Timing;
  readonly metrics: KubeMetrics;
  /** Delay of a key after its first failure, doubled by each further failure; 100 ms to 5 min when absent. */
  readonly backoff?: { readonly firstMs: number; readonly lastMs: number };
  /** Rate limit of the retries of all keys; 10 per second with a burst of 100 when absent. */
  readonly retryRate?: Rate;
}

/** A key that waits for a worker. */
interface PendingKey {
  readonly key: string;
  readonly priority: number;
  /** Order of arrival among equal priorities. */
  readonly sequence: number;
  readonly sinceMs: number;
}

interface DelayedKey {
  readonly key: string;
  readonly priority: number;
  readonly dueMs: number;
}

/**
 * Work queue of keys. A key is queued once however often it was added. Two workers never process the same key; a key that
 * is added while it is processed is queued again afterwards.
 */
export class WorkQueue {
  readonly #options: QueueOptions;
  readonly #retryRate: Bucket;
  /** Keys that must be processed (again); those not in progress are also in the ready heap. */
  readonly #dirty = new Map<string, PendingKey>();
  readonly #ready = new Heap<PendingKey>((a, b) =>
    a.priority === b.priority ? a.sequence < b.sequence : a.priority > b.priority,
  );
  readonly #working = new Map<string, number>();
  readonly #delayed = new Map<string, DelayedKey>();
  readonly #due = new Heap<DelayedKey>((a, b) => a.dueMs < b.dueMs);
  readonly #failures = new Map<string, number>();
  readonly #workers: ((key: string | undefined) => void)[] = [];
  readonly #idle = Promise.withResolvers<void>();
  readonly #gauges: (() => void)[];
  readonly #labels: { readonly name: string; readonly controller: string };
  #sequence = 0;
  #timer: Cancel | undefined;
  #isStopped = false;

  constructor(options: QueueOptions) {
    const { timing, metrics, name } = options;
    this.#options = options;
    this.#retryRate = createBucket(options.retryRate ?? { perSecond: 10, burst: 100 }, timing);
    this.#labels = { name, controller: name };
    const ages = () => [...this.#working.values()].map((sinceMs) => (timing.monotonicMs() - sinceMs) / 1000);
    this.#gauges = [
      metrics.queue.depth.add(this.#labels, () => this.depth),
      metrics.queue.unfinished.add(this.#labels, () => ages().reduce((sum, age) => sum + age, 0)),
      metrics.queue.longest.add(this.#labels, () => Math.max(0, ...ages())),
    ];
  }

  /** Number of keys that wait for a worker, without delayed keys. */
  get depth(): number {
    return [...this.#dirty.keys()].filter((key) => !this.#working.has(key)).length;
  }

  /** Adds a key; raises the priority of a queued key if the new one is higher. */
  add(key: string, urgency: number = priority.normal): void {
    if (this.#isStopped) return;
    const before = this.#dirty.get(key);
    if (before !== undefined && before.priority >= urgency) return;
    const now = this.#options.timing.monotonicMs();
    this.#sequence += 1;
    const pending = {
      key,
      priority: urgency,
      sequence: before?.sequence ?? this.#sequence,
      sinceMs: before?.sinceMs ?? now,
    };
    this.#dirty.set(key, pending);
    if (before === undefined) this.#options.metrics.queue.adds.inc(this.#labels);
    if (!this.#working.has(key)) this.#enqueue(pending);
  }

  /** Adds a key after `ms` milliseconds. Of several delays the earliest applies. */
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
    this.#armTimer();
  }

  /**
   * Adds a failed key with exponential backoff, not before `atLeastMs` milliseconds.
   * @returns the delay in milliseconds
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

  /** Resets the failure count of a key, after a success or when it is not retried. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** Failures in a row. */
  failures(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  /** The next key, held by the caller until `done`; undefined once the queue has stopped. */
  take(): Promise<string | undefined> {
    return new Promise((resolve) => {
      this.#workers.push(resolve);
      this.#dispatch();
    });
  }

  /** Releases a key. */
  done(key: string): void {
    const { timing, metrics } = this.#options;
    const sinceMs = this.#working.get(key);
    if (sinceMs === undefined) return;
    this.#working.delete(key);
    metrics.queue.worked.observe(this.#labels, (timing.monotonicMs() - sinceMs) / 1000);
    const again = this.#dirty.get(key);
    if (again !== undefined) this.#enqueue(again);
    this.#resolveWhenIdle();
  }

  /** Stops the queue; resolves when every key in progress is released. Queued keys are dropped: the cluster has their state. */
  stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.();
    for (const end of this.#gauges) end();
    this.#dispatch();
    this.#resolveWhenIdle();
    return this.#idle.promise;
  }

  #resolveWhenIdle(): void {
    if (this.#isStopped && this.#working.size === 0) this.#idle.resolve();
  }

  #enqueue(pending: PendingKey): void {
    this.#ready.push(pending);
    this.#dispatch();
  }

  #dispatch(): void {
    if (this.#isStopped) {
      for (const worker of this.#workers.splice(0)) worker(undefined);
      return;
    }
    while (this.#workers.length > 0) {
      const key = this.#takeNext();
      if (key === undefined) return;
      this.#workers.shift()?.(key);
    }
  }

  /** Takes the first ready key; skips heap entries that are no longer current. */
  #takeNext(): string | undefined {
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

  /** Keeps one timer, for the earliest delayed key. */
  #armTimer(): void {
    this.#timer?.();
    this.#timer = undefined;
    const now = this.#options.timing.monotonicMs();
    for (let next = this.#due.first(); next !== undefined; next = this.#due.first()) {
      const isCurrent = this.#delayed.get(next.key) === next;
      if (isCurrent && next.dueMs > now) {
        this.#timer = this.#options.timing.after(next.dueMs - now, () => this.#armTimer());
        return;
      }
      this.#due.pop();
      if (!isCurrent) continue;
      this.#delayed.delete(next.key);
      this.add(next.key, next.priority);
    }
  }
}
