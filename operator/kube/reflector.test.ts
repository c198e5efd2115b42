import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { advanceUntil, at, make, widgets } from './testing/fixtures.ts';
import {
  edit,
  isEqual,
  lists,
  opened,
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

test('the first list comes in pages from the watch cache, and the watch continues from it', async () => {
  for (let count = 0; count < 1_200; count += 1) edit(harness, `w${count}`, 0);
  const watch = await start(harness);
  expect(lists(harness).map(({ query }) => query)).toEqual([
    { resourceVersion: '0', limit: '500' },
    { limit: '500', continue: expect.any(String) },
    { limit: '500', continue: expect.any(String) },
  ]);
  expect(harness.store.size).toBe(1_200);
  expect(watch.arrival.query).toMatchObject({
    watch: 'true',
    allowWatchBookmarks: 'true',
    resourceVersion: String(harness.server.state.version),
  });
  const seconds = Number(watch.arrival.query['timeoutSeconds']);
  expect(seconds).toBeGreaterThanOrEqual(300);
  expect(seconds).toBeLessThanOrEqual(600);
});

test('edits arrive without managedFields', async () => {
  edit(harness, 'a', 1);
  await start(harness);
  await harness.reflector.synced;
  edit(harness, 'a', 2);
  harness.server.state.apply(at(widgets, 'b'), make(widgets, 'b', { spec: { value: 1 } }), 'someone');
  await advanceUntil(harness.timing, 'the edits', () => isEqual(harness));
  expect(harness.store.find('acme/b')?.metadata).not.toHaveProperty('managedFields');
  harness.server.state.delete(at(widgets, 'a'), undefined);
  await advanceUntil(harness.timing, 'the deletion', () => isEqual(harness));
  expect(lists(harness)).toHaveLength(1);
});

test('expired pages are replaced by one list without pages', async () => {
  for (let count = 0; count < 600; count += 1) edit(harness, `w${count}`, 0);
  harness.server.intercept = ({ query }) =>
    query['continue'] === undefined ? undefined : { status: 410, reason: 'Expired' };
  await start(harness);
  expect(harness.store.size).toBe(600);
  expect(lists(harness).at(-1)?.query).toEqual({});
});

describe('no edit is missed and no list is needed when a watch', () => {
  test.each(['end', 'reset', 'truncate', 'freeze'] as const)('breaks by %s', async (how) => {
    edit(harness, 'a', 1);
    const watch = await start(harness);
    watch.break(how);
    const brokenAt = harness.timing.monotonicMs();
    edit(harness, 'a', 2);
    edit(harness, 'b', 1);
    harness.server.state.delete(at(widgets, 'a'), undefined);
    await advanceUntil(harness.timing, 'the edits', () => isEqual(harness) && harness.store.size === 1);
    // silence is noticed within 90 s, everything else within 2 s
    expect(harness.timing.monotonicMs() - brokenAt).toBeLessThan(how === 'freeze' ? 93_000 : 3_000);
    expect(lists(harness)).toHaveLength(1);
  });

  test('sends an ERROR event', async () => {
    edit(harness, 'a', 1);
    const watch = await start(harness);
    watch.refuse(500, 'InternalError');
    edit(harness, 'a', 2);
    await advanceUntil(harness.timing, 'a new watch', () => isEqual(harness) && opened(harness).length === 2);
    expect(lists(harness)).toHaveLength(1);
    expect(await harness.counted.read('informer_stream_failures_total', { cause: 'Internal' })).toBe(1);
  });

  test('is refused a few times', async () => {
    edit(harness, 'a', 1);
    const watch = await start(harness);
    let left = 3;
    harness.server.intercept = () => (left-- > 0 ? { status: 500 } : undefined);
    watch.break('reset');
    edit(harness, 'a', 2);
    await advanceUntil(harness.timing, 'the edit', () => isEqual(harness));
    expect(lists(harness)).toHaveLength(1);
  });
});

test('an expired resource version costs one fresh list at once', async () => {
  edit(harness, 'a', 1);
  const watch = await start(harness);
  await harness.timing.advance(6_000);
  watch.break('end');
  edit(harness, 'a', 2);
  harness.server.state.compact();
  await advanceUntil(harness.timing, 'the edit', () => isEqual(harness) && watching(harness) !== undefined);
  expect(lists(harness).map(({ query }) => query)).toEqual([
    { resourceVersion: '0', limit: '500' },
    { limit: '500' },
  ]);
});

test('a resource version that is refused repeatedly is replaced by a list', async () => {
  edit(harness, 'a', 1);
  const watch = await start(harness);
  let refused = 0;
  harness.server.intercept = ({ isWatch }) => {
    if (!isWatch || refused >= 8) return undefined;
    refused += 1;
    return { status: 400, reason: 'BadRequest' };
  };
  watch.break('end');
  await advanceUntil(harness.timing, 'another list', () => lists(harness).length === 2);
  expect(refused).toBeGreaterThanOrEqual(5);
});

test('bookmarks advance the resource version of a quiet watch', async () => {
  edit(harness, 'a', 1);
  const watch = await start(harness);
  harness.server.state.create({ ...at(widgets), plural: 'others' }, make(widgets, 'x'));
  watch.bookmark();
  const { version } = harness.server.state;
  // the bookmark was read when the edit after it is in the store
  edit(harness, 'b', 1);
  await advanceUntil(harness.timing, 'the edit', () => isEqual(harness));
  harness.server.state.compact();
  expect(harness.server.state.version).toBeGreaterThan(version);
  watch.bookmark();
  const before = harness.reflector.ageMs();
  await advanceUntil(harness.timing, 'the bookmark', () => harness.reflector.ageMs() < before + 100);
  await harness.timing.advance(6_000);
  watch.break('end');
  await advanceUntil(harness.timing, 'a new watch', () => opened(harness).length === 2);
  expect(opened(harness)[1]?.query['resourceVersion']).toBe(String(harness.server.state.version));
  expect(lists(harness)).toHaveLength(1);
});

test('pauses grow while the server is down and are reset by a healthy stream', async () => {
  harness.timing.chance = 1;
  const watch = await start(harness);
  const times: number[] = [];
  harness.server.intercept = () => {
    times.push(harness.timing.monotonicMs());
    return times.length <= 7 ? { status: 500 } : undefined;
  };
  await harness.timing.advance(10_000);
  watch.break('reset');
  await advanceUntil(
    harness.timing,
    'a second watch',
    () => watching(harness) !== undefined && times.length > 7,
  );
  const pauses = times.slice(1).map((time, place) => time - (times[place] ?? 0));
  expect(pauses.some((pause) => pause >= 25_000)).toBe(true);
  expect(Math.max(...pauses)).toBeLessThan(33_000);
  await harness.timing.advance(10_000);
  const brokenAt = harness.timing.monotonicMs();
  watching(harness)?.break('reset');
  await advanceUntil(
    harness.timing,
    'a third watch',
    () => watching(harness) !== undefined && times.length > 8,
  );
  expect((times.at(-1) ?? 0) - brokenAt).toBeLessThan(3_000);
});

test('the age grows while the cluster is unavailable', async () => {
  const watch = await start(harness);
  expect(harness.reflector.isSynced).toBe(true);
  harness.server.intercept = () => ({ status: 503 });
  watch.break('reset');
  await advanceUntil(harness.timing, 'two minutes', () => harness.reflector.ageMs() > 120_000);
  expect(harness.reflector.isConnected).toBe(false);
  expect(await harness.counted.read('informer_last_sync_age_seconds')).toBeGreaterThan(119);
  harness.server.intercept = () => undefined;
  await advanceUntil(harness.timing, 'a watch', () => harness.reflector.isConnected);
  expect(harness.reflector.ageMs()).toBeLessThan(60_000);
});

test('a cluster that is unavailable at the start is waited for', async () => {
  edit(harness, 'a', 1);
  let left = 4;
  harness.server.intercept = () => {
    left -= 1;
    return left > 2 ? 'reset' : left > 0 ? { status: 500 } : undefined;
  };
  await start(harness);
  expect(isEqual(harness)).toBe(true);
});

test('a metadata-only reflector requests and stores metadata only', async () => {
  await harness.close();
  harness = await openReflector({ metadataOnly: true });
  edit(harness, 'a', 1);
  await start(harness);
  edit(harness, 'b', 2);
  await advanceUntil(harness.timing, 'the edit', () => isEqual(harness));
  for (const name of ['a', 'b']) {
    expect(harness.store.find(`acme/${name}`)).toEqual({
      apiVersion: 'test.dev/v1',
      kind: 'Widget',
      metadata: expect.objectContaining({ name }),
    });
  }
});

type Step =
  | { readonly act: 'edit' | 'remove'; readonly name: string; readonly value: number }
  | { readonly act: 'end' | 'reset' | 'truncate' | 'freeze' | 'error' | 'compact' }
  | { readonly act: 'pass'; readonly ms: number };

const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    act: fc.constantFrom('edit' as const, 'edit' as const, 'remove' as const),
    name: fc.constantFrom('a', 'b', 'c', 'd'),
    value: fc.nat(9),
  }),
  fc.record({ act: fc.constantFrom('end', 'reset', 'truncate', 'freeze', 'error', 'compact') }),
  fc.record({ act: fc.constant('pass' as const), ms: fc.nat(4_000) }),
);

