import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { type Cancel, sleep, type Timing } from '#kit/clock/timing.ts';
import { type ManualTiming, manualTiming, settle } from '#kit/testing/manual-timing.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { Controller } from './controller.ts';
import { NotLeader } from './errors.ts';
import { Leader, leases } from './leader.ts';
import type { Resource } from './resource.ts';
import { ClusterState } from './testing/cluster-state.ts';
import { type Delivery, type DirectApi, directApi } from './testing/direct-api.ts';
import { at, make, testMetrics, widgets } from './testing/fixtures.ts';

interface Candidate {
  readonly leader: Leader;
  readonly api: DirectApi;
  readonly timing: Timing;
}

const open: Leader[] = [];

afterEach(async () => {
  const stopped = open.splice(0).map((leader) => leader.stop());
  await Promise.race([Promise.all(stopped), settle()]);
});

function candidate(state: ClusterState, identity: string, timing: Timing, network = timing): Candidate {
  const { metrics } = testMetrics();
  const { log } = testRuntime('operator', { level: 'silent' });
  const api = directApi(state, timing, network);
  const leader = new Leader({ api, timing, metrics, log, namespace: 'acme', name: 'operator', identity });
  open.push(leader);
  leader.start();
  return { leader, api, timing };
}

function leaseIn(state: ClusterState): Readonly<Record<string, unknown>> {
  return state.get(at(leases, 'operator'))['spec'] as Readonly<Record<string, unknown>>;
}

const isLeading = ({ leader }: Candidate) => leader.isLeading;

