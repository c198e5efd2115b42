import { expect, test } from 'vitest';
import { compareQuantities, quantityBytes, quantityMilli } from './quantity.ts';

test.each([
  ['0', 0n],
  ['1', 1000n],
  ['500m', 500n],
  ['1.5', 1500n],
  ['2k', 2_000_000n],
  ['1Ki', 1_024_000n],
  ['1.5Gi', 1_610_612_736_000n],
  ['0.0001', 1n],
])('%s is %s thousandths', (text, milli) => {
  expect(quantityMilli(text)).toBe(milli);
});

test('bytes are rounded up', () => {
  expect(quantityBytes('64Mi')).toBe(67_108_864n);
  expect(quantityBytes('1m')).toBe(1n);
});

test('quantities compare by value, not by text', () => {
  expect(compareQuantities('1Gi', '1024Mi')).toBe(0);
  expect(compareQuantities('1G', '1Gi')).toBe(-1);
  expect(compareQuantities('2', '1999m')).toBe(1);
});

test.each(['', 'Gi', '1GB', '-1', '1e3', '1.'])('%j is not a quantity', (text) => {
  expect(() => quantityMilli(text)).toThrow('not a quantity');
});
