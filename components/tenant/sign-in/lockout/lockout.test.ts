import { describe, expect, it } from 'vitest';
import { defaultLockoutSteps, isLocked, lockAfter, lockoutSteps } from './lockout.ts';

describe('lockout ladder', () => {
  it('locks at 5, 10 and 15 failures for rising times and at 25 until an administrator unlocks', () => {
    const at = (failures: number) => lockAfter(defaultLockoutSteps, failures, 1_000);
    expect(at(4)).toBeUndefined();
    expect(at(5)).toEqual({ lockedUntilMs: 301_000, lockedPermanently: false });
    expect(at(6)).toBeUndefined();
    expect(at(10)).toEqual({ lockedUntilMs: 1_801_000, lockedPermanently: false });
    expect(at(15)).toEqual({ lockedUntilMs: 86_401_000, lockedPermanently: false });
    expect(at(25)).toEqual({ lockedUntilMs: undefined, lockedPermanently: true });
    expect(at(26)).toEqual({ lockedUntilMs: undefined, lockedPermanently: true });
  });

  it('a timed lock ends when its time has passed, a permanent one never does', () => {
    expect(isLocked({ lockedUntilMs: 2_000, lockedPermanently: false }, 1_999)).toBe(true);
    expect(isLocked({ lockedUntilMs: 2_000, lockedPermanently: false }, 2_000)).toBe(false);
    expect(isLocked({ lockedUntilMs: undefined, lockedPermanently: true }, 9e15)).toBe(true);
    expect(isLocked({ lockedUntilMs: undefined, lockedPermanently: false }, 0)).toBe(false);
  });

  it.each([
    ['[{"failures":2,"seconds":1},{"failures":4,"seconds":"until-unlocked"}]', true],
    ['[{"failures":5,"seconds":1},{"failures":4,"seconds":1}]', false],
    ['[]', false],
    ['{', false],
    ['[{"failures":0,"seconds":1}]', false],
    ['[{"failures":3,"seconds":"forever"}]', false],
  ])('parses %s: %s', (text, ok) => {
    expect(lockoutSteps.safeParse(text).success).toBe(ok);
  });
});
