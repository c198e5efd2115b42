import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ApiServer } from './testing/api-server.ts';
import { advanceUntil, widgets } from './testing/fixtures.ts';
import {
  edit,
  isEqual,
  lists,
  openReflector,
  type ReflectorHarness,
  start,
  watching,
} from './testing/reflector.ts';

let harness: ReflectorHarness;

beforeEach(async () => {
  harness = await openReflector();
});

afterEach(() => harness.close());

describe('an absent optional kind', () => {
  const absent: ApiServer['intercept'] = ({ target }) =>
    target.plural === widgets.plural ? { status: 404, reason: 'NotFound' } : undefined;
  let news: boolean[];

  beforeEach(async () => {
    await harness.close();
    news = [];
    harness = await openReflector({ isOptional: true, onServed: (isServed) => void news.push(isServed) });
    harness.server.intercept = absent;
  });

  test('counts as synced, is never stale, has no fault and costs a call every five minutes', async () => {
    harness.reflector.start();
    await harness.reflector.synced;
    const beganMs = harness.timing.monotonicMs();
    await advanceUntil(harness.timing, 'twelve looks', () => lists(harness).length === 13, 10_000);
    const tookMs = harness.timing.monotonicMs() - beganMs;
    expect(tookMs).toBeGreaterThanOrEqual(12 * 300_000);
    expect(tookMs).toBeLessThan(12 * 330_000);
    expect(harness.reflector.isServed).toBe(false);
    expect(harness.reflector.isSynced).toBe(true);
    expect(harness.reflector.fault).toBeUndefined();
    expect(harness.reflector.ageMs()).toBe(0);
    expect(news).toEqual([]);
  });

  test('is noticed when it becomes available; its objects are removed when it becomes unavailable', async () => {
    harness.reflector.start();
    await harness.reflector.synced;
    edit(harness, 'a', 1);
    harness.server.intercept = () => undefined;
    await advanceUntil(
      harness.timing,
      'its arrival',
      () => harness.reflector.isServed && isEqual(harness),
      10_000,
    );
    expect(harness.store.size).toBe(1);
    await advanceUntil(harness.timing, 'the watch', () => watching(harness) !== undefined);
    harness.server.intercept = absent;
    watching(harness)?.break('end');
    await advanceUntil(harness.timing, 'its end', () => !harness.reflector.isServed);
    expect(harness.store.size).toBe(0);
    expect(news).toEqual([true, false]);
  });

  test('is not synced while the role does not allow it', async () => {
    harness.server.intercept = () => ({ status: 403, reason: 'Forbidden' });
    harness.reflector.start();
    await advanceUntil(harness.timing, 'the fault', () => harness.reflector.fault !== undefined);
    expect(harness.reflector.isSynced).toBe(false);
    expect(String(harness.reflector.fault)).toContain('list widgets.test.dev');
  });
});

describe('a relist', () => {
  test('shows changes that a half-open connection withheld, by a list from etcd', async () => {
    edit(harness, 'a', 1);
    const watch = await start(harness);
    watch.break('freeze');
    edit(harness, 'a', 2);
    const tried = harness.reflector.relist();
    expect(harness.reflector.isSynced).toBe(false);
    const synced = harness.reflector.synced;
    await advanceUntil(harness.timing, 'the list', () => harness.reflector.isSynced, 0);
    await Promise.all([tried, synced]);
    expect(isEqual(harness)).toBe(true);
    expect(lists(harness).at(-1)?.query).not.toHaveProperty('resourceVersion');
    await advanceUntil(harness.timing, 'a watch', () => watching(harness) !== undefined, 0);
    expect(harness.reflector.fault).toBeUndefined();
    expect(await harness.counted.read('informer_stream_failures_total')).toBe(0);
  });

  test('does not accept a list that was requested before it', async () => {
    edit(harness, 'a', 1);
    let requestCount = 0;
    harness.server.intercept = ({ isWatch }) => {
      if (!isWatch) requestCount += 1;
      if (requestCount === 1) void harness.reflector.relist();
      return undefined;
    };
    await start(harness);
    expect(lists(harness).map(({ query }) => 'resourceVersion' in query)).toEqual([true, false]);
  });

  test('ends a pause and resolves also when it is refused', async () => {
    await start(harness);
    harness.server.intercept = () => ({ status: 403, reason: 'Forbidden' });
    await harness.reflector.relist();
    expect(harness.reflector.isSynced).toBe(false);
    expect(harness.reflector.fault).toMatchObject({ reason: 'Forbidden' });
    harness.server.intercept = () => undefined;
    await harness.reflector.relist();
    await harness.reflector.synced;
  });
});
