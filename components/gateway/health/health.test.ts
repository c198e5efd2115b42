import { describe, expect, it } from 'vitest';
import { manualClock } from '#kit/clock/clock.ts';
import { createHealth, judge } from './health.ts';

describe('health aggregation', () => {
  it.each([
    [{ tenant: 'healthy', register: 'healthy', wallet: 'healthy' }, 'healthy'],
    [{ tenant: 'healthy', register: 'healthy', wallet: 'unhealthy' }, 'degraded'],
    [{ tenant: 'unhealthy', register: 'healthy', wallet: 'healthy' }, 'unhealthy'],
    [{ tenant: 'healthy', register: 'unhealthy', wallet: 'healthy' }, 'unhealthy'],
    [{ wallet: 'healthy' }, 'unhealthy'],
    [{}, 'unhealthy'],
  ] as const)('judges %j %s', (states, expected) => {
    expect(judge(new Map(Object.entries(states)) as Map<string, 'healthy' | 'unhealthy'>)).toBe(expected);
  });

  it('asks all at once, once per round, and again after two seconds', async () => {
    const clock = manualClock(1_700_000_000_000);
    let asked = 0;
    const both = Promise.withResolvers<void>();
    const health = createHealth({
      services: ['tenant', 'register'],
      nowMs: () => clock.nowMs(),
      probe: async () => {
        asked++;
        if (asked === 2) both.resolve();
        await both.promise;
      },
    });
    const [first, second] = await Promise.all([health(), health()]);
    expect(first).toBe(second);
    expect(asked).toBe(2);
    clock.advance(1999);
    expect(await health()).toBe(first);
    clock.advance(2);
    expect(await health()).not.toBe(first);
    expect(asked).toBe(4);
  });

  it('counts a service that does not answer in time as down', async () => {
    const signals: AbortSignal[] = [];
    const health = createHealth({
      services: ['tenant', 'register'],
      nowMs: () => 0,
      timeoutMs: 20,
      probe: (service, signal) => {
        signals.push(signal);
        return service === 'tenant' ? new Promise(() => undefined) : Promise.resolve();
      },
    });
    expect(await health()).toMatchObject({
      status: 'unhealthy',
      services: { tenant: { status: 'unhealthy' } },
    });
    expect(signals[0]?.aborted).toBe(true);
  });
});
