import { describe, expect, test } from 'vitest';
import { mutations } from './mutations.ts';
import { simulate } from './run.ts';
import type { Weakness } from './world.ts';

const lengthOfProof = 500;

/** Seeds that found a mutation before. They are tried first and shorten the search. */
const knownToFind: Readonly<Record<string, readonly number[]>> = {
  'without the lock rule': [22, 30],
  'without the force of the log to disk': [1, 8],
  'with a quorum that is too small': [2, 3],
  'without the round of a vote': [1, 2],
  'without the guard against signing twice': [1, 6],
  'that trusts incomplete keys': [241, 250],
  'with a guard that forgets the bytes of a batch': [1, 6],
  'with a precommit that is signed before the prevotes of others': [3, 5],
};

async function firstBroken(weakness: Weakness, known: readonly number[]) {
  const all = Array.from({ length: lengthOfProof }, (_, place) => place + 1);
  for (const seed of new Set([...known, ...all])) {
    const outcome = await simulate(seed, weakness);
    if (outcome.broken !== undefined) return outcome;
  }
  return undefined;
}

describe('the simulator', () => {
  test('finds no broken invariant in the validator', async () => {
    let sealed = 0;
    // One and several registers, crashes, old volumes, Byzantine members, set changes; .ci/run runs 200 seeds.
    for (const seed of [5, 7, 9, 12, 14, 16]) {
      const outcome = await simulate(seed);
      expect(outcome.broken, `seed ${seed}`).toBeUndefined();
      sealed += outcome.sealed;
    }
    expect(sealed).toBeGreaterThan(60);
  }, 60_000);

  test.each([
    [
      'member that keeps proposing an unacceptable docket after an outage of the register service',
      1721,
      'off',
    ],
    ['docket rebuilt after a restart from other records with the same ids', 1457, 'off'],
    ['signature lost in a power loss that the signer does not repeat', 2392, 'off'],
    ['member that keeps proposing what repeats a transaction of a docket that it missed', 5254, 'on'],
  ] as const)(
    'finds no %s',
    async (_, seed, keyFilters) => {
      expect((await simulate(seed, { keyFilters })).broken).toBeUndefined();
    },
    60_000,
  );

  test('repeats a seed exactly, and differs for another seed', async () => {
    const digests = new Set<string>();
    for (const seed of [8, 11]) {
      const [first, second] = [await simulate(seed), await simulate(seed)];
      expect(second.trace).toEqual(first.trace);
      expect(second.digest).toBe(first.digest);
      digests.add(first.digest);
    }
    expect(digests.size).toBe(2);
  }, 60_000);

  for (const [name, weakness] of Object.entries(mutations)) {
    test(`detects a validator ${name}`, async () => {
      const found = await firstBroken(weakness(), knownToFind[name] ?? []);
      expect(found?.broken).toBeDefined();
    }, 120_000);
  }
});
