import { describe, expect, test } from 'vitest';
import { AdmissionQueue } from './admission-queue.ts';

interface Under {
  readonly batch: readonly number[];
  readonly done: () => void;
}

function scene(maxBatches: number) {
  const acts: (() => void)[] = [];
  const admitted: Under[] = [];
  const queue = new AdmissionQueue<number>({
    maxBatches,
    defer: (act) => acts.push(act),
    admit: (batch) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      admitted.push({ batch, done: resolve });
      return promise;
    },
  });
  const turn = async () => {
    for (let n = 0; n < 5; n += 1) {
      for (const act of acts.splice(0)) act();
      await Promise.resolve();
    }
  };
  return { queue, admitted, turn };
}

describe('the admission queue', () => {
  test('takes what has arrived together, in order', async () => {
    const { queue, admitted, turn } = scene(1);
    for (const n of [1, 2, 3]) queue.push(n);
    expect(admitted).toEqual([]);
    await turn();
    expect(admitted.map(({ batch }) => batch)).toEqual([[1, 2, 3]]);
    expect(queue.size).toBe(0);
  });

  test('lets the next batch grow while the maximum is in progress', async () => {
    const { queue, admitted, turn } = scene(2);
    for (const n of [1, 2, 3, 4]) {
      queue.push(n);
      await turn();
    }
    expect(admitted.map(({ batch }) => batch)).toEqual([[1], [2]]);
    expect(queue.size).toBe(2);
    admitted[0]?.done();
    await turn();
    expect(admitted.map(({ batch }) => batch)).toEqual([[1], [2], [3, 4]]);
  });

  test('bounds a batch', async () => {
    const { queue, admitted, turn } = scene(4);
    for (let n = 0; n < 300; n += 1) queue.push(n);
    await turn();
    expect(admitted.map(({ batch }) => batch.length)).toEqual([256, 44]);
  });
});
