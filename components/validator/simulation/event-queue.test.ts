import { describe, expect, it } from 'vitest';
import { createRandom } from '#kit/testing/random.ts';
import { Agenda } from './event-queue.ts';

describe('the event queue', () => {
  it('runs events by time, then in the order of planning, and never for ended processes', async () => {
    const agenda = new Agenda(1_000_000);
    const seen: string[] = [];
    const life = { name: 'x', alive: true };
    agenda.after(5, () => seen.push('c'));
    agenda.after(1, () => seen.push('a'));
    agenda.after(5, () => seen.push('d'));
    agenda.after(2, () => {
      life.alive = false;
      seen.push('b');
    });
    agenda.after(3, () => seen.push('dead'), life);
    agenda.after(4, () => seen.push('cancelled'))();
    await agenda.run(4, () => false);
    expect(agenda.elapsedMs).toBe(4);
    await agenda.run(100, () => false);
    expect(seen).toEqual(['a', 'b', 'c', 'd']);
    expect(agenda.clock(() => 7).nowMs()).toBe(1_000_012);
  });

  it('keeps its order whatever the order of planning', async () => {
    const random = createRandom(5);
    const agenda = new Agenda(0);
    const seen: number[] = [];
    const planned = Array.from({ length: 500 }, () => random.whole(0, 50));
    for (const atMs of planned) agenda.after(atMs, () => seen.push(atMs));
    await agenda.run(100, () => false);
    expect(seen).toEqual(planned.toSorted((a, b) => a - b));
  });

  it('settles promises between two events', async () => {
    const agenda = new Agenda(0);
    const seen: string[] = [];
    const walk = async () => {
      for (let step = 0; step < 50; step += 1) await Promise.resolve();
      seen.push('walked');
      await agenda.wait(1);
      seen.push('waited');
    };
    agenda.after(1, () => void walk());
    agenda.after(1.5, () => seen.push('between'));
    await agenda.run(10, () => false);
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
