import { describe, expect, test } from 'vitest';
import { judge, median, openTable, percentile } from './report.ts';

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

test('a percentile is a figure that was measured', () => {
  const hundred = Array.from({ length: 100 }, (_, n) => 100 - n);
  expect(percentile(hundred, 0.5)).toBe(50);
  expect(percentile(hundred, 0.99)).toBe(99);
  expect(percentile([7], 0.99)).toBe(7);
  expect(percentile([], 0.5)).toBeNaN();
});

test('a table counts the missed bounds', () => {
  const lines: string[] = [];
  const row = (figure: number) =>
    ({
      measure: 'calls',
      unit: '/min',
      ours: [figure],
      raw: [],
      bound: { kind: 'absolute', atMost: 35 },
    }) as const;
  const open = () => openTable((said) => lines.push(said), ['figure', '']);
  const good = open();
  good.print([row(35)]);
  expect(good.close()).toBe(true);
  const bad = open();
  bad.print([row(35), row(36)]);
  expect(bad.close()).toBe(false);
  const text = lines.join('');
  expect(text.match(/ok$|MISSED$/gm)).toEqual(['ok', 'ok', 'MISSED']);
  expect(text).toContain('1 bounds missed');
});
