import { describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { testInstallation } from '#kit/testing/runtime.ts';
import { fakeLedger } from '../../testing/fake-ledger.ts';
import { Reach } from './reach.ts';

const startMs = 1_000_000;

/** A watched register service. */
function create() {
  const clock = manualClock(startMs);
  const reach = new Reach(clock);
  const service = fakeLedger(testInstallation);
  return { clock, reach, service, ledger: reach.watch(service, () => {}) };
}

describe('the register service', () => {
  it('is reachable for a second after an answer, and not after a failed call', async () => {
    const { clock, reach, service, ledger } = create();
    expect(reach.isReachable).toBe(false);
    await ledger.lookup([]);
    clock.advance(999);
    expect(reach.isReachable).toBe(true);
    clock.advance(1);
    expect(reach.isReachable).toBe(false);
    await ledger.lookup([]);
    service.before = () => {
      throw new AppError('unavailable', 'RPC_UNAVAILABLE', 'gone');
    };
    await expect(ledger.lookup([])).rejects.toThrow('gone');
    expect(reach.isReachable).toBe(false);
  });

  it('is not reachable for longer when the clock is set back', async () => {
    const { clock, reach, ledger } = create();
    await ledger.lookup([]);
    clock.set(startMs - 3_600_000);
    expect(reach.isReachable).toBe(false);
    await ledger.lookup([]);
    expect(reach.isReachable).toBe(true);
  });
});
