import { expect, test } from 'vitest';
import { byTurns } from './turns.ts';

test('both are measured once a round, in changing order, and warm-up is not counted', async () => {
  const order: string[] = [];
  const side = (name: string) => async () => order.push(name);
  const pairs = await byTurns({ rounds: 2, warmUp: 1 }, side('ours'), side('raw'));
  expect(order).toEqual(['ours', 'raw', 'raw', 'ours', 'ours', 'raw']);
  expect(pairs).toEqual({ ours: [4, 5], raw: [3, 6] });
});
