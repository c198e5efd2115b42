import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { Totals } from './coverage.ts';
import { simulate } from './run.ts';
import { describeScenario } from './scenario.ts';
import type { Report } from './worker.ts';

/** Number of consecutive seeds that covers everything the simulator can do. */
const enoughSeeds = 200;

const usage = `Runs simulated worlds of validators, one for each seed, and judges every event.

  --seeds N     how many (200)
  --from N      the first seed (1)
  --workers N   threads (one for each core)
  --trace N     run in this thread and print the last N lines of each run

It ends with a table of what happened in how many seeds. With ${enoughSeeds} seeds or more, everything in it must have
happened in one of them: a run that leaves something out fails (1), like one that finds a broken invariant.
`;

interface RunOptions {
  readonly from: number;
  readonly seeds: number;
  readonly workers: number;
  readonly lines: number | undefined;
}

/** Undefined for invalid arguments. */
function parse(): RunOptions | undefined {
  const text = { type: 'string' } as const;
  try {
    const { values } = parseArgs({ options: { seeds: text, from: text, workers: text, trace: text } });
    const number = (value: string | undefined, otherwise: number) => Number(value || otherwise);
    const from = number(values.from, 1);
    const seeds = number(values.seeds, 200);
    const workers = Math.min(seeds, number(values.workers, availableParallelism()));
    const lines = values.trace === undefined ? undefined : Number(values.trace);
    const isRight = [from, seeds, workers, lines ?? 0].every(
      (each) => Number.isSafeInteger(each) && each >= 0,
    );
    return isRight && seeds > 0 && workers > 0 ? { from, seeds, workers, lines } : undefined;
  } catch {
    return undefined;
  }
}

/** The progress of a run, as one line that is overwritten on a terminal. */
function createProgress(seeds: number) {
  const startedMs = performance.now();
  let [done, dockets, events] = [0, 0, 0];
  return {
    take(report: Report): void {
      done += 1;
      dockets += report.dockets;
      events += report.events;
      const seconds = (performance.now() - startedMs) / 1000;
      const left = Math.ceil((seconds / done) * (seeds - done));
      const line = `${done} of ${seeds} seeds, ${dockets} dockets, ${events} events, ${left} s left`;
      if (process.stdout.isTTY) process.stdout.write(`\r${line}   `);
      else if (done % 100 === 0) process.stdout.write(`${line}\n`);
    },
    get seconds(): string {
      return ((performance.now() - startedMs) / 1000).toFixed(1);
    },
  };
}

/** The seed that failed, if any; no new seed is started after that. */
function runAll(
  { from, seeds, workers }: RunOptions,
  take: (report: Report) => void,
): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const threads = Array.from({ length: workers }, () => new Worker(new URL('./worker.ts', import.meta.url)));
  let [next, left] = [from, seeds];
  const give = (thread: Worker) => {
    if (next < from + seeds) thread.postMessage(next);
    next += 1;
  };
  for (const thread of threads) {
    thread.on('error', reject);
    thread.on('message', (report: Report) => {
      left -= 1;
      take(report);
      if (report.isBroken || left === 0) resolve(report.isBroken ? report.seed : undefined);
      else give(thread);
    });
    give(thread);
  }
  return promise.finally(() => Promise.all(threads.map((thread) => thread.terminate())));
}

/** Runs one seed in this thread and prints its trace; returns whether an invariant was broken. */
async function show(seed: number, lines: number): Promise<boolean> {
  const { broken, trace, scenario } = await simulate(seed);
  process.stdout.write(`\n${trace.slice(-lines).join('\n')}\n`);
  if (broken === undefined) return false;
  process.stdout.write(
    `\nSeed ${seed} fails (${describeScenario(scenario)})\n${broken.invariant}: ${broken.message}\n` +
      `Again: make simulate SEEDS=1 FROM=${seed}\n`,
  );
  return true;
}

async function run(given: RunOptions): Promise<number> {
  const { from, seeds, lines } = given;
  if (lines !== undefined) {
    for (let seed = from; seed < from + seeds; seed += 1) if (await show(seed, lines)) return 1;
    return 0;
  }
  const progress = createProgress(seeds);
  const totals = new Totals();
  const failed = await runAll(given, (report) => {
    progress.take(report);
    totals.take(report.covered);
  });
  if (failed !== undefined) {
    const isAgain = await show(failed, 400);
    if (!isAgain)
      process.stdout.write(`Seed ${failed} failed and does not fail again: it is not deterministic\n`);
    return 1;
  }
  process.stdout.write(`\n\n${totals.table()}\n`);
  process.stdout.write(`\nNo invariant was broken in ${seeds} seeds from ${from} (${progress.seconds} s)\n`);
  if (seeds < enoughSeeds || totals.missing.length === 0) return 0;
  process.stdout.write(`These seeds say nothing about: ${totals.missing.join(', ')}\n`);
  return 1;
}

const options = parse();
if (options === undefined) {
  process.stderr.write(usage);
  process.exitCode = 2;
} else {
  process.exitCode = await run(options);
}
