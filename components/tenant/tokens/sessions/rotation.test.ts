import { expect, it } from 'vitest';
import { type FamilyState, judgeRotation } from './rotation.ts';

const family: FamilyState = { generation: 3, lastRotatedAtMs: 100_000, expiresAtMs: 500_000, revoked: false };

it.each([
  ['the newest token', 3, 400_000, 'rotate'],
  ['the one before, 10 s later', 2, 110_000, 'repeat'],
  ['the one before, later than that', 2, 110_001, 'reuse'],
  ['an older one', 1, 100_001, 'reuse'],
  ['a generation that was not issued yet', 4, 100_001, 'reuse'],
  ['the newest at the end of the family', 3, 500_000, 'dead'],
] as const)('%s', (_, presented, nowMs, verdict) => {
  expect(judgeRotation(presented, family, nowMs)).toBe(verdict);
});

it('a revoked family issues no tokens', () => {
  expect(judgeRotation(3, { ...family, revoked: true }, 100_001)).toBe('dead');
});
