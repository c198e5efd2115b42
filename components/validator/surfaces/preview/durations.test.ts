import { describe, expect, it } from 'vitest';
import { clockText, durationText } from './durations.ts';

describe('durations', () => {
  it('have the formats of the specification', () => {
    expect(durationText(61_000_001)).toBe('00:01:01.0000010');
    expect(durationText(0)).toBe('00:00:00.0000000');
    expect(clockText(360_000.2)).toBe('100:00:01');
  });
});
