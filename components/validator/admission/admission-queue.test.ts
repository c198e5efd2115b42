import { describe, expect, test } from 'vitest';
import { Line } from './admission-queue.ts';

interface Under {
  readonly batch: readonly number[];
  readonly done: () => void;
}

function scene(most: number) {
  const acts: (() => void)[] = [];
  const under: Under[] = [];
  const line = new Line<number>({
    most,
    soon: (act) => acts.push(act),
    admit: (batch) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      under.push({ batch, done: resolve });
      return promise;
    },
  });
  const turn = async () => {
    for (let n = 0; n < 5; n += 1) {
      for (const act of acts.splice(0)) act();
      await Promise.resolve();
    }
  };
  return { line, under, turn };
}

describe('the admission queue', () => {
  test('takes what has arrived together, in order', async () => {
    const { line, under, turn } = scene(1);
    for (const n of [1, 2, 3]) line.push(n);
    expect(under).toEqual([]);
    await turn();
    expect(under.map(({ batch }) => batch)).toEqual([[1, 2, 3]]);
    expect(line.size).toBe(0);
  });

  test('lets the next batch grow while the maximum is in progress', async () => {
    const { line, under, turn } = scene(2);
    for (const n of [1, 2, 3, 4]) {
      line.push(n);
      await turn();
    }
    expect(under.map(({ batch }) => batch)).toEqual([[1], [2]]);
    expect(line.size).toBe(2);
    under[0]?.done();
    await turn();
    expect(under.map(({ batch }) => batch)).toEqual([[1], [2], [3, 4]]);
  });

  test('bounds a batch', async () => {
    const { line, under, turn } = scene(4);
    for (let n = 0; n < 300; n += 1) line.push(n);
    await turn();
    expect(under.map(({ batch }) => batch.length)).toEqual([256, 44]);
  });
});
