import { describe, expect, test } from 'vitest';
import { Coverage, coverageItems, Totals } from './coverage.ts';
import { byzantineBehaviours, drawScenario } from './scenario.ts';

/** The seeds that CI runs for every change. */
const seedsOfCi = Array.from({ length: 200 }, (_, place) => place + 1);

describe('the coverage of a run', () => {
  test('is counted by seeds and by occurrences, and uncovered items are named', () => {
    const totals = new Totals();
    for (const times of [1, 3]) {
      const coverage = new Coverage();
      for (let time = 0; time < times; time += 1) coverage.add('partition');
      totals.take(coverage.counts);
    }
    expect(totals.table()).toMatch(/^partition +2 +4$/m);
    expect(totals.table()).toMatch(/^member killed +never$/m);
    expect(totals.missing).toEqual(coverageItems.filter((item) => item !== 'partition'));
  });

  test('counts the initial set sizes', () => {
    const coverage = new Coverage();
    coverage.addSet(25);
    coverage.addSet(26);
    expect(coverage.counts).toEqual({ 'set of 25': 1 });
  });
});

describe('the seeds of CI', () => {
  const scenarios = seedsOfCi.map(drawScenario);

  test('draw every fault, every Byzantine behaviour and every set size', () => {
    const faults = new Set(
      scenarios.flatMap((each) =>
        Object.entries(each.faults).flatMap(([name, happens]) => (happens ? name : [])),
      ),
    );
    expect([...faults].toSorted()).toEqual(Object.keys(scenarios[0]?.faults ?? {}).toSorted());
    const behaviours = new Set(scenarios.flatMap(({ byzantine }) => [...byzantine.values()].flat()));
    expect([...behaviours].toSorted()).toEqual(byzantineBehaviours.toSorted());
    const sizes = new Set(scenarios.map(({ size }) => size));
    expect([...sizes].toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 7, 10, 13, 25]);
  });

  test('draw registers with different sets, and Byzantine members together with set changes and crashes', () => {
    const several = scenarios.filter(({ registers }) => registers.length > 1);
    expect(several.length).toBeGreaterThan(10);
    expect(several.some(({ registers: [a, b] }) => a?.members.join() !== b?.members.join())).toBe(true);
    const mixed = scenarios.filter(({ faults, byzantine }) => {
      return byzantine.size > 0 && faults.setChanges && (faults.crashes || faults.powerLosses);
    });
    expect(mixed.length).toBeGreaterThan(10);
  });

  test('never draw more Byzantine members in a register than its set tolerates', () => {
    for (const seed of Array.from({ length: 2000 }, (_, place) => place)) {
      const { registers, byzantine } = drawScenario(seed);
      for (const { members } of registers) {
        const liars = members.filter((place) => byzantine.has(place)).length;
        expect(liars, `seed ${seed}`).toBeLessThanOrEqual(Math.max(0, Math.floor((members.length - 1) / 3)));
        expect(members.length, `seed ${seed}`).toBeGreaterThan(0);
      }
    }
  });
});
