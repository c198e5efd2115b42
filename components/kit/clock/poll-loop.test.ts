import { describe, expect, it } from 'vitest';
import { createWakeSignal, startPollLoop } from './poll-loop.ts';

const long = 60_000;

describe('a wake signal', () => {
  it('ends a wait at a notification, and when the time is up', async () => {
    const signal = createWakeSignal();
    const wait = signal.wait(long);
    signal.notify();
    await wait;
    await signal.wait(1);
  });

  it('ends the next wait for a notification before it, and counts several as one', async () => {
    const signal = createWakeSignal();
    signal.notify();
    signal.notify();
    await signal.wait(long);
    let over = false;
    const next = signal.wait(long).then(() => {
      over = true;
    });
    await Promise.resolve();
    expect(over).toBe(false);
    signal.notify();
    await next;
  });
});

describe('a poll loop', () => {
  it('repeats its pass when it is woken, and ends with the one under way', async () => {
    const begun: PromiseWithResolvers<void>[] = [];
    const ends: PromiseWithResolvers<void>[] = [];
    const at = (list: PromiseWithResolvers<void>[], n: number) => {
      list[n] ??= Promise.withResolvers<void>();
      return list[n];
    };
    let count = 0;
    const loop = startPollLoop(async () => {
      const n = count;
      count += 1;
      at(begun, n).resolve();
      await at(ends, n).promise;
      return long;
    });
    at(ends, 0).resolve();
    loop.wake();
    await at(begun, 1).promise;
    let isOver = false;
    const stopped = loop.stop().then(() => {
      isOver = true;
    });
    await Promise.resolve();
    expect(isOver).toBe(false);
    at(ends, 1).resolve();
    await stopped;
    expect(count).toBe(2);
  });
});
