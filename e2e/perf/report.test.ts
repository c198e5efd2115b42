import { describe, expect, test } from 'vitest';
import { judge, median } from './report.ts';

describe('judging a row', () => {
  test('takes the median of the pairs, not the ratio of the medians', () => {
    const row = { measure: 'm', unit: '/s', ours: [50, 10, 60], raw: [100, 100, 100] } as const;
    expect(judge({ ...row, bound: { kind: 'share', atLeast: 0.5 } }).holds).toBe(true);
    expect(judge({ ...row, bound: { kind: 'share', atLeast: 0.51 } }).holds).toBe(false);
  });

  test('a multiple must stay below its bound', () => {
    const row = { measure: 'm', unit: 'ms', ours: [20, 30], raw: [10, 10] } as const;
    expect(judge({ ...row, bound: { kind: 'multiple', atMost: 2.5 } }).holds).toBe(true);
    expect(judge({ ...row, bound: { kind: 'multiple', atMost: 2.4 } }).holds).toBe(false);
  });

  test('a row without figures misses its bound', () => {
    expect(
      judge({ measure: 'm', unit: 's', ours: [], raw: [], bound: { kind: 'share', atLeast: 0.1 } }).holds,
    ).toBe(false);
  });

  test('median of an even number of values', () => {
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });
});
