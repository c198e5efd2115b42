import { AppError } from '#core/errors/errors.ts';
import { startPollLoop } from '#kit/clock/poll-loop.ts';
import type { Database } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Telemetry } from '#kit/telemetry/telemetry.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { createPendingDockets, type PendingDockets } from './pending.ts';
import { behindRegisters } from './progress/store.ts';
import type { IndexedDocket } from './rows.ts';
import { projectStored, writeBatch } from './store.ts';

/** Writes the index rows of stored dockets behind their commits. */
export interface Projector {
  /** A docket was stored by this process. */
  stored(registerNo: number, docket: IndexedDocket): void;
  /** A register may be behind. */
  wake(registerNo: number): void;
  /** Whether the last attempt for a register failed. */
  isFailing(registerNo: number): boolean;
  /** Resolves when rows of the register were written, or after `ms` milliseconds. */
  progress(registerNo: number, ms: number): Promise<void>;
  /**
   * For `/health`.
   * @throws AppError unavailable while index rows of a register cannot be written
   */
  assertWorking(): void;
  stop(): Promise<void>;
}

interface ProjectorDeps {
  readonly database: Pick<Database<RegisterSchema>, 'read' | 'pool'>;
  readonly log: Logger;
  readonly telemetry: Pick<Telemetry, 'counter' | 'gauge'>;
}

interface Failure {
  readonly count: number;
  readonly retryAtMs: number;
  readonly message: string;
}

/** Interval of the search for registers that are behind, such as those whose process ended after a commit. */
const searchMs = 5_000;
const mostFound = 1_000;
const everyRegister = { all: true, organizationId: undefined } as const;
const firstRetryMs = 100;
const longestRetryMs = 30_000;
/** A backlog from this number of dockets on is logged, at most once in an interval. */
const largeLag = 1_000;
const logMs = 10_000;
/**
 * A register has one attempt in this time, for all dockets of it: fewer, larger transactions cost less. A register at
 * rest, and one for which a query waits, has its attempt at once.
 */
const pacingMs = 200;
const mostPaced = 10_000;
const pendingBounds = { mostRows: 30_000, batchRows: 20_000 } as const;

const retryMs = (count: number) => Math.min(longestRetryMs, firstRetryMs * 2 ** Math.min(count, 10));

/** The registers that are behind with the time of their next attempt, and the failures of their last ones. */
function createBacklog(log: Logger) {
  const dueAt = new Map<number, number>();
  const failures = new Map<number, Failure>();
  const attemptAt = (registerNo: number, dueMs: number) =>
    Math.max(dueMs, failures.get(registerNo)?.retryAtMs ?? 0);

  /** The earliest of the requested times counts; a failure is not retried before its own time. */
  function request(registerNo: number, atMs: number): void {
    dueAt.set(registerNo, Math.min(atMs, dueAt.get(registerNo) ?? atMs));
  }

  return {
    request,
    begin: (registerNo: number): void => void dueAt.delete(registerNo),
    next(): number | undefined {
      const nowMs = performance.now();
      for (const [registerNo, dueMs] of dueAt) if (attemptAt(registerNo, dueMs) <= nowMs) return registerNo;
      return undefined;
    },
    /** Milliseconds until the next attempt is due. */
    untilNextMs(): number {
      const nowMs = performance.now();
      let ms = searchMs;
      for (const [registerNo, dueMs] of dueAt) ms = Math.min(ms, attemptAt(registerNo, dueMs) - nowMs);
      return Math.max(1, ms);
    },
    isFailing: (registerNo: number): boolean => failures.has(registerNo),
    failed(registerNo: number, error: unknown): void {
      const count = (failures.get(registerNo)?.count ?? 0) + 1;
      const message = error instanceof Error ? error.message : 'failed';
      failures.set(registerNo, { count, retryAtMs: performance.now() + retryMs(count), message });
      request(registerNo, 0);
      if (count === 1)
        log.error({ err: error, registerNo }, 'index rows cannot be written; queries are behind');
    },
    succeeded(registerNo: number): void {
      const before = failures.get(registerNo);
      if (before === undefined) return;
      failures.delete(registerNo);
      log.info({ registerNo, failures: before.count }, 'index rows are written again');
    },
    assertEmpty(): void {
      const [first] = failures;
      if (first === undefined) return;
      const [registerNo, { message }] = first;
      const text = `Index rows of ${failures.size} registers cannot be written, such as ${registerNo}: ${message}`;
      throw new AppError('unavailable', 'UNAVAILABLE', text);
    },
  };
}

/** Times of the last attempts, so that a busy register has one attempt for several dockets. */
function createPacing() {
  const lastAt = new Map<number, number>();
  return {
    begun(registerNo: number): void {
      if (lastAt.size >= mostPaced) lastAt.clear();
      lastAt.set(registerNo, performance.now());
    },
    nextAtMs: (registerNo: number): number =>
      Math.max(performance.now(), (lastAt.get(registerNo) ?? Number.NEGATIVE_INFINITY) + pacingMs),
  };
}

