import { parentPort } from 'node:worker_threads';
import type { Counts } from './coverage.ts';
import { simulate } from './run.ts';

/** One thread's result of a seed. */
export interface Report {
  readonly seed: number;
  readonly isBroken: boolean;
  readonly dockets: number;
  readonly events: number;
  readonly covered: Counts;
}

// Runs the seeds it receives, one after the other.
parentPort?.on('message', (seed: number) => {
  void simulate(seed).then(({ broken, dockets, events, covered }) =>
    parentPort?.postMessage({
      seed,
      isBroken: broken !== undefined,
      dockets,
      events,
      covered,
    } satisfies Report),
  );
});
