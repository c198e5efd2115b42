import { expect, test } from 'vitest';
import { longestGap } from './pause.ts';

test('the longest pause is that of gaps which end after the kill', () => {
  expect(longestGap([0, 900, 1_000, 1_100, 4_300, 4_400], 1_050)).toBe(3_200);
});

test('a pause that began before the kill counts completely', () => {
  expect(longestGap([0, 100, 3_100], 110)).toBe(3_000);
});

test('what paused before the kill does not count', () => {
  expect(longestGap([0, 5_000, 5_050], 5_010)).toBe(50);
});
