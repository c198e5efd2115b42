import { describe, expect, test } from 'vitest';
import { comparisons } from './against/rows.ts';
import { chosen, parseBench, usage } from './options.ts';
import { measurements } from './rows.ts';
import { few } from './workflows/lengths.ts';

const all = measurements({ memory: { from: 1, to: 2 }, rows: 1_000, workflows: few });

describe('the options of npm run bench', () => {
  test('without names everything is measured', () => {
    const { names, help } = parseBench([]);
    expect([chosen(all, names), help]).toEqual([all, false]);
  });

  test('names select measurements, in the order of the benchmark', () => {
    const names = chosen(all, parseBench(['idle', 'four']).names).map(({ name }) => name);
    expect(names).toEqual(['four', 'idle']);
  });

  test.each([['fourty'], ['--sealed', '10'], ['--sealed', 'many'], ['--nothing'], ['--rows', '5']])(
    '%s %s is refused',
    (...args) => {
      expect(() => chosen(all, parseBench(args).names)).toThrow();
    },
  );

  test('help names every measurement', () => {
    const text = usage(all, comparisons);
    for (const { name } of [...all, ...comparisons]) expect(text).toContain(`  ${name} `);
  });

  test('against takes a commit and names', () => {
    const { against, names } = parseBench(['against', 'HEAD~1', 'four', 'one']);
    expect(against).toBe('HEAD~1');
    expect(chosen(comparisons, names).map(({ name }) => name)).toEqual(['one', 'four']);
    expect(() => parseBench(['against'])).toThrow(/commit/);
    expect(() => chosen(comparisons, parseBench(['against', 'HEAD', 'idle']).names)).toThrow(/idle/);
  });
});
