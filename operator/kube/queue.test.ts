import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ManualTiming, manualTiming, settle } from '#kit/testing/manual-timing.ts';
import { Heap } from './heap.ts';
import { priority, type QueueOptions, WorkQueue } from './queue.ts';
import { testMetrics } from './testing/fixtures.ts';

function open(options: Partial<QueueOptions> = {}) {
  const timing = manualTiming();
  const counted = testMetrics();
  const queue = new WorkQueue({ name: 'test', timing, metrics: counted.metrics, ...options });
  return { queue, timing, counted };
}

/** Takes and releases all ready keys; returns their order. */
async function drain(queue: WorkQueue): Promise<string[]> {
  const taken: string[] = [];
  while (queue.depth > 0) {
    const key = await queue.take();
    if (key === undefined) break;
    taken.push(key);
    queue.done(key);
  }
  return taken;
}

describe('a queue', () => {
  test('has a key once, however often it was added', async () => {
    const { queue } = open();
    for (const key of ['a', 'b', 'a', 'a']) queue.add(key);
    expect(await drain(queue)).toEqual(['a', 'b']);
  });

  test('serves a key that was added while in progress only after its release', async () => {
    const { queue } = open();
    queue.add('a');
    await queue.take();
    queue.add('a');
    expect(queue.depth).toBe(0);
    let second: string | undefined;
    void queue.take().then((key) => {
      second = key;
    });
    await settle();
    expect(second).toBeUndefined();
    queue.done('a');
    await settle();
    expect(second).toBe('a');
  });

  test('serves higher priorities first and raises the priority of a queued key', async () => {
    const { queue } = open();
    queue.add('resync', priority.background);
    queue.add('first');
    queue.add('second');
    queue.add('person', priority.edit);
    queue.add('resync', priority.edit);
    queue.add('person', priority.background);
    expect(await drain(queue)).toEqual(['resync', 'person', 'first', 'second']);
  });

  test('adds a delayed key at the earliest of its times', async () => {
    const { queue, timing } = open();
    queue.addAfter('a', 5_000);
    queue.addAfter('a', 1_000);
    queue.addAfter('a', 9_000);
    await timing.advance(999);
    expect(queue.depth).toBe(0);
    await timing.advance(1);
    expect(await drain(queue)).toEqual(['a']);
    await timing.advance(20_000);
    expect(queue.depth).toBe(0);
  });

  test('doubles the delay after each failure up to five minutes, until a success', () => {
    const { queue } = open({ retryRate: { perSecond: 1_000, burst: 1_000 } });
    const waits = Array.from({ length: 14 }, () => queue.retry('a'));
    expect(waits.slice(0, 5)).toEqual([100, 200, 400, 800, 1_600]);
    expect(waits.at(-1)).toBe(300_000);
    expect(queue.failures('a')).toBe(14);
    queue.forget('a');
    expect(queue.retry('a')).toBe(100);
    expect(queue.retry('b', 7_000)).toBe(7_000);
  });

  test('limits the rate of retries of all keys', () => {
    const { queue } = open();
    const waits = Array.from({ length: 150 }, (_, place) => queue.retry(`k${place}`));
    expect(waits.slice(0, 100)).toEqual(Array(100).fill(100));
    expect(waits.at(-1)).toBeCloseTo(5_000, 0);
  });

  test('that is stopped serves no key and waits for keys in progress', async () => {
    const { queue } = open();
    queue.add('a');
    queue.add('b');
    const key = await queue.take();
    const waiting = queue.take();
    expect(await waiting).toBe('b');
    const idle = queue.take();
    let isDone = false;
    const stopped = queue.stop().then(() => {
      isDone = true;
    });
    expect(await idle).toBeUndefined();
    queue.add('c');
    queue.done('b');
    await settle();
    expect(isDone).toBe(false);
    queue.done(key ?? '');
    await stopped;
    expect(await queue.take()).toBeUndefined();
  });

  test('counts under the metric names of client-go', async () => {
    const { queue, timing, counted } = open();
    queue.add('a');
    queue.add('b');
    await queue.take();
    await timing.advance(3_000);
    expect(await counted.read('workqueue_depth', { name: 'test' })).toBe(1);
    expect(await counted.read('workqueue_adds_total', { controller: 'test' })).toBe(2);
    expect(await counted.read('workqueue_longest_running_processor_seconds')).toBe(3);
    void queue.stop();
    expect(await counted.read('workqueue_depth')).toBe(0);
  });
});

type Move =
  | {
      readonly do: 'add' | 'later' | 'retry';
      readonly key: string;
      readonly urgency: number;
      readonly ms: number;
    }
  | { readonly do: 'take' | 'done' | 'pass'; readonly ms: number };

