import { describe, expect, it } from 'vitest';
import { manualClock, systemClock } from './clock.ts';

describe('manualClock', () => {
  it('moves only when it is advanced or set', () => {
    const clock = manualClock(1_000);
    expect([clock.nowMs(), clock.nowMicros()]).toEqual([1_000, 1_000_000n]);
    clock.advance(1.5);
    expect([clock.nowMs(), clock.nowMicros()]).toEqual([1_001, 1_001_500n]);
    clock.set(5);
    expect(clock.nowMs()).toBe(5);
  });
});

describe('systemClock', () => {
  it('gives one time in two units', () => {
    const clock = systemClock();
    expect(Math.abs(Number(clock.nowMicros() / 1000n) - clock.nowMs())).toBeLessThan(1_000);
  });
});