async function perform(step: Step): Promise<void> {
  const { state, watches } = harness.server;
  const watch = [...watches].at(-1);
  switch (step.act) {
    case 'edit':
      return edit(harness, step.name, step.value);
    case 'remove': {
      const isThere = state.list(at(widgets)).some(({ metadata }) => metadata.name === step.name);
      if (isThere) state.delete(at(widgets, step.name), undefined);
      return;
    }
    case 'pass':
      return harness.timing.advance(step.ms);
    case 'compact':
      return state.compact();
    case 'error':
      return watch?.refuse(500, 'InternalError');
    default:
      return watch?.break(step.act);
  }
}

test('after any edits and faults the store equals the cluster, with one list per expired version', async () => {
  const run = async (story: readonly Step[]) => {
    await harness.close();
    harness = await openReflector();
    await start(harness);
    for (const step of story) await perform(step);
    await advanceUntil(harness.timing, 'the end of all faults', () => isEqual(harness));
    edit(harness, 'last', 1);
    await advanceUntil(harness.timing, 'the last edit', () => isEqual(harness));
    const lost = story.filter(({ act }) => act === 'compact').length;
    expect(lists(harness).length).toBeLessThanOrEqual(1 + lost);
  };
  await fc.assert(fc.asyncProperty(fc.array(steps, { maxLength: 12 }), run), { numRuns: 25 });
}, 120_000);
