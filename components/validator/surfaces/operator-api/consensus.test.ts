import { describe, expect, it } from 'vitest';
import { docketsBehind } from './consensus.ts';

describe('how far a member is behind', () => {
  it.each([
    [5, [], 0],
    [5, [9], 4],
    [5, [9, 9, 9], 4],
    [5, [4, 5, 3], 0],
  ])('at height %i with peers at %j: %i dockets', (own, others, expected) => {
    expect(docketsBehind(own, others)).toBe(expected);
  });

  it('ignores as many reports as may be false', () => {
    expect(docketsBehind(5, [1_000_000, 6, 5])).toBe(1);
    expect(docketsBehind(5, [1_000_000, 1_000_000, 7, 6, 5, 5])).toBe(2);
  });
});
