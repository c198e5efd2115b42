import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ApiServer } from './testing/api-server.ts';
import { passing, widgets } from './testing/fixtures.ts';
import {
  edit,
  isEqual,
  lists,
  openReflector,
  type ReflectorBench,
  start,
  watching,
} from './testing/reflector.ts';

let bench: ReflectorBench;

beforeEach(async () => {
  bench = await openReflector();
});

afterEach(() => bench.close());

describe('a kind that only some clusters have', () => {
  const absent: ApiServer['intercept'] = ({ target }) =>
    target.plural === widgets.plural ? { status: 404, reason: 'NotFound' } : undefined;
  let news: boolean[];

  beforeEach(async () => {
    await bench.close();
    news = [];
    bench = await openReflector({ isOptional: true, onServed: (isServed) => void news.push(isServed) });
    bench.server.intercept = absent;
  });

  test('is done without: listed, never stale, no fault, a call every five minutes', async () => {
    bench.reflector.start();
    await bench.reflector.synced;
    const beganMs = bench.timing.monotonicMs();
    await passing(bench.timing, 'twelve looks', () => lists(bench).length === 13, 10_000);
    const tookMs = bench.timing.monotonicMs() - beganMs;
    expect(tookMs).toBeGreaterThanOrEqual(12 * 300_000);
    expect(tookMs).toBeLessThan(12 * 330_000);
    expect(bench.reflector.isServed).toBe(false);
    expect(bench.reflector.isSynced).toBe(true);
    expect(bench.reflector.fault).toBeUndefined();
    expect(bench.reflector.ageMs()).toBe(0);
    expect(news).toEqual([]);
  });

  test('is noticed when it arrives, and when it goes its objects go too', async () => {
    bench.reflector.start();
    await bench.reflector.synced;
    edit(bench, 'a', 1);
    bench.server.intercept = () => undefined;
    await passing(bench.timing, 'its arrival', () => bench.reflector.isServed && isEqual(bench), 10_000);
    expect(bench.store.size).toBe(1);
    await passing(bench.timing, 'the watch', () => watching(bench) !== undefined);
    bench.server.intercept = absent;
    watching(bench)?.break('end');
    await passing(bench.timing, 'its end', () => !bench.reflector.isServed);
    expect(bench.store.size).toBe(0);
    expect(news).toEqual([true, false]);
  });

  test('is missed like any other when the role does not allow it', async () => {
    bench.server.intercept = () => ({ status: 403, reason: 'Forbidden' });
    bench.reflector.start();
    await passing(bench.timing, 'the fault', () => bench.reflector.fault !== undefined);
    expect(bench.reflector.isSynced).toBe(false);
    expect(String(bench.reflector.fault)).toContain('list widgets.test.dev');
  });
});

describe('a renewal', () => {
  test('shows what a half-open connection kept back, by a list from the store behind the server', async () => {
    edit(bench, 'a', 1);
    const watch = await start(bench);
    watch.break('freeze');
    edit(bench, 'a', 2);
    const tried = bench.reflector.renew();
    expect(bench.reflector.isSynced).toBe(false);
    const synced = bench.reflector.synced;
    await passing(bench.timing, 'the list', () => bench.reflector.isSynced, 0);
    await Promise.all([tried, synced]);
    expect(isEqual(bench)).toBe(true);
    expect(lists(bench).at(-1)?.query).not.toHaveProperty('resourceVersion');
    await passing(bench.timing, 'a watch', () => watching(bench) !== undefined, 0);
    expect(bench.reflector.fault).toBeUndefined();
    expect(await bench.counted.read('informer_stream_failures_total')).toBe(0);
  });

  test('does not take a list that was asked for before it', async () => {
    edit(bench, 'a', 1);
    let asked = 0;
    bench.server.intercept = ({ isWatch }) => {
      if (!isWatch) asked += 1;
      if (asked === 1) void bench.reflector.renew();
      return undefined;
    };
    await start(bench);
    expect(lists(bench).map(({ query }) => 'resourceVersion' in query)).toEqual([true, false]);
  });

  test('ends a pause, and whoever waits for it knows when it was refused', async () => {
    await start(bench);
    bench.server.intercept = () => ({ status: 403, reason: 'Forbidden' });
    await bench.reflector.renew();
    expect(bench.reflector.isSynced).toBe(false);
    expect(bench.reflector.fault).toMatchObject({ refusal: 'Forbidden' });
    bench.server.intercept = () => undefined;
    await bench.reflector.renew();
    await bench.reflector.synced;
  });
});
