import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { testRuntime } from '#kit/testing/runtime.ts';
import { Controller } from './controller.ts';
import { NotLeader } from './errors.ts';
import { Leader, leases } from './leader.ts';
import type { Resource } from './resource.ts';
import { ClusterState } from './testing/cluster-state.ts';
import { type DirectApi, directApi, type Weather } from './testing/direct-api.ts';
import { at, make, testMetrics, widgets } from './testing/fixtures.ts';
import { type ManualTiming, manualTiming, settle } from './testing/manual-timing.ts';
import { type Cancel, rest, type Timing } from './time.ts';

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
  test('takes a free lease at once, and renews it with one call every two seconds', async () => {
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

  test('that dies at the worst moment is followed within 17 s, with half a second left to act', async () => {
    const state = new ClusterState();
    const timing = manualTiming();
    timing.chance = 1;
    const dying = manualTiming();
    candidate(state, 'one', dying);
    await dying.advance(0);
    const two = candidate(state, 'two', timing);
    await timing.advance(0);
    // its last renewal comes just after a look at the lease
    await dying.advance(2_000);
    await timing.advance(16_500);
    expect(two.leader.isLeading).toBe(true);
  });

  test('that dies is followed within 17 s; one that stops within 3', async () => {
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
    // from here time stands still for the first
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

  test('that cannot renew writes until ten seconds after its last renewal, and is out for good', async () => {
    const state = new ClusterState();
    const timing = manualTiming();
    const one = candidate(state, 'one', timing);
    await timing.advance(0);
    one.api.weather = () => ({ lost: 'question' });
    await timing.advance(9_900);
    expect(one.leader.isLeading).toBe(true);
    expect(one.leader.guard()).toBeLessThanOrEqual(4_100);
    await timing.advance(100);
    expect(() => one.leader.guard()).toThrow(NotLeader);
    await timing.advance(1_000);
    await expect(one.leader.ended).resolves.toBe('lost');
    one.api.weather = () => ({});
    await timing.advance(60_000);
    expect(one.leader.isLeading).toBe(false);
  });

  test('that lost the lease to nobody gives it back at its end, once the API server answers', async () => {
    const state = new ClusterState();
    const timing = manualTiming();
    const one = candidate(state, 'one', timing);
    await timing.advance(0);
    const two = candidate(state, 'two', timing);
    await timing.advance(3_000);
    one.api.weather = () => ({ lost: 'question' });
    await timing.advance(11_000);
    await expect(one.leader.ended).resolves.toBe('lost');
    expect([leaseIn(state)['holderIdentity'], two.leader.isLeading]).toEqual(['one', false]);
    one.api.weather = () => ({});
    const stopped = one.leader.stop();
    await timing.advance(0);
    await stopped;
    expect(leaseIn(state)['holderIdentity']).toBe('');
    await timing.advance(2_400);
    expect(two.leader.isLeading).toBe(true);
  });

  test('that stands by, or lost the lease to another one, leaves it with its holder at its end', async () => {
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

  test('that was frozen writes nothing when it goes on', async () => {
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

  test('on a machine that was suspended waits for a renewal, although its monotonic clock stood still', async () => {
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

  test('that loses the answer to a renewal goes on', async () => {
    const state = new ClusterState();
    const timing = manualTiming();
    const one = candidate(state, 'one', timing);
    await timing.advance(0);
    let losses = 0;
    one.api.weather = ({ verb }): Weather => (verb === 'update' && losses++ === 0 ? { lost: 'answer' } : {});
    await timing.advance(60_000);
    expect(one.leader.isLeading).toBe(true);
    expect(leaseIn(state)['leaseTransitions']).toBe(0);
  });

  test('whose lease is deleted makes it anew', async () => {
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

test('clocks five minutes apart make no difference', async () => {
  const state = new ClusterState();
  const timing = manualTiming();
  const early = { ...timing, nowMs: () => timing.nowMs() - 300_000 };
  const one = candidate(state, 'one', timing);
  await timing.advance(0);
  const two = candidate(state, 'two', early);
  await timing.advance(60_000);
  expect([one, two].map(isLeading)).toEqual([true, false]);
});

test('leadership lost in the middle of a reconcile makes every later write throw, and reads go on', async () => {
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
      await rest(timing, 12_000);
      outcomes.push(await write('after').catch((error: unknown) => error));
      outcomes.push(await write('again').catch((error: unknown) => error));
      outcomes.push(await api.call({ verb: 'list', resource: widgets, namespace: 'acme' }));
      return undefined;
    },
  });
  controller.start();
  controller.queue.add('acme/set');
  await timing.advance(100);
  one.api.weather = () => ({ lost: 'question' });
  await timing.advance(13_000);
  expect(outcomes).toEqual([expect.any(NotLeader), expect.any(NotLeader), expect.anything()]);
  expect(state.list(at(widgets)).map(({ metadata }) => metadata.name)).toEqual(['before']);
});

/** Time of one process among several: it starts somewhere, runs a little fast or slow, and may stand still. */
class OwnTime {
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

interface Spell {
  readonly lastsMs: number;
  readonly frozen: readonly [boolean, boolean];
  readonly weather: readonly [Weather, Weather];
}

const weathers: fc.Arbitrary<Weather> = fc.oneof(
  fc.constant({}),
  fc.record({ thereMs: fc.nat(6_000), backMs: fc.nat(6_000) }),
  fc.record({ lost: fc.constantFrom('question' as const, 'answer' as const), thereMs: fc.nat(4_000) }),
);

const spells: fc.Arbitrary<Spell> = fc.record({
  lastsMs: fc.integer({ min: 200, max: 25_000 }),
  frozen: fc.tuple(fc.boolean(), fc.boolean()),
  weather: fc.tuple(weathers, weathers),
});

test('two candidates never lead at once, whatever clocks, network and scheduler do; one does when they are good', async () => {
  const run = async (story: readonly Spell[], startMs: number, rate: number) => {
    const world = manualTiming();
    const state = new ClusterState();
    const times = [new OwnTime(world, 0, 1), new OwnTime(world, startMs, rate)];
    const pair = times.map((time, place) => candidate(state, `candidate-${place}`, time.timing, world));
    const pass = async (ms: number) => {
      for (let left = ms; left > 0; left -= 250) {
        await world.advance(Math.min(250, left));
        expect(pair.filter(isLeading).length).toBeLessThanOrEqual(1);
      }
    };
    for (const { lastsMs, frozen, weather } of story) {
      for (const [place, { api }] of pair.entries()) {
        api.weather = () => weather[place] ?? {};
        if (frozen[place] === true) times[place]?.freeze();
        else times[place]?.thaw();
      }
      await settle();
      await pass(lastsMs);
    }
    for (const [place, { api }] of pair.entries()) {
      api.weather = () => ({});
      times[place]?.thaw();
    }
    await settle();
    await pass(40_000);
    // who lost the lease is out, as its process would be; somebody new takes it
    if (!pair.some(isLeading)) {
      const third = candidate(state, 'third', world);
      await world.advance(20_000);
      expect(third.leader.isLeading).toBe(true);
    }
  };
  await fc.assert(
    fc.asyncProperty(
      fc.array(spells, { minLength: 1, maxLength: 6 }),
      fc.nat(1_000_000),
      fc.double({ min: 0.95, max: 1.05, noNaN: true }),
      run,
    ),
    { numRuns: 60 },
  );
}, 60_000);
