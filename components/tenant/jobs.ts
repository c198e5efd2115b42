import type { Logger } from '#kit/log/log.ts';

/** A periodic job; a failed run is logged and the next run retries. */
export interface Job {
  readonly name: string;
  readonly everyMs: number;
  run(): Promise<unknown>;
}

export interface Jobs {
  /** Stops the timers and waits for running jobs. */
  stop(): Promise<void>;
}

export function startJobs(jobs: readonly Job[], log: Logger): Jobs {
  const stops = jobs.map((job) => startJob(job, log));
  return {
    stop: async () => {
      await Promise.all(stops.map((stop) => stop()));
    },
  };
}

function startJob(job: Job, log: Logger): () => Promise<void> {
  let stopped = false;
  let running: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout;
  const turn = async () => {
    try {
      await job.run();
    } catch (error) {
      log.error({ err: error, job: job.name }, 'job failed');
    }
    if (!stopped) schedule();
  };
  const schedule = () => {
    timer = setTimeout(() => {
      running = turn();
    }, job.everyMs);
    timer.unref();
  };
  schedule();
  return async () => {
    stopped = true;
    clearTimeout(timer);
    await running;
  };
}
