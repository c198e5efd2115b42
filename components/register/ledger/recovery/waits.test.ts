import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { createWaits } from './waits.ts';

const long = 600_000;

function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}
const never = () => new Promise<never>(() => undefined);

describe('waits', () => {
  it('return the result, or undefined when the time is up', async () => {
    const { within, rest } = createWaits();
    expect(await within(Promise.resolve('done'), long)).toBe('done');
    await expect(within(Promise.reject(new Error('failed')), long)).rejects.toThrow('failed');
    expect(await within(never(), 1)).toBeUndefined();
    await rest(1);
  });

  it('end all at once, and no new one begins afterwards', async () => {
    const waits = createWaits();
    const begun = [waits.within(never(), long), waits.rest(long)];
    waits.end();
    expect(await Promise.all(begun)).toEqual([undefined, undefined]);
    expect(await waits.within(never(), long)).toBeUndefined();
  });

  it('release all state once they are over', async () => {
    const { within, end } = createWaits();
    const before = heapBytes();
    for (let n = 0; n < 20_000; n += 1) await within(Promise.resolve(n), long);
    expect(heapBytes() - before).toBeLessThan(1_500_000);
    end();
  });
});
