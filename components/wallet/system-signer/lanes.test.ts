import { describe, expect, test } from 'vitest';
import { Lanes } from './lanes.ts';

function turns(count: number): Promise<void> {
  return count === 0 ? Promise.resolve() : Promise.resolve().then(() => turns(count - 1));
}

async function collect<T>(lanes: Lanes<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of lanes) items.push(item);
  return items;
}

describe('Lanes', () => {
  test('answers every task once, in order within a lane, never more than the limit at a time', async () => {
    const lanes = new Lanes<{ lane: number; index: number }>(5);
    let running = 0;
    let most = 0;
    const admitting = (async () => {
      for (let index = 0; index < 300; index += 1) {
        const lane = index % 7;
        await lanes.admit(String(lane), async () => {
          running += 1;
          most = Math.max(most, running);
          await turns((index * 13) % 11);
          running -= 1;
          return { lane, index };
        });
      }
      lanes.end();
    })();
    const items = await collect(lanes);
    await admitting;
    expect(items).toHaveLength(300);
    for (let lane = 0; lane < 7; lane += 1) {
      const indexes = items.filter((item) => item.lane === lane).map((item) => item.index);
      expect(indexes).toEqual(indexes.toSorted((a, b) => a - b));
    }
    expect(most).toBeLessThanOrEqual(5);
  });

  test('a task that throws ends the iteration with its error and nothing after it runs', async () => {
    const lanes = new Lanes<number>(10);
    let later = false;
    await lanes.admit('a', async () => {
      throw new Error('no database');
    });
    await lanes.admit('a', async () => {
      later = true;
      return 2;
    });
    await expect(collect(lanes)).rejects.toThrow('no database');
    expect(later).toBe(false);
  });

  test('an end releases a waiting writer, and running tasks still answer', async () => {
    const lanes = new Lanes<number>(1);
    const gate = Promise.withResolvers<number>();
    const admitted = lanes.admit('a', () => gate.promise);
    lanes.end();
    await admitted;
    const items = collect(lanes);
    gate.resolve(1);
    expect(await items).toEqual([1]);
    expect(lanes.ended).toBe(true);
  });
});
