import { describe, expect, test } from 'vitest';
import { chosen, parseBench, usage } from './options.ts';
import { measurements } from './rows.ts';

const all = measurements({ memory: { from: 1, to: 2 }, rows: 1_000 });

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
    for (const { name } of all) expect(usage(all)).toContain(`  ${name} `);
  });
});
