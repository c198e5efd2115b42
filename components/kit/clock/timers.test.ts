import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { manualClock } from './clock.ts';
import { Scheduler } from './timers.ts';

describe('the scheduler', () => {
  it('fires timers in order of time, once, except cleared or replaced ones', () => {
    const clock = manualClock(1_000);
    const scheduler = new Scheduler(clock);
    const rung: string[] = [];
    const set = (key: string, ms: number) => scheduler.set(key, ms, () => rung.push(`${key}${ms}`));
    set('a', 30);
    set('b', 10);
    set('c', 20);
    set('a', 5);
    scheduler.clear('c');
    clock.advance(9);
    scheduler.run();
    clock.advance(100);
    scheduler.run();
    scheduler.run();
    expect(rung).toEqual(['a5', 'b10']);
    expect(scheduler.size).toBe(0);
    scheduler.stop();
  });

  it('lets a timer set another one', () => {
    const clock = manualClock(0);
    const scheduler = new Scheduler(clock);
    let count = 0;
    const again = () => {
      count += 1;
      scheduler.set('again', 10, again);
    };
    again();
    for (let step = 0; step < 5; step += 1) {
      clock.advance(10);
      scheduler.run();
    }
    expect(count).toBe(6);
    scheduler.stop();
  });

  it('keeps the order for any timers, and stays small when keys are set repeatedly', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(20), fc.nat(1000)), { maxLength: 300 }), (sets) => {
        const clock = manualClock(0);
        const scheduler = new Scheduler(clock);
        const due = new Map<number, number>();
        const rung: number[] = [];
        for (const [key, ms] of sets) {
          due.set(key, ms);
          scheduler.set(String(key), ms, () => rung.push(ms));
        }
        clock.advance(1_000);
        scheduler.run();
        scheduler.stop();
        expect(rung).toEqual([...due.values()].sort((a, b) => a - b));
      }),
    );
  });
});
