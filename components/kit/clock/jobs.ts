import { isAppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Telemetry } from '#kit/telemetry/telemetry.ts';
import { type PollLoop, startPollLoop } from './poll-loop.ts';
import type { Timers } from './timing.ts';

/** Work that is repeated at an interval, one run at a time. */
export interface Job {
  /** Unique in its service; label of log lines and of the counter. */
  readonly name: string;
  /** Milliseconds from the end of a run to the next one; a function is called after each run. */
  readonly everyMs: number | (() => number);
  /** Milliseconds until the first run, 0 for at once; one interval when absent. */
  readonly firstMs?: number;
  /**
   * One run. A failure ends only this run.
   * @param signal aborts at `stop`, for runs of many steps
   */
  run(signal: AbortSignal): Promise<unknown>;
}

export interface JobOptions {
  readonly log: Logger;
  readonly telemetry: Pick<Telemetry, 'counter'>;
  /** Those of the process when absent; they do not keep it alive. */
  readonly timers?: Timers | undefined;
}

/** The jobs of a service. */
interface Jobs {
  /** Resolves when the runs under way are over; no other run begins. */
  stop(): Promise<void>;
}

/** Starts several jobs; each of them runs independently of the others. */
export function startJobs(jobs: readonly Job[], options: JobOptions): Jobs {
  const loops = jobs.map((job) => startJob(job, options));
  return {
    stop: async () => {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}

/**
 * Starts one job. Each failed run is counted in `job_failures_total` by the job's name. The first one of a series is
 * logged: a dependency that is unavailable as a warning, everything else as an error. The run that succeeds again is
 * logged with the number of failures.
 */
export function startJob(job: Job, { log, telemetry, timers }: JobOptions): PollLoop {
  const failures = telemetry.counter('job_failures_total', 'Runs of periodic jobs that failed', ['job']);
  const ending = new AbortController();
  const intervalMs = () => (typeof job.everyMs === 'number' ? job.everyMs : job.everyMs());
  let failed = 0;

  async function run(): Promise<void> {
    try {
      await job.run(ending.signal);
      if (failed > 0) log.info({ job: job.name, failures: failed }, 'job succeeds again');
      failed = 0;
    } catch (error) {
      // A run that stop interrupts has not failed.
      if (ending.signal.aborted) return;
      failures.inc({ job: job.name });
      failed += 1;
      if (failed === 1) log[levelOf(error)]({ err: error, job: job.name }, 'job failed');
    }
  }

  const loop = startPollLoop(
    async () => {
      await run();
      return intervalMs();
    },
    { firstMs: job.firstMs ?? intervalMs(), timers },
  );
  return {
    wake: loop.wake,
    stop: () => {
      ending.abort();
      return loop.stop();
    },
  };
}

function levelOf(error: unknown): 'warn' | 'error' {
  return isAppError(error, 'unavailable') || isAppError(error, 'timeout') ? 'warn' : 'error';
}
