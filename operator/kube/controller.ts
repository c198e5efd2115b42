import { isAppError } from '#core/errors/errors.ts';
import type { Timing } from '#kit/clock/timing.ts';
import type { Logger } from '#kit/log/log.ts';
import { operatorError } from '../errors.ts';
import { isApiError, TerminalError } from './errors.ts';
import type { KubeMetrics } from './metrics.ts';
import { priority, WorkQueue } from './queue.ts';

/** Context of a reconcile. */
export interface ReconcileContext {
  /** Aborted at the deadline or when the controller stops; every call must use it. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Consecutive failures before this reconcile. */
  readonly failures: number;
}

/** Delay after which the key is queued again without an event. */
export interface Requeue {
  readonly requeueAfterMs?: number;
}

/**
 * Brings the actual state of one object to its desired state. It is level-based: it may be called at any time, also for a
 * deleted object.
 * @throws TerminalError when only a change of the object can help; all other errors are retried with backoff
 */
export type Reconcile = (key: string, context: ReconcileContext) => Promise<Requeue | undefined>;

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
const deadlineMs = 60_000;

/** Workers that reconcile the keys of a queue. */
export class Controller {
  readonly queue: WorkQueue;
  readonly #options: ControllerOptions;
  readonly #running = new Set<AbortController>();
  readonly #gauges: (() => void)[];
  #workers: Promise<void>[] = [];

  constructor(options: ControllerOptions) {
    const { name, timing, metrics } = options;
    this.#options = options;
    this.queue = new WorkQueue({ name, timing, metrics });
    this.#gauges = [
      metrics.controller.active.add({ controller: name }, () => this.#running.size),
      metrics.controller.most.add({ controller: name }, () => options.workers ?? 4),
    ];
  }

  /** Starts the workers. The caches must be synced, and the process must lead if the controller writes. */
  start(): void {
    if (this.#workers.length > 0) return;
    this.#workers = Array.from({ length: this.#options.workers ?? 4 }, () => this.#work());
  }

  /** Stops the queue; running reconciles are aborted after `graceMs` milliseconds. */
  async stop(graceMs = 25_000): Promise<void> {
    const stopped = operatorError('CONTROLLER_STOPPED', 'The controller was stopped');
    const cancel = this.#options.timing.after(graceMs, () => {
      for (const running of this.#running) running.abort(stopped);
    });
    await this.queue.stop();
    await Promise.all(this.#workers);
    cancel();
    for (const end of this.#gauges) end();
  }

  async #work(): Promise<void> {
    for (let key = await this.queue.take(); key !== undefined; key = await this.queue.take()) {
      await this.#reconcileOnce(key);
      this.queue.done(key);
    }
  }

  async #reconcileOnce(key: string): Promise<void> {
    const { name, timing, metrics } = this.#options;
    const log = this.#options.log.child({ component: name, subject: key });
    const running = new AbortController();
    this.#running.add(running);
    const cancel = timing.after(deadlineMs, () => {
      metrics.controller.timeouts.inc({ controller: name });
      running.abort(
        operatorError('RECONCILE_TIMEOUT', `The reconcile did not finish within ${deadlineMs} ms`),
      );
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

  #settle(key: string, outcome: Requeue | undefined): string {
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
    // expected errors are AppErrors; all others are bugs
    const isExpected = isAppError(error);
    if (!isExpected) controller.panics.inc(labels);
    const askedMs = isApiError(error) ? error.retryAfterMs : undefined;
    const waitMs = this.queue.retry(key, askedMs);
    const fields = { err: error, attempt: this.queue.failures(key), durationMs: Math.round(waitMs) };
    if (isExpected) log.warn(fields, 'Reconcile failed and is retried');
    else log.error(fields, 'Reconcile failed with an unexpected error and is retried');
  }
}
