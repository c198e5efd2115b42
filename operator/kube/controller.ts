import { AppError, isAppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import { isApiError, TerminalError } from './errors.ts';
import type { KubeMetrics } from './metrics.ts';
import { priority, WorkQueue } from './queue.ts';
import type { Timing } from './time.ts';

/** What a reconcile gets besides its key. */
export interface ReconcileContext {
  /** Aborted when the time is up or the controller stops; every call it makes must take it. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Failures in a row before this one. */
  readonly failures: number;
}

/** When to come back although nothing has happened. Without it the next event decides. */
export interface ReconcileResult {
  readonly requeueAfterMs?: number;
}

/**
 * Makes the world of one object as it should be, from what is there and not from what has happened: it may be called
 * at any time, for an object that is gone as well.
 * @throws TerminalError when only a change of the object can help; every other error is tried again, later each time
 */
export type Reconcile = (key: string, context: ReconcileContext) => Promise<ReconcileResult | undefined>;

export interface ControllerOptions {
  readonly name: string;
  readonly reconcile: Reconcile;
  readonly timing: Timing;
  readonly metrics: KubeMetrics;
  readonly log: Logger;
  /** 4 when absent. */
  readonly workers?: number;
}

/** A reconcile that takes longer is aborted. */
const DEADLINE_MS = 60_000;

/** Workers that reconcile the keys of a queue. */
export class Controller {
  readonly queue: WorkQueue;
  readonly #options: ControllerOptions;
  readonly #running = new Set<AbortController>();
  readonly #readings: (() => void)[];
  #workers: Promise<void>[] = [];

  constructor(options: ControllerOptions) {
    const { name, timing, metrics } = options;
    this.#options = options;
    this.queue = new WorkQueue({ name, timing, metrics });
    this.#readings = [
      metrics.controller.active.add({ controller: name }, () => this.#running.size),
      metrics.controller.most.add({ controller: name }, () => options.workers ?? 4),
    ];
  }

  /** Begins to work; call it when the caches are synced and, for a controller that writes, when the process leads. */
  start(): void {
    if (this.#workers.length > 0) return;
    this.#workers = Array.from({ length: this.#options.workers ?? 4 }, () => this.#work());
  }

  /** Takes nothing new; reconciles under way may end within `graceMs` milliseconds and are aborted then. */
  async stop(graceMs = 25_000): Promise<void> {
    const stopped = new AppError('unavailable', 'CONTROLLER_STOPPED', 'The controller stops');
    const cancel = this.#options.timing.after(graceMs, () => {
      for (const running of this.#running) running.abort(stopped);
    });
    await this.queue.stop();
    await Promise.all(this.#workers);
    cancel();
    for (const end of this.#readings) end();
  }

  async #work(): Promise<void> {
    for (let key = await this.queue.take(); key !== undefined; key = await this.queue.take()) {
      await this.#once(key);
      this.queue.done(key);
    }
  }

  async #once(key: string): Promise<void> {
    const { name, timing, metrics } = this.#options;
    const log = this.#options.log.child({ component: name, subject: key });
    const running = new AbortController();
    this.#running.add(running);
    const cancel = timing.after(DEADLINE_MS, () => {
      metrics.controller.timeouts.inc({ controller: name });
      running.abort(new AppError('timeout', 'RECONCILE_TIMEOUT', `Not done within ${DEADLINE_MS} ms`));
    });
    const fromMs = timing.monotonicMs();
    let result = 'error';
    try {
      const failures = this.queue.failures(key);
      result = this.#settle(
        key,
        await this.#options.reconcile(key, { signal: running.signal, log, failures }),
      );
    } catch (error) {
      this.#fail(key, error, log);
    } finally {
      cancel();
      this.#running.delete(running);
      metrics.controller.total.inc({ controller: name, result });
      metrics.controller.duration.observe({ controller: name }, (timing.monotonicMs() - fromMs) / 1000);
    }
  }

  #settle(key: string, outcome: ReconcileResult | undefined): string {
    this.queue.forget(key);
    if (outcome?.requeueAfterMs === undefined) return 'success';
    this.queue.addAfter(key, outcome.requeueAfterMs, priority.background);
    return 'requeue_after';
  }

  #fail(key: string, error: unknown, log: Logger): void {
    const { controller } = this.#options.metrics;
    const labels = { controller: this.#options.name };
    controller.errors.inc(labels);
    if (error instanceof TerminalError) {
      controller.terminal.inc(labels);
      this.queue.forget(key);
      log.warn({ err: error }, 'Reconcile cannot succeed until the object changes');
      return;
    }
    // what is thrown on purpose is an AppError; the rest is an error of the program
    const isExpected = isAppError(error);
    if (!isExpected) controller.panics.inc(labels);
    const askedMs = isApiError(error) ? error.retryAfterMs : undefined;
    const waitMs = this.queue.retry(key, askedMs);
    const fields = { err: error, attempt: this.queue.failures(key), durationMs: Math.round(waitMs) };
    if (isExpected) log.warn(fields, 'Reconcile failed and is tried again');
    else log.error(fields, 'Reconcile hit an error of the program and is tried again');
  }
}
