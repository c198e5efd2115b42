import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { type ManualTiming, manualTiming, settle } from '#kit/testing/manual-timing.ts';
import { type TestRuntime, testRuntime } from '#kit/testing/runtime.ts';
import { type Job, startJob, startJobs } from './jobs.ts';

describe('a job', () => {
  let timing: ManualTiming;
  let runtime: TestRuntime;
  let ranAtMs: number[];

  beforeEach(() => {
    timing = manualTiming();
    runtime = testRuntime('test');
    ranAtMs = [];
  });

  const start = (job: Partial<Job> = {}) => {
    const run = async (signal: AbortSignal) => {
      ranAtMs.push(timing.monotonicMs());
      await job.run?.(signal);
    };
    return startJob({ name: 'sweep', everyMs: 1_000, ...job, run }, { ...runtime, timers: timing });
  };
  const lines = () => runtime.lines.map(({ level, msg, job }) => ({ level, msg, job }));
  const failures = () =>
    runtime.telemetry.registry.getSingleMetricAsString('chancery_test_job_failures_total');

  it('runs after one interval, and repeats', async () => {
    const job = start();
    await timing.advance(999);
    expect(ranAtMs).toEqual([]);
    await timing.advance(2_001);
    expect(ranAtMs).toEqual([1_000, 2_000, 3_000]);
    await job.stop();
    await timing.advance(10_000);
    expect(ranAtMs).toHaveLength(3);
  });

  it('has a first run of its own time', async () => {
    const [atOnce, later] = [start({ firstMs: 0 }), start({ firstMs: 300 })];
    await timing.advance(1_300);
    expect(ranAtMs).toEqual([0, 300, 1_000, 1_300]);
    await Promise.all([atOnce.stop(), later.stop()]);
  });

  it('asks for its interval after each run', async () => {
    const job = start({ firstMs: 0, everyMs: () => ranAtMs.length * 100 });
    await timing.advance(600);
    expect(ranAtMs).toEqual([0, 100, 300, 600]);
    await job.stop();
  });

  it('counts the interval from the end of a run', async () => {
    const job = start({ run: () => new Promise((resolve) => void timing.after(2_500, () => resolve(0))) });
    await timing.advance(5_000);
    expect(ranAtMs).toEqual([1_000, 4_500]);
    const stopped = job.stop();
    await timing.advance(2_500);
    await stopped;
  });

  it('runs at once when it is woken, and again after a run during which it was woken', async () => {
    const ends = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const job = start({ run: async () => ends[ranAtMs.length - 1]?.promise });
    job.wake();
    await settle();
    job.wake();
    job.wake();
    await settle();
    expect(ranAtMs).toEqual([0]);
    ends[0]?.resolve();
    await settle();
    expect(ranAtMs).toEqual([0, 0]);
    ends[1]?.resolve();
    await job.stop();
  });

  it('logs the first failure of a series and the end of it, and counts all of them', async () => {
    let fault: Error | undefined = new Error('broken');
    const job = start({ run: () => (fault === undefined ? Promise.resolve() : Promise.reject(fault)) });
    await timing.advance(3_000);
    expect(lines()).toEqual([{ level: 'error', msg: 'job failed', job: 'sweep' }]);
    expect(await failures()).toContain('{job="sweep"} 3');
    fault = undefined;
    await timing.advance(2_000);
    expect(lines().slice(1)).toEqual([{ level: 'info', msg: 'job succeeds again', job: 'sweep' }]);
    expect(runtime.lines[1]).toMatchObject({ failures: 3 });
    fault = new Error('broken again');
    await timing.advance(1_000);
    expect(lines()).toHaveLength(3);
    await job.stop();
  });

  it('logs an unavailable dependency as a warning', async () => {
    const away = new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'no answer');
    const job = start({ run: () => Promise.reject(away) });
    await timing.advance(1_000);
    expect(lines()).toEqual([{ level: 'warn', msg: 'job failed', job: 'sweep' }]);
    await job.stop();
  });

  it('waits at its stop for the run under way, which learns of it', async () => {
    const job = start({
      firstMs: 0,
      run: (signal) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    });
    await settle();
    await job.stop();
    expect(ranAtMs).toEqual([0]);
    expect(lines()).toEqual([]);
  });

  it('does not begin when it is stopped before its first run', async () => {
    await start().stop();
    await timing.advance(10_000);
    expect(ranAtMs).toEqual([]);
  });
});

describe('several jobs', () => {
  it('run independently, and stop together', async () => {
    const timing = manualTiming();
    const ran: string[] = [];
    const job = (name: string, everyMs: number, end: () => Promise<void>): Job => ({
      name,
      everyMs,
      run: () => {
        ran.push(name);
        return end();
      },
    });
    const slow = Promise.withResolvers<void>();
    const jobs = startJobs(
      [
        job('slow', 10, () => slow.promise),
        job('failing', 10, () => Promise.reject(new Error('broken'))),
        job('fast', 10, () => Promise.resolve()),
      ],
      { ...testRuntime('test'), timers: timing },
    );
    await timing.advance(30);
    expect(ran.toSorted()).toEqual(['failing', 'failing', 'failing', 'fast', 'fast', 'fast', 'slow']);
    let isOver = false;
    const stopped = jobs.stop().then(() => {
      isOver = true;
    });
    await settle();
    expect(isOver).toBe(false);
    slow.resolve();
    await stopped;
  });
});
