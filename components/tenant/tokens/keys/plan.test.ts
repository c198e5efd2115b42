import { expect, it } from 'vitest';
import { type KeyRow, planKeys } from './plan.ts';

const day = 86_400_000;
const row = (kid: string, state: KeyRow['state'], times: Partial<KeyRow> = {}): KeyRow => ({
  kid,
  state,
  createdAtMs: 0,
  activatedAtMs: undefined,
  retiredAtMs: undefined,
  ...times,
});

it('makes both keys on the first start', () => {
  expect(planKeys([], 0, 90 * day)).toEqual({
    remove: [],
    retire: undefined,
    promote: 'new',
    makeNext: true,
  });
});

it('keeps a young pair and creates a missing next key', () => {
  const current = row('a', 'current', { activatedAtMs: 0 });
  const nothing = { remove: [], retire: undefined, promote: undefined };
  expect(planKeys([current, row('b', 'next')], 89 * day, 90 * day)).toEqual({ ...nothing, makeNext: false });
  expect(planKeys([current], 89 * day, 90 * day)).toEqual({ ...nothing, makeNext: true });
});

it('rotates when the current key is due, but only to a key that was published long enough', () => {
  const current = row('a', 'current', { activatedAtMs: 0 });
  const due = 90 * day;
  expect(planKeys([current, row('b', 'next')], due, due)).toEqual({
    remove: [],
    retire: 'a',
    promote: 'b',
    makeNext: true,
  });
  const young = row('b', 'next', { createdAtMs: due - 1_000 });
  expect(planKeys([current, young], due, due).promote).toBeUndefined();
});

it('removes retired keys after nine hours and promotes the next key when the current one is missing', () => {
  const retired = row('a', 'retired', { retiredAtMs: 0 });
  expect(planKeys([retired], 9 * 3_600_000 - 1, day).remove).toEqual([]);
  expect(planKeys([retired, row('b', 'next')], 9 * 3_600_000, day)).toMatchObject({
    remove: ['a'],
    promote: 'b',
  });
});