describe('a leader', () => {
  test('acquires a free lease at once and renews it with one call every two seconds', async () => {
    const state = new ClusterState();
    const timing = manualTiming();
    const one = candidate(state, 'one', timing);
    await timing.advance(0);
    expect(one.leader.isLeading).toBe(true);
    expect(leaseIn(state)).toMatchObject({
      holderIdentity: 'one',
      leaseDurationSeconds: 14,
      leaseTransitions: 0,
      renewTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
    });
    one.api.calls.length = 0;
    timing.chance = 0;
    await timing.advance(60_000);
    expect(one.api.calls.map(({ verb }) => verb)).toEqual(Array(30).fill('update'));
    expect(one.leader.isLeading).toBe(true);
  });

  test('that dies right after a renewal is replaced within 16.5 s', async () => {
    const state = new ClusterState();
    const timing = manualTiming();
    timing.chance = 1;
    const dying = manualTiming();
    candidate(state, 'one', dying);
    await dying.advance(0);
    const two = candidate(state, 'two', timing);
    await timing.advance(0);
    // its last renewal follows an attempt of the other candidate
    await dying.advance(2_000);
    await timing.advance(16_500);
    expect(two.leader.isLeading).toBe(true);
  });

  test('that dies is replaced within 17 s, one that stops within 3 s', async () => {
    const state = new ClusterState();
    const timing = manualTiming();
    const dying = manualTiming();
    const one = candidate(state, 'one', dying);
    await dying.advance(0);
    const two = candidate(state, 'two', timing);
    for (let second = 0; second < 20; second += 1) {
      await dying.advance(1_000);
      await timing.advance(1_000);
    }
    expect([one, two].map(isLeading)).toEqual([true, false]);
    // from here the clock of the first leader stands still
    await timing.advance(17_000);
    expect(two.leader.isLeading).toBe(true);
    expect(leaseIn(state)).toMatchObject({ holderIdentity: 'two', leaseTransitions: 1 });
    const three = candidate(state, 'three', timing);
    await timing.advance(5_000);
    const stopped = two.leader.stop();
    expect(two.leader.isLeading).toBe(false);
    await timing.advance(0);
    await stopped;
    await expect(two.leader.ended).resolves.toBe('stopped');
    await timing.advance(3_000);
    expect(three.leader.isLeading).toBe(true);
    expect(leaseIn(state)).toMatchObject({ holderIdentity: 'three', leaseTransitions: 2 });
  });

  test('that cannot renew writes for ten seconds after its last renewal and never again', async () => {
    const state = new ClusterState();
    const timing = manualTiming();
    const one = candidate(state, 'one', timing);
    await timing.advance(0);
    one.api.delivery = () => ({ lost: 'request' });
    await timing.advance(9_900);
    expect(one.leader.isLeading).toBe(true);
    expect(one.leader.guard()).toBeLessThanOrEqual(4_100);
    await timing.advance(100);
    expect(() => one.leader.guard()).toThrow(NotLeader);
    await timing.advance(1_000);
    await expect(one.leader.ended).resolves.toBe('lost');
    one.api.delivery = () => ({});
    await timing.advance(60_000);
    expect(one.leader.isLeading).toBe(false);
  });

  test('releases at its end a lease that it could not renew and that no process has taken', async () => {
    const state = new ClusterState();
    const timing = manualTiming();
    const one = candidate(state, 'one', timing);
    await timing.advance(0);
    const two = candidate(state, 'two', timing);
    await timing.advance(3_000);
    one.api.delivery = () => ({ lost: 'request' });
    await timing.advance(11_000);
    await expect(one.leader.ended).resolves.toBe('lost');
    expect([leaseIn(state)['holderIdentity'], two.leader.isLeading]).toEqual(['one', false]);
    one.api.delivery = () => ({});
    const stopped = one.leader.stop();
    await timing.advance(0);
    await stopped;
    expect(leaseIn(state)['holderIdentity']).toBe('');
    await timing.advance(2_400);
    expect(two.leader.isLeading).toBe(true);
  });

  test('does not release the lease of another holder at its end', async () => {
    const state = new ClusterState();
    const [timing, frozen] = [manualTiming(), manualTiming()];
    const one = candidate(state, 'one', frozen);
    await frozen.advance(0);
    const [two, three] = [candidate(state, 'two', timing), candidate(state, 'three', timing)];
    await timing.advance(17_000);
    const [leading, waiting] = two.leader.isLeading ? [two, three] : [three, two];
    const { holderIdentity } = leaseIn(state);
    const stopped = Promise.all([waiting.leader.stop(), one.leader.stop()]);
    await Promise.all([timing.advance(0), frozen.advance(20_000)]);
    await stopped;
    expect(leaseIn(state)).toMatchObject({ holderIdentity });
    expect(leading.leader.isLeading).toBe(true);
  });

  test('that was frozen writes nothing after it continues', async () => {
    const state = new ClusterState();
    const timing = manualTiming();
    const one = candidate(state, 'one', timing);
    await timing.advance(0);
    const written = state.writes;
    const frozen = timing.freeze(30_000);
    expect(one.leader.isLeading).toBe(false);
    await frozen;
    await timing.advance(10_000);
    expect(state.writes).toBe(written);
    await expect(one.leader.ended).resolves.toBe('lost');
  });

  test('on a suspended machine waits for a renewal, although its monotonic clock stood still', async () => {
    const state = new ClusterState();
    const timing = manualTiming();
    const one = candidate(state, 'one', timing);
    await timing.advance(0);
    timing.skew(300_000);
    expect(one.leader.isLeading).toBe(false);
    await timing.advance(2_000);
    expect(one.leader.isLeading).toBe(true);
    timing.skew(-600_000);
    expect(one.leader.isLeading).toBe(true);
    await timing.advance(30_000);
    expect(one.leader.isLeading).toBe(true);
  });

  test('continues when the response to a renewal is lost', async () => {
    const state = new ClusterState();
    const timing = manualTiming();
    const one = candidate(state, 'one', timing);
    await timing.advance(0);
    let losses = 0;
    one.api.delivery = ({ verb }): Delivery =>
      verb === 'update' && losses++ === 0 ? { lost: 'response' } : {};
    await timing.advance(60_000);
    expect(one.leader.isLeading).toBe(true);
    expect(leaseIn(state)['leaseTransitions']).toBe(0);
  });

  test('creates a deleted lease again', async () => {
    const state = new ClusterState();
    const timing = manualTiming();
    const one = candidate(state, 'one', timing);
    const two = candidate(state, 'two', timing);
    await timing.advance(3_000);
    state.delete(at(leases, 'operator'), undefined);
    for (let step = 0; step < 200; step += 1) {
      await timing.advance(100);
      expect([one, two].filter(isLeading).length).toBeLessThanOrEqual(1);
    }
    expect(one.leader.isLeading).toBe(true);
  });
});

test('wall clocks five minutes apart do not affect the election', async () => {
  const state = new ClusterState();
  const timing = manualTiming();
  const early = { ...timing, nowMs: () => timing.nowMs() - 300_000 };
  const one = candidate(state, 'one', timing);
  await timing.advance(0);
  const two = candidate(state, 'two', early);
  await timing.advance(60_000);
  expect([one, two].map(isLeading)).toEqual([true, false]);
});