const moves: fc.Arbitrary<Move> = fc.oneof(
  fc.record({
    do: fc.constantFrom('add' as const, 'add' as const, 'later' as const, 'retry' as const),
    key: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    urgency: fc.constantFrom(...Object.values(priority)),
    ms: fc.nat(2_000),
  }),
  fc.record({ do: fc.constantFrom('take' as const, 'done' as const, 'pass' as const), ms: fc.nat(1_000) }),
);

/** Model of a queue: ready keys, delayed keys and keys in progress. */
class Model {
  readonly working: string[] = [];
  readonly faults: string[] = [];
  readonly #ready = new Map<string, number>();
  readonly #later = new Map<string, { readonly dueMs: number; readonly urgency: number }>();
  readonly #queue: WorkQueue;
  readonly #timing: ManualTiming;
  #idle = 0;

  constructor(queue: WorkQueue, timing: ManualTiming) {
    this.#queue = queue;
    this.#timing = timing;
  }

  get owes(): boolean {
    return this.#ready.size + this.#later.size + this.working.length > 0;
  }

  async make(move: Move): Promise<void> {
    this.#ripen();
    if ('key' in move) this.#ask(move);
    else if (move.do === 'take') this.take();
    else if (move.do === 'done') this.giveBack();
    else await this.#timing.advance(move.ms);
    await settle();
  }

  take(): void {
    this.#idle += 1;
    this.#ripen();
    const mostUrgent = this.#idle === 1 ? this.#mostUrgent() : undefined;
    void this.#queue.take().then((key = '') => {
      this.#ripen();
      const urgency = this.#ready.get(key);
      if (this.working.includes(key)) this.faults.push(`${key} is processed twice`);
      if (urgency === undefined) this.faults.push(`${key} came unrequested or early`);
      const isFirst = mostUrgent === undefined || urgency === mostUrgent;
      if (!isFirst) this.faults.push(`${key} overtook a higher priority`);
      this.#idle -= 1;
      this.#ready.delete(key);
      this.working.push(key);
    });
  }

  giveBack(): void {
    const key = this.working.shift();
    if (key !== undefined) this.#queue.done(key);
  }

  /** Highest priority among the keys that a worker can take. */
  #mostUrgent(): number | undefined {
    const free = [...this.#ready].filter(([key]) => !this.working.includes(key));
    return free.length === 0 ? undefined : Math.max(...free.map(([, urgency]) => urgency));
  }

  #ask(move: Extract<Move, { readonly key: string }>): void {
    const { key, urgency } = move;
    if (move.do === 'add') {
      this.#add(key, urgency);
      this.#queue.add(key, urgency);
    } else if (move.do === 'later') {
      this.#addLater(key, move.ms, urgency);
      this.#queue.addAfter(key, move.ms, urgency);
    } else {
      this.#addLater(key, this.#queue.retry(key), priority.normal);
    }
  }

  #add(key: string, urgency: number): void {
    this.#ready.set(key, Math.max(urgency, this.#ready.get(key) ?? urgency));
  }

  #addLater(key: string, ms: number, urgency: number): void {
    if (ms === 0) {
      this.#add(key, urgency);
      return;
    }
    const before = this.#later.get(key) ?? { dueMs: Infinity, urgency };
    const dueMs = Math.min(before.dueMs, this.#timing.monotonicMs() + ms);
    this.#later.set(key, { dueMs, urgency: Math.max(urgency, before.urgency) });
  }

  #ripen(): void {
    for (const [key, { dueMs, urgency }] of this.#later) {
      if (dueMs > this.#timing.monotonicMs()) continue;
      this.#later.delete(key);
      this.#add(key, urgency);
    }
  }
}

test('under any use no key is lost, invented, early, out of order or processed twice', async () => {
  const run = async (story: readonly Move[]) => {
    const { queue, timing } = open();
    const model = new Model(queue, timing);
    for (const move of story) await model.make(move);
    // every requested key is served in the end
    for (let round = 0; round < 100 && model.owes; round += 1) {
      while (model.working.length > 0) model.giveBack();
      await timing.advance(30_000);
      model.take();
      await settle();
    }
    expect(model.faults).toEqual([]);
    expect(model.owes).toBe(false);
  };
  await fc.assert(fc.asyncProperty(fc.array(moves, { maxLength: 40 }), run), { numRuns: 300 });
});

test('a heap returns its elements in order under any pushes', () => {
  const run = (numbers: readonly (number | undefined)[]) => {
    const heap = new Heap<number>((left, right) => left < right);
    const kept: number[] = [];
    for (const each of numbers) {
      if (each === undefined) {
        kept.sort((a, b) => a - b);
        expect(heap.pop()).toBe(kept.shift());
      } else {
        heap.push(each);
        kept.push(each);
      }
      expect(heap.first()).toBe(kept.length === 0 ? undefined : Math.min(...kept));
    }
  };
  fc.assert(fc.property(fc.array(fc.option(fc.nat(50), { nil: undefined })), run));
});
