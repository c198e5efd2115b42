import { describe, expect, it } from 'vitest';
import { manualClock } from '#kit/clock/clock.ts';
import { createDirectory } from './directory.ts';

const entry = (endpoint: string) => ({
  validatorId: 'validator-1',
  endpoint,
  version: '1',
  announcedAtMs: 0,
});

describe('the directory of validators', () => {
  it('is requested at most once a second by all callers together', async () => {
    const clock = manualClock(0);
    let asked = 0;
    const directory = createDirectory(async () => {
      asked += 1;
      return [entry(`host:${asked}`)];
    }, clock);
    expect(await Promise.all([directory.find('validator-1'), directory.find('validator-2')])).toEqual([
      entry('host:1'),
      undefined,
    ]);
    await directory.all();
    expect(asked).toBe(1);
    clock.advance(1_000);
    expect(await directory.find('validator-1')).toEqual(entry('host:2'));
  });

  it('does not make a caller wait twice through an outage', async () => {
    const clock = manualClock(0);
    let asked = 0;
    const directory = createDirectory(async () => {
      asked += 1;
      clock.advance(3_000);
      throw new Error('no answer in time');
    }, clock);
    await directory.all();
    await directory.find('validator-1');
    expect(asked).toBe(1);
  });

  it('keeps its last entries during an outage, and is empty before the first answer', async () => {
    const clock = manualClock(0);
    let answer: (() => Promise<[ReturnType<typeof entry>]>) | undefined;
    const directory = createDirectory(async () => {
      if (answer === undefined) throw new Error('away');
      return answer();
    }, clock);
    expect(await directory.all()).toEqual([]);
    answer = async () => [entry('host:1')];
    clock.advance(1_000);
    await directory.all();
    answer = undefined;
    clock.advance(1_000);
    expect(await directory.all()).toEqual([entry('host:1')]);
  });
});
