import { describe, expect, it } from 'vitest';
import { createBell, startRounds } from './bell.ts';

const long = 60_000;

describe('a bell', () => {
  it('ends a rest when it is rung, and when the time is up', async () => {
    const bell = createBell();
    const rest = bell.rest(long);
    bell.ring();
    await rest;
    await bell.rest(1);
  });

  it('lets no rest begin after a ring that came before it, and counts several as one', async () => {
    const bell = createBell();
    bell.ring();
    bell.ring();
    await bell.rest(long);
    let over = false;
    const next = bell.rest(long).then(() => {
      over = true;
    });
    await Promise.resolve();
    expect(over).toBe(false);
    bell.ring();
    await next;
  });
});

describe('rounds', () => {
  it('follow each other when they are kicked, and end with the one under way', async () => {
    const begun: PromiseWithResolvers<void>[] = [];
    const ends: PromiseWithResolvers<void>[] = [];
    const at = (list: PromiseWithResolvers<void>[], n: number) => {
      list[n] ??= Promise.withResolvers<void>();
      return list[n];
    };
    let count = 0;
    const rounds = startRounds(async () => {
      const n = count;
      count += 1;
      at(begun, n).resolve();
      await at(ends, n).promise;
      return long;
    });
    at(ends, 0).resolve();
    rounds.kick();
    await at(begun, 1).promise;
    let isOver = false;
    const stopped = rounds.stop().then(() => {
      isOver = true;
    });
    await Promise.resolve();
    expect(isOver).toBe(false);
    at(ends, 1).resolve();
    await stopped;
    expect(count).toBe(2);
  });
});