/** Callers that wait for rows of a register. */
function createProgress() {
  const waiting = new Map<number, Set<() => void>>();
  return {
    written(registerNo: number): void {
      for (const wake of waiting.get(registerNo) ?? []) wake();
    },
    async wait(registerNo: number, ms: number): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      const waiters = waiting.get(registerNo) ?? new Set();
      waiting.set(registerNo, waiters.add(resolve));
      const timer = setTimeout(resolve, ms);
      await promise;
      clearTimeout(timer);
      waiters.delete(resolve);
      if (waiters.size === 0) waiting.delete(registerNo);
    },
  };
}

/** `more`: the register may need another step. `busy`: another process is writing its rows. */
type Step = (registerNo: number) => Promise<'done' | 'more' | 'busy'>;

/** Builds the function of one bounded step. */
function createStep(
  { database, log }: Pick<ProjectorDeps, 'database' | 'log'>,
  pending: PendingDockets,
  onWritten: (registerNo: number) => void,
): Step {
  let loggedAtMs = Number.NEGATIVE_INFINITY;

  function logBacklog(registerNo: number, height: number, head: number): void {
    if (head - height < largeLag || performance.now() - loggedAtMs < logMs) return;
    loggedAtMs = performance.now();
    log.info(
      { registerNo, projected: height, height: head },
      'index rows are being written for older dockets',
    );
  }

  return async (registerNo) => {
    const dockets = pending.take(registerNo);
    if (dockets.length > 0 && (await writeBatch(database, { registerNo, dockets }))) {
      onWritten(registerNo);
      return pending.has(registerNo) ? 'more' : 'done';
    }
    const outcome = await projectStored(database, registerNo);
    if (outcome === 'busy') return 'busy';
    if (outcome === 'gone') return 'done';
    if (outcome.isWritten) onWritten(registerNo);
    logBacklog(registerNo, outcome.height, outcome.head);
    return outcome.isMore ? 'more' : 'done';
  };
}

/**
 * Starts the projector. One register after the other gets one bounded step, so a long backlog of one does not hold up
 * the others. Several processes may run it: the cursor of a register is advanced in the transaction of its rows.
 */
export function startProjector({ database, log, telemetry }: ProjectorDeps): Projector {
  const lagGauge = telemetry.gauge(
    'projection_lag_dockets',
    'Dockets of the register that is furthest behind.',
  );
  const failureCount = telemetry.counter(
    'projection_failures_total',
    'Attempts to write index rows that failed.',
  );
  const pending = createPendingDockets(pendingBounds);
  const backlog = createBacklog(log);
  const pacing = createPacing();
  const progress = createProgress();
  const step = createStep({ database, log }, pending, progress.written);
  let searchedAtMs = Number.NEGATIVE_INFINITY;
  let isStopped = false;

  async function attempt(registerNo: number): Promise<void> {
    backlog.begin(registerNo);
    pacing.begun(registerNo);
    try {
      const outcome = await step(registerNo);
      if (outcome === 'busy') {
        // Neither success nor failure. The other process may be writing older dockets only.
        backlog.request(registerNo, performance.now() + pacingMs);
        return;
      }
      if (outcome === 'more') backlog.request(registerNo, 0);
      backlog.succeeded(registerNo);
    } catch (error) {
      if (isStopped) return;
      failureCount.inc();
      pending.drop(registerNo);
      backlog.failed(registerNo, error);
    }
  }

  async function search(): Promise<void> {
    if (performance.now() - searchedAtMs < searchMs) return;
    searchedAtMs = performance.now();
    try {
      const found = await behindRegisters(database.read, { scope: everyRegister, limit: mostFound });
      lagGauge.set(found[0]?.largestLag ?? 0);
      for (const { registerNo } of found) backlog.request(registerNo, 0);
    } catch (error) {
      log.warn(
        { err: error },
        'registers whose index rows are behind could not be found; the search is repeated',
      );
    }
  }

  const loop = startPollLoop(async () => {
    await search();
    for (let next = backlog.next(); next !== undefined && !isStopped; next = backlog.next()) {
      await attempt(next);
      await search();
    }
    return backlog.untilNextMs();
  });

  function request(registerNo: number, atMs: number): void {
    backlog.request(registerNo, atMs);
    loop.wake();
  }

  return {
    stored(registerNo, docket) {
      pending.add(registerNo, docket);
      request(registerNo, pacing.nextAtMs(registerNo));
    },
    wake: (registerNo) => request(registerNo, 0),
    isFailing: backlog.isFailing,
    progress: progress.wait,
    assertWorking: backlog.assertEmpty,
    async stop() {
      isStopped = true;
      await loop.stop();
    },
  };
}