test('after a loss of leadership in a reconcile every write throws, and reads continue', async () => {
  const state = new ClusterState();
  const timing = manualTiming();
  const one = candidate(state, 'one', timing);
  await timing.advance(0);
  const api = one.leader.fence(directApi(state, timing));
  const body = (name: string) => make(widgets, name);
  const write = (name: string) =>
    api.call({ verb: 'create', resource: widgets as Resource, namespace: 'acme', body: body(name) });
  const outcomes: unknown[] = [];
  const { log } = testRuntime('operator', { level: 'silent' });
  const controller = new Controller({
    name: 'widget',
    timing,
    metrics: testMetrics().metrics,
    log,
    reconcile: async () => {
      await write('before');
      await sleep(timing, 12_000);
      outcomes.push(await write('after').catch((error: unknown) => error));
      outcomes.push(await write('again').catch((error: unknown) => error));
      outcomes.push(await api.call({ verb: 'list', resource: widgets, namespace: 'acme' }));
      return undefined;
    },
  });
  controller.start();
  controller.queue.add('acme/set');
  await timing.advance(100);
  one.api.delivery = () => ({ lost: 'request' });
  await timing.advance(13_000);
  expect(outcomes).toEqual([expect.any(NotLeader), expect.any(NotLeader), expect.anything()]);
  expect(state.list(at(widgets)).map(({ metadata }) => metadata.name)).toEqual(['before']);
});

/** Clock of one process: it has an own start and rate, and can be frozen. */
class ProcessClock {
  readonly #world: ManualTiming;
  readonly #startMs: number;
  readonly #rate: number;
  readonly #overdue: (() => void)[] = [];
  #isFrozen = false;

  constructor(world: ManualTiming, startMs: number, rate: number) {
    this.#world = world;
    this.#startMs = startMs;
    this.#rate = rate;
  }

  get timing(): Timing {
    const monotonicMs = () => this.#startMs + this.#world.monotonicMs() * this.#rate;
    return {
      nowMs: () => this.#world.nowMs(),
      nowMicros: () => this.#world.nowMicros(),
      random: () => this.#world.random(),
      monotonicMs,
      after: (ms, act): Cancel => this.#after(ms, act),
    };
  }

  freeze(): void {
    this.#isFrozen = true;
  }

  thaw(): void {
    this.#isFrozen = false;
    for (const act of this.#overdue.splice(0)) act();
  }

  #after(ms: number, act: () => void): Cancel {
    let isCancelled = false;
    const run = () => {
      if (!isCancelled) act();
    };
    this.#world.after(ms / this.#rate, () => {
      if (this.#isFrozen) this.#overdue.push(run);
      else run();
    });
    return () => {
      isCancelled = true;
    };
  }
}

interface Phase {
  readonly lastsMs: number;
  readonly frozen: readonly [boolean, boolean];
  readonly delivery: readonly [Delivery, Delivery];
}

const deliveries: fc.Arbitrary<Delivery> = fc.oneof(
  fc.constant({}),
  fc.record({ requestMs: fc.nat(6_000), responseMs: fc.nat(6_000) }),
  fc.record({ lost: fc.constantFrom('request' as const, 'response' as const), requestMs: fc.nat(4_000) }),
);

const phases: fc.Arbitrary<Phase> = fc.record({
  lastsMs: fc.integer({ min: 200, max: 25_000 }),
  frozen: fc.tuple(fc.boolean(), fc.boolean()),
  delivery: fc.tuple(deliveries, deliveries),
});

test('two candidates never lead at once under any clocks, network and scheduling; one leads without faults', async () => {
  const run = async (story: readonly Phase[], startMs: number, rate: number) => {
    const world = manualTiming();
    const state = new ClusterState();
    const times = [new ProcessClock(world, 0, 1), new ProcessClock(world, startMs, rate)];
    const pair = times.map((time, place) => candidate(state, `candidate-${place}`, time.timing, world));
    const pass = async (ms: number) => {
      for (let left = ms; left > 0; left -= 250) {
        await world.advance(Math.min(250, left));
        expect(pair.filter(isLeading).length).toBeLessThanOrEqual(1);
      }
    };
    for (const { lastsMs, frozen, delivery } of story) {
      for (const [place, { api }] of pair.entries()) {
        api.delivery = () => delivery[place] ?? {};
        if (frozen[place] === true) times[place]?.freeze();
        else times[place]?.thaw();
      }
      await settle();
      await pass(lastsMs);
    }
    for (const [place, { api }] of pair.entries()) {
      api.delivery = () => ({});
      times[place]?.thaw();
    }
    await settle();
    await pass(40_000);
    // a candidate that lost the lease is out for good; a new one takes it
    if (!pair.some(isLeading)) {
      const third = candidate(state, 'third', world);
      await world.advance(20_000);
      expect(third.leader.isLeading).toBe(true);
    }
  };
  await fc.assert(
    fc.asyncProperty(
      fc.array(phases, { minLength: 1, maxLength: 6 }),
      fc.nat(1_000_000),
      fc.double({ min: 0.95, max: 1.05, noNaN: true }),
      run,
    ),
    { numRuns: 60 },
  );
}, 60_000);
