import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { at, make, passing, widgets } from './testing/fixtures.ts';
import {
  edit,
  isEqual,
  lists,
  opened,
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

test('the first list comes in pages from the cache of the server, and the watch goes on from there', async () => {
  for (let count = 0; count < 1_200; count += 1) edit(bench, `w${count}`, 0);
  const watch = await start(bench);
  expect(lists(bench).map(({ query }) => query)).toEqual([
    { resourceVersion: '0', limit: '500' },
    { limit: '500', continue: expect.any(String) },
    { limit: '500', continue: expect.any(String) },
  ]);
  expect(bench.store.size).toBe(1_200);
  expect(watch.arrival.query).toMatchObject({
    watch: 'true',
    allowWatchBookmarks: 'true',
    resourceVersion: String(bench.server.state.version),
  });
  const seconds = Number(watch.arrival.query['timeoutSeconds']);
  expect(seconds).toBeGreaterThanOrEqual(300);
  expect(seconds).toBeLessThanOrEqual(600);
});

test('edits arrive, without the bookkeeping of field owners', async () => {
  edit(bench, 'a', 1);
  await start(bench);
  await bench.reflector.synced;
  edit(bench, 'a', 2);
  bench.server.state.apply(at(widgets, 'b'), make(widgets, 'b', { spec: { value: 1 } }), 'someone');
  await passing(bench.timing, 'the edits', () => isEqual(bench));
  expect(bench.store.find('acme/b')?.metadata).not.toHaveProperty('managedFields');
  bench.server.state.delete(at(widgets, 'a'), undefined);
  await passing(bench.timing, 'the deletion', () => isEqual(bench));
  expect(lists(bench)).toHaveLength(1);
});

test('pages that expire half-way are answered by one list without pages', async () => {
  for (let count = 0; count < 600; count += 1) edit(bench, `w${count}`, 0);
  bench.server.intercept = ({ query }) =>
    query['continue'] === undefined ? undefined : { status: 410, reason: 'Expired' };
  await start(bench);
  expect(bench.store.size).toBe(600);
  expect(lists(bench).at(-1)?.query).toEqual({});
});

describe('no edit is missed, and no list needed, when a watch', () => {
  test.each(['end', 'reset', 'truncate', 'freeze'] as const)('suffers %s', async (how) => {
    edit(bench, 'a', 1);
    const watch = await start(bench);
    watch.break(how);
    const brokenAt = bench.timing.monotonicMs();
    edit(bench, 'a', 2);
    edit(bench, 'b', 1);
    bench.server.state.delete(at(widgets, 'a'), undefined);
    await passing(bench.timing, 'the edits', () => isEqual(bench) && bench.store.size === 1);
    // silence is noticed within 90 s, everything else within 2 s
    expect(bench.timing.monotonicMs() - brokenAt).toBeLessThan(how === 'freeze' ? 93_000 : 3_000);
    expect(lists(bench)).toHaveLength(1);
  });

  test('brings an error of any kind', async () => {
    edit(bench, 'a', 1);
    const watch = await start(bench);
    watch.refuse(500, 'InternalError');
    edit(bench, 'a', 2);
    await passing(bench.timing, 'a new watch', () => isEqual(bench) && opened(bench).length === 2);
    expect(lists(bench)).toHaveLength(1);
    expect(await bench.counted.read('informer_stream_failures_total', { cause: 'Internal' })).toBe(1);
  });

  test('is refused a few times', async () => {
    edit(bench, 'a', 1);
    const watch = await start(bench);
    let left = 3;
    bench.server.intercept = () => (left-- > 0 ? { status: 500 } : undefined);
    watch.break('reset');
    edit(bench, 'a', 2);
    await passing(bench.timing, 'the edit', () => isEqual(bench));
    expect(lists(bench)).toHaveLength(1);
  });
});

test('a position that the server has forgotten costs one list, a fresh one, at once', async () => {
  edit(bench, 'a', 1);
  const watch = await start(bench);
  await bench.timing.advance(6_000);
  watch.break('end');
  edit(bench, 'a', 2);
  bench.server.state.compact();
  await passing(bench.timing, 'the edit', () => isEqual(bench) && watching(bench) !== undefined);
  expect(lists(bench).map(({ query }) => query)).toEqual([
    { resourceVersion: '0', limit: '500' },
    { limit: '500' },
  ]);
});

test('a position that keeps being refused is given up for a list', async () => {
  edit(bench, 'a', 1);
  const watch = await start(bench);
  let refused = 0;
  bench.server.intercept = ({ isWatch }) => {
    if (!isWatch || refused >= 8) return undefined;
    refused += 1;
    return { status: 400, reason: 'BadRequest' };
  };
  watch.break('end');
  await passing(bench.timing, 'another list', () => lists(bench).length === 2);
  expect(refused).toBeGreaterThanOrEqual(5);
});

test('bookmarks move the position of a quiet watch', async () => {
  edit(bench, 'a', 1);
  const watch = await start(bench);
  bench.server.state.create({ ...at(widgets), plural: 'others' }, make(widgets, 'x'));
  watch.bookmark();
  const { version } = bench.server.state;
  // what comes after the bookmark has been read when it is in the store
  edit(bench, 'b', 1);
  await passing(bench.timing, 'the edit', () => isEqual(bench));
  bench.server.state.compact();
  expect(bench.server.state.version).toBeGreaterThan(version);
  watch.bookmark();
  const before = bench.reflector.ageMs();
  await passing(bench.timing, 'the bookmark', () => bench.reflector.ageMs() < before + 100);
  await bench.timing.advance(6_000);
  watch.break('end');
  await passing(bench.timing, 'a new watch', () => opened(bench).length === 2);
  expect(opened(bench)[1]?.query['resourceVersion']).toBe(String(bench.server.state.version));
  expect(lists(bench)).toHaveLength(1);
});

test('pauses grow while a server is down, and begin anew after a good stream', async () => {
  bench.timing.chance = 1;
  const watch = await start(bench);
  const times: number[] = [];
  bench.server.intercept = () => {
    times.push(bench.timing.monotonicMs());
    return times.length <= 7 ? { status: 500 } : undefined;
  };
  await bench.timing.advance(10_000);
  watch.break('reset');
  await passing(bench.timing, 'a second watch', () => watching(bench) !== undefined && times.length > 7);
  const pauses = times.slice(1).map((time, place) => time - (times[place] ?? 0));
  expect(pauses.some((pause) => pause >= 25_000)).toBe(true);
  expect(Math.max(...pauses)).toBeLessThan(33_000);
  await bench.timing.advance(10_000);
  const brokenAt = bench.timing.monotonicMs();
  watching(bench)?.break('reset');
  await passing(bench.timing, 'a third watch', () => watching(bench) !== undefined && times.length > 8);
  expect((times.at(-1) ?? 0) - brokenAt).toBeLessThan(3_000);
});

test('staleness shows while the cluster is away', async () => {
  const watch = await start(bench);
  expect(bench.reflector.isSynced).toBe(true);
  bench.server.intercept = () => ({ status: 503 });
  watch.break('reset');
  await passing(bench.timing, 'two minutes', () => bench.reflector.ageMs() > 120_000);
  expect(bench.reflector.isConnected).toBe(false);
  expect(await bench.counted.read('informer_last_sync_age_seconds')).toBeGreaterThan(119);
  bench.server.intercept = () => undefined;
  await passing(bench.timing, 'a watch', () => bench.reflector.isConnected);
  expect(bench.reflector.ageMs()).toBeLessThan(60_000);
});

test('a cluster that is away at the start is waited for', async () => {
  edit(bench, 'a', 1);
  let left = 4;
  bench.server.intercept = () => {
    left -= 1;
    return left > 2 ? 'reset' : left > 0 ? { status: 500 } : undefined;
  };
  await start(bench);
  expect(isEqual(bench)).toBe(true);
});

test('metadata alone is asked for and kept', async () => {
  await bench.close();
  bench = await openReflector({ metadataOnly: true });
  edit(bench, 'a', 1);
  await start(bench);
  edit(bench, 'b', 2);
  await passing(bench.timing, 'the edit', () => isEqual(bench));
  for (const name of ['a', 'b']) {
    expect(bench.store.find(`acme/${name}`)).toEqual({
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
  const { state, watches } = bench.server;
  const watch = [...watches].at(-1);
  switch (step.act) {
    case 'edit':
      return edit(bench, step.name, step.value);
    case 'remove': {
      const isThere = state.list(at(widgets)).some(({ metadata }) => metadata.name === step.name);
      if (isThere) state.delete(at(widgets, step.name), undefined);
      return;
    }
    case 'pass':
      return bench.timing.advance(step.ms);
    case 'compact':
      return state.compact();
    case 'error':
      return watch?.refuse(500, 'InternalError');
    default:
      return watch?.break(step.act);
  }
}

test('any edits, under any faults, in any order: the store ends equal, with a list for each lost position', async () => {
  const run = async (story: readonly Step[]) => {
    await bench.close();
    bench = await openReflector();
    await start(bench);
    for (const step of story) await perform(step);
    await passing(bench.timing, 'the end of all faults', () => isEqual(bench));
    edit(bench, 'last', 1);
    await passing(bench.timing, 'the last edit', () => isEqual(bench));
    const lost = story.filter(({ act }) => act === 'compact').length;
    expect(lists(bench).length).toBeLessThanOrEqual(1 + lost);
  };
  await fc.assert(fc.asyncProperty(fc.array(steps, { maxLength: 12 }), run), { numRuns: 25 });
}, 120_000);
