import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppError, isAppError } from '#core/errors/errors.ts';
import { startTestTenant, type TestTenant } from '../../tenant.fixture.ts';
import { createGuessCap, type GuessCap, maxWaitingPerAddress } from './guess-cap.ts';

describe('queue of attempts', () => {
  let tenant: TestTenant;
  beforeAll(async () => {
    tenant = await startTestTenant('tenant_guess_cap');
  });
  afterAll(() => tenant.stop());

  /** Attempts that wait until they are released, and the refusals of those beyond the queue limit. */
  const fill = (cap: GuessCap, emails: readonly string[]) => {
    const gate = Promise.withResolvers<void>();
    const started: string[] = [];
    const refusals: AppError[] = [];
    const all = emails.map((email) =>
      cap
        .inTurn(email, async () => {
          started.push(email);
          await gate.promise;
        })
        .catch((error: unknown) => {
          if (!isAppError(error, 'rate_limited') && !isAppError(error, 'unavailable')) throw error;
          refusals.push(error);
        }),
    );
    return { started, refusals, settled: Promise.all(all), open: () => gate.resolve() };
  };

  it('one address occupies at most 8 slots; others continue', async () => {
    const cap = createGuessCap(tenant.db);
    const flood = fill(cap, Array<string>(300).fill('victim@example.org'));
    await expect.poll(() => flood.refusals.length).toBe(300 - maxWaitingPerAddress);
    for (const refusal of flood.refusals) {
      expect(refusal).toMatchObject({ kind: 'rate_limited', retryAfterSeconds: 1 });
    }
    expect(await cap.inTurn('other@example.org', async () => 'judged')).toBe('judged');
    flood.open();
    await flood.settled;
    expect(await cap.inTurn('victim@example.org', async () => 'judged')).toBe('judged');
  });

  it('attempts for one address run sequentially, also after a failed one', async () => {
    const cap = createGuessCap(tenant.db);
    const order: string[] = [];
    const act = (name: string, fails = false) =>
      cap.inTurn('a@example.org', async () => {
        order.push(`begin ${name}`);
        await Promise.resolve();
        order.push(`end ${name}`);
        if (fails) throw new Error('failed');
      });
    const results = await Promise.allSettled([act('1', true), act('2')]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect(order).toEqual(['begin 1', 'end 1', 'begin 2', 'end 2']);
  });

  it('all addresses together occupy 256 slots; a further attempt is answered as unavailable', async () => {
    const cap = createGuessCap(tenant.db);
    const flood = fill(
      cap,
      Array.from({ length: 260 }, (_, i) => `${i % 130}@example.org`),
    );
    await expect.poll(() => flood.refusals.length).toBe(4);
    expect(flood.refusals[0]).toMatchObject({ kind: 'unavailable', retryAfterSeconds: 1 });
    expect(flood.started).toHaveLength(130);
    flood.open();
    await flood.settled;
  });
});
