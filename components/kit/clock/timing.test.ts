import { describe, expect, it } from 'vitest';
import { manualTiming } from '#kit/testing/manual-timing.ts';
import { backgroundTimers, sleep, systemTiming } from './timing.ts';

describe('sleep', () => {
  it('ends when its time is up', async () => {
    const timing = manualTiming();
    const ends: number[] = [];
    const note = () => void ends.push(timing.monotonicMs());
    const sleeps = [sleep(timing, 20).then(note), sleep(timing, 5).then(note), sleep(timing, 0).then(note)];
    await timing.advance(20);
    await Promise.all(sleeps);
    expect(ends).toEqual([0, 5, 20]);
  });

  it('rejects with the reason of its signal', async () => {
    const timing = manualTiming();
    const ending = new AbortController();
    const reason = new Error('stopped');
    const asleep = sleep(timing, 20, ending.signal);
    ending.abort(reason);
    await expect(asleep).rejects.toBe(reason);
    await expect(sleep(timing, 20, ending.signal)).rejects.toBe(reason);
  });
});

describe.each([
  ['of a program', systemTiming()],
  ['in the background', backgroundTimers()],
])('timers %s', (_which, timers) => {
  it('fire once, unless they are cancelled', async () => {
    const fired: string[] = [];
    const cancel = timers.after(0, () => fired.push('cancelled'));
    cancel();
    cancel();
    await new Promise<void>((resolve) => void timers.after(1, resolve));
    expect(fired).toEqual([]);
  });
});
