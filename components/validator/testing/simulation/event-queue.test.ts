import { describe, expect, it } from 'vitest';
import { createRandom } from '#kit/testing/random.ts';
import { EventQueue } from './event-queue.ts';

describe('the event queue', () => {
  it('runs events by time, then in the order of planning, and never for ended processes', async () => {
    const eventQueue = new EventQueue(1_000_000);
    const seen: string[] = [];
    const handle = { name: 'x', alive: true };
    eventQueue.after(5, () => seen.push('c'));
    eventQueue.after(1, () => seen.push('a'));
    eventQueue.after(5, () => seen.push('d'));
    eventQueue.after(2, () => {
      handle.alive = false;
      seen.push('b');
    });
    eventQueue.after(3, () => seen.push('dead'), handle);
    eventQueue.after(4, () => seen.push('cancelled'))();
    await eventQueue.run(4, () => false);
    expect(eventQueue.elapsedMs).toBe(4);
    await eventQueue.run(100, () => false);
    expect(seen).toEqual(['a', 'b', 'c', 'd']);
    expect(eventQueue.clock(() => 7).nowMs()).toBe(1_000_012);
  });

  it('keeps its order whatever the order of planning', async () => {
    const random = createRandom(5);
    const eventQueue = new EventQueue(0);
    const seen: number[] = [];
    const planned = Array.from({ length: 500 }, () => random.whole(0, 50));
    for (const atMs of planned) eventQueue.after(atMs, () => seen.push(atMs));
    await eventQueue.run(100, () => false);
    expect(seen).toEqual(planned.toSorted((a, b) => a - b));
  });

  it('settles promises between two events', async () => {
    const eventQueue = new EventQueue(0);
    const seen: string[] = [];
    const walk = async () => {
      for (let step = 0; step < 50; step += 1) await Promise.resolve();
      seen.push('walked');
      await eventQueue.wait(1);
      seen.push('waited');
    };
    eventQueue.after(1, () => void walk());
    eventQueue.after(1.5, () => seen.push('between'));
    await eventQueue.run(10, () => false);
    expect(seen).toEqual(['walked', 'between', 'waited']);
  });
});

describe('numbers from a seed', () => {
  it('are equal for equal seeds, differ for others, and are spread', () => {
    const draw = (seed: number) => Array.from({ length: 1000 }, createRandom(seed).next);
    expect(draw(1)).toEqual(draw(1));
    expect(draw(1)).not.toEqual(draw(2));
    const mean = draw(3).reduce((sum, each) => sum + each, 0) / 1000;
    expect(mean).toBeGreaterThan(0.45);
    expect(mean).toBeLessThan(0.55);
  });

  it('can be forked without changing the source', () => {
    const random = createRandom(9);
    const before = createRandom(9).next();
    random.fork('a').next();
    expect(random.next()).toBe(before);
    expect(random.fork('a').next()).toBe(random.fork('a').next());
    expect(random.fork('a').next()).not.toBe(random.fork('b').next());
    expect(random.shuffle([1, 2, 3, 4]).sort()).toEqual([1, 2, 3, 4]);
  });
});
