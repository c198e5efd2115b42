import type { Logger } from '#kit/log/log.ts';

/** Work that comes again; a run that fails is logged and the next one tries again. */
export interface Job {
  readonly name: string;
  readonly everyMs: number;
  run(): Promise<unknown>;
}

export interface Jobs {
  /** Ends the timers and waits for what is running. */
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
