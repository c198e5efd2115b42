import { describe, expect, it } from 'vitest';
import { MUTATIONS } from './mutations.ts';
import { simulate } from './run.ts';
import type { Weakness } from './world.ts';

const lengthOfProof = 500;

async function firstBroken(weakness: Weakness) {
  for (let seed = 1; seed <= lengthOfProof; seed += 1) {
    const outcome = await simulate(seed, weakness);
    if (outcome.broken !== undefined) return outcome;
  }
  return undefined;
}

describe('the simulator', () => {
  it('finds nothing wrong with the validator', async () => {
    let sealed = 0;
    for (let seed = 1; seed <= 20; seed += 1) {
      const outcome = await simulate(seed);
      expect(outcome.broken, `seed ${seed}`).toBeUndefined();
      sealed += outcome.sealed;
    }
    expect(sealed).toBeGreaterThan(200);
  }, 60_000);

  it('does the same again for the same seed, and something else for another', async () => {
    for (const seed of [3, 7, 11]) {
      const [first, second, other] = [await simulate(seed), await simulate(seed), await simulate(seed + 1)];
      expect(second.trace).toEqual(first.trace);
      expect(second.digest).toBe(first.digest);
      expect(other.digest).not.toBe(first.digest);
    }
  }, 60_000);

  for (const [name, weakness] of Object.entries(MUTATIONS)) {
    it(`finds a validator ${name}`, async () => {
      const found = await firstBroken(weakness());
      expect(found?.broken).toBeDefined();
    }, 120_000);
  }
});
