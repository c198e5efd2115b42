import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { startTestRegister, type TestRegister } from '../testing/register.ts';
import { once } from './once.ts';

describe('doing a request once', () => {
  const clock = manualClock(Date.UTC(2026, 10, 21));
  let register: TestRegister;
  beforeAll(async () => {
    register = await startTestRegister('once', { clock });
  });
  afterAll(() => register.stop());

  const run = (
    key: string | undefined,
    body: unknown,
    act: () => Promise<{ status: number; body: unknown }>,
  ) => once({ database: register.database, clock }, { key, scope: 'test', body }, act);

  function counted(status = 200) {
    let calls = 0;
    return async () => {
      calls += 1;
      return { status, body: { calls } };
    };
  }

  it('does what has no key every time', async () => {
    const act = counted();
    await run(undefined, 1, act);
    expect((await run(undefined, 1, act)).body).toEqual({ calls: 2 });
  });

  it('remembers an answer for a day', async () => {
    const act = counted(201);
    expect(await run('a', 1, act)).toEqual({ status: 201, body: { calls: 1 } });
    expect(await run('a', 1, act)).toEqual({ status: 201, body: { calls: 1 } });
    await expect(run('a', 2, act)).rejects.toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
    clock.advance(25 * 3_600_000);
    expect((await run('a', 2, act)).body).toEqual({ calls: 2 });
  });

  it('forgets refusals and failures', async () => {
    const act = counted(422);
    await run('b', 1, act);
    expect((await run('b', 1, act)).body).toEqual({ calls: 2 });
    const failing = () => Promise.reject(new AppError('unavailable', 'UNAVAILABLE', 'away'));
    await expect(run('c', 1, failing)).rejects.toMatchObject({ kind: 'unavailable' });
    expect((await run('c', 1, counted())).body).toEqual({ calls: 1 });
  });

  it('refuses the same key while the first request runs, and takes it over once that is abandoned', async () => {
    const gate = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const slow = run('d', 1, async () => {
      begun.resolve();
      await gate.promise;
      return { status: 200, body: 'slow' };
    });
    await begun.promise;
    await expect(run('d', 1, counted())).rejects.toMatchObject({ code: 'IDEMPOTENCY_IN_PROGRESS' });
    clock.advance(61_000);
    expect((await run('d', 1, counted())).body).toEqual({ calls: 1 });
    gate.resolve();
    expect((await slow).body).toBe('slow');
  });

  it('takes keys of 1 to 255 characters', async () => {
    for (const key of ['', 'x'.repeat(256)])
      await expect(run(key, 1, counted())).rejects.toMatchObject({ kind: 'invalid' });
  });
});
