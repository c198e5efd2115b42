import { describe, expect, it } from 'vitest';
import { createBell } from './bell.ts';

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
