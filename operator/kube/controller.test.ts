import { describe, expect, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { sleep } from '#kit/clock/timing.ts';
import { manualTiming, settle } from '#kit/testing/manual-timing.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { Controller, type ControllerOptions, type Reconcile } from './controller.ts';
import { ApiError, TerminalError } from './errors.ts';
import { priority } from './queue.ts';
import { testMetrics, widgets } from './testing/fixtures.ts';

function open(reconcile: Reconcile, options: Partial<ControllerOptions> = {}) {
  const timing = manualTiming();
  const counted = testMetrics();
  const { log } = testRuntime('operator');
  const { metrics } = counted;
  const controller = new Controller({ name: 'widget', reconcile, timing, metrics, log, ...options });
  controller.start();
  return { controller, timing, read: counted.read };
}

describe('a reconcile', () => {
  test('that succeeded is done, or is repeated after the requested delay', async () => {
    const runs: string[] = [];
    const { controller, timing, read } = open((key) => {
      runs.push(key);
      return Promise.resolve(runs.length === 1 ? { requeueAfterMs: 60_000 } : undefined);
    });
    controller.queue.add('a');
    await timing.advance(59_999);
    expect(runs).toEqual(['a']);
    await timing.advance(1_000_000);
    expect(runs).toEqual(['a', 'a']);
    expect(await read('controller_runtime_reconcile_total', { result: 'requeue_after' })).toBe(1);
    expect(await read('controller_runtime_reconcile_total', { result: 'success' })).toBe(1);
  });

  test('that failed is retried with backoff and gets the number of failures', async () => {
    const runs: { readonly atMs: number; readonly failures: number }[] = [];
    const { controller, timing, read } = open((_, { failures }) => {
      runs.push({ atMs: timing.monotonicMs(), failures });
      if (runs.length < 4) throw new AppError('unavailable', 'AWAY', 'Not there');
      return Promise.resolve(undefined);
    });
    controller.queue.add('a');
    await timing.advance(10_000);
    expect(runs).toEqual([
      { atMs: 0, failures: 0 },
      { atMs: 100, failures: 1 },
      { atMs: 300, failures: 2 },
      { atMs: 700, failures: 3 },
    ]);
    expect(controller.queue.failures('a')).toBe(0);
    expect(await read('controller_runtime_reconcile_errors_total')).toBe(3);
    expect(await read('controller_runtime_reconcile_panics_total')).toBe(0);
  });

  test('with an unexpected error counts as a panic and affects no other key', async () => {
    const runs: string[] = [];
    const { controller, timing, read } = open((key) => {
      runs.push(key);
      if (key === 'bad') throw new TypeError('x is not a function');
      return Promise.resolve(undefined);
    });
    controller.queue.add('bad');
    controller.queue.add('good');
    await timing.advance(250);
    expect(runs.filter((key) => key === 'good')).toHaveLength(1);
    expect(await read('controller_runtime_reconcile_panics_total')).toBe(2);
  });

  test('with a terminal error is repeated only after a change of the object', async () => {
    let runs = 0;
    const { controller, timing, read } = open(() => {
      runs += 1;
      throw new TerminalError('POLICY_REJECTED', 'The policy was refused');
    });
    controller.queue.add('a');
    await timing.advance(3_600_000);
    expect(runs).toBe(1);
    controller.queue.add('a', priority.edit);
    await timing.advance(1);
    expect(runs).toBe(2);
    expect(await read('controller_runtime_terminal_reconcile_errors_total')).toBe(2);
  });

  test('is not retried before the Retry-After of the API server', async () => {
    let runs = 0;
    const request = { verb: 'get', resource: widgets } as const;
    const { controller, timing } = open(() => {
      runs += 1;
      throw new ApiError('TooManyRequests', request, 'slow down', { status: 429, retryAfterMs: 90_000 });
    });
    controller.queue.add('a');
    await timing.advance(89_999);
    expect(runs).toBe(1);
    await timing.advance(2);
    expect(runs).toBe(2);
  });

  test('that exceeds its deadline is aborted and retried; no other worker gets its key before it has ended', async () => {
    const ended = Promise.withResolvers<void>();
    let runs = 0;
    const { controller, timing, read } = open(async (_, { signal }) => {
      runs += 1;
      if (runs > 1) return undefined;
      await sleep(timing, 1e9, signal).catch(() => undefined);
      await ended.promise;
      return signal.throwIfAborted() ?? undefined;
    });
    controller.queue.add('a');
    await timing.advance(60_000);
    expect(await read('controller_runtime_reconcile_timeouts_total')).toBe(1);
    controller.queue.add('a');
    await timing.advance(1_000);
    expect(runs).toBe(1);
    ended.resolve();
    await settle();
    await timing.advance(1_000);
    expect(runs).toBeGreaterThanOrEqual(2);
    expect(await read('controller_runtime_reconcile_panics_total')).toBe(0);
  });
});

test('four keys are processed at once, none of them twice', async () => {
  const working = new Set<string>();
  let most = 0;
  const { controller, timing, read } = open(async (key) => {
    expect(working.has(key)).toBe(false);
    working.add(key);
    most = Math.max(most, working.size);
    await sleep(timing, 50);
    working.delete(key);
    return undefined;
  });
  for (let round = 0; round < 5; round += 1) {
    for (let key = 0; key < 10; key += 1) controller.queue.add(`k${key}`);
    await timing.advance(40);
  }
  expect(await read('controller_runtime_active_workers')).toBe(4);
  await timing.advance(1_000);
  expect(most).toBe(4);
  expect(await read('controller_runtime_reconcile_errors_total')).toBe(0);
});

test('an edit is served within a second among a thousand creations', async () => {
  let servedAtMs: number | undefined;
  const { controller, timing } = open(async (key) => {
    await sleep(timing, 80);
    if (key === 'person') servedAtMs ??= timing.monotonicMs();
    return undefined;
  });
  for (let each = 0; each < 1_000; each += 1) controller.queue.add(`new-${each}`);
  await timing.advance(2_000);
  controller.queue.add('person', priority.edit);
  await timing.advance(1_000);
  expect(servedAtMs).toBeLessThanOrEqual(3_000);
  expect(controller.queue.depth).toBeGreaterThan(500);
});

test('stopping lets reconciles end and aborts the others after the grace time', async () => {
  const log: string[] = [];
  const { controller, timing } = open(async (key, { signal }) => {
    await sleep(timing, key === 'short' ? 1_000 : 1e9, signal).catch(() => log.push(`${key} aborted`));
    log.push(`${key} ended`);
    return undefined;
  });
  for (const key of ['short', 'long']) controller.queue.add(key);
  await settle();
  controller.queue.add('short');
  const stopped = controller.stop(5_000);
  await timing.advance(4_999);
  expect(log).toEqual(['short ended']);
  await timing.advance(1);
  await stopped;
  expect(log).toEqual(['short ended', 'long aborted', 'long ended']);
});
