import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PeerClocks } from './peer-clocks.ts';

describe('clocks of other validators', () => {
  it('are unknown before the first heartbeat and after removal', () => {
    const clocks = new PeerClocks();
    expect(clocks.aheadMs).toBeUndefined();
    clocks.take('validator-1', 1_000, 1_000);
    expect(clocks.aheadMs).toBe(-0);
    clocks.forget('validator-1');
    expect(clocks.aheadMs).toBeUndefined();
  });

  it('use the fastest of the latest heartbeats', () => {
    const clocks = new PeerClocks();
    for (const delay of [80, 5, 300]) clocks.take('validator-1', 10_000, 10_000 + delay);
    expect(clocks.aheadMs).toBe(5);
    for (let n = 0; n < 16; n += 1) clocks.take('validator-1', 10_000, 10_060);
    expect(clocks.aheadMs).toBe(60);
  });

  it('are not affected by a minority with wrong clocks', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -3_600_000, max: 3_600_000 }),
        fc.array(fc.integer({ min: 0, max: 200 }), { minLength: 3, maxLength: 9 }),
        fc.integer({ min: -600_000, max: 600_000 }),
        (lie, delays, ahead) => {
          const clocks = new PeerClocks();
          for (const [n, delay] of delays.entries()) clocks.take(`honest-${n}`, 0, ahead + delay);
          for (let n = 0; n < Math.floor((delays.length - 1) / 2); n += 1) clocks.take(`liar-${n}`, lie, 0);
          const measured = clocks.aheadMs ?? Number.NaN;
          expect(measured).toBeGreaterThanOrEqual(ahead);
          expect(measured).toBeLessThanOrEqual(ahead + 200);
        },
      ),
    );
  });
});
