import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { LogicEngine } from 'json-logic-engine';
import { describe, expect, test } from 'vitest';
import { isAppError } from '../../errors/errors.ts';
import { LogicBudget } from './budget.ts';
import { evaluateCalculation } from './calculate.ts';
import { compileLogic, LOGIC_LIMITS, type Logic } from './compile.ts';
import { evaluateLogic } from './evaluate.ts';
import { someData, typed } from './testing/typed-logic.ts';
import { variablesOf } from './variables.ts';

interface Case {
  readonly description: string;
  readonly rule: unknown;
  readonly data?: unknown;
  readonly result: unknown;
}

// The common core of json-logic/compat-tables (Apache-2.0), suites/compatible.json, state of August 2026.
const suite: readonly (Case | string)[] = JSON.parse(
  readFileSync(new URL('vectors/compatible.json', import.meta.url), 'utf8'),
);
const cases = suite.filter((one): one is Case => typeof one !== 'string');

function compiled(rule: unknown): Logic {
  const logic = compileLogic(rule);
  if (logic.kind === 'fault') throw new Error(`${logic.location}: ${logic.message}`);
  return logic;
}

function evaluate(rule: unknown, data: unknown = null): unknown {
  return evaluateLogic(compiled(rule), data, new LogicBudget());
}

function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (isAppError(error, 'unprocessable')) return error.code;
    throw error;
  }
  return 'none';
}

function nested(depth: number, inner: unknown): unknown {
  let value = inner;
  for (let level = 1; level < depth; level += 1) value = { '!': [value] };
  return value;
}

/** The package has no types, which an import by a literal would need. */
const { default: jsonLogic }: { readonly default: { apply(rule: unknown, data: unknown): unknown } } =
  await import('json-logic-js' as string);
const engine = new LogicEngine();
const others = {
  'json-logic-js': (rule: unknown, data: unknown) => jsonLogic.apply(rule, data),
  'json-logic-engine': (rule: unknown, data: unknown) => engine.run(rule, data),
};

describe('the common core of JSON Logic', () => {
  test('has 278 cases', () => expect(cases).toHaveLength(278));

  test.each(cases)('$description', ({ rule, data, result }) => {
    expect(evaluate(rule, data ?? null)).toEqual(result);
  });
});

/** JSON has one zero. */
const asJson = (value: unknown): string => JSON.stringify(value);

describe.each(Object.entries(others))('beside %s', (_name, apply) => {
  test.each(['number', 'boolean', 'text', 'numbers'] as const)('logic that gives %s', (kind) => {
    fc.assert(
      fc.property(typed[kind], someData, (rule, data) => {
        fc.pre(compileLogic(rule).kind !== 'fault');
        expect(asJson(evaluate(rule, data))).toBe(asJson(apply(rule, data)));
      }),
      { numRuns: 400 },
    );
  });
});

const THROWS = 'throws';

/** Where the implementations differ: rule, data, our answer, json-logic-js, json-logic-engine. */
const differences: readonly (readonly [unknown, unknown, unknown, unknown, unknown])[] = [
  // prototypes and lengths are no data
  [{ var: 'constructor.name' }, {}, null, 'Object', 'Object'],
  [{ var: 'length' }, [1, 2], null, 2, 2],
  [{ var: 't.length' }, { t: 'abc' }, null, 3, 3],
  // one rule for numbers: as ECMAScript's Number(), lists and objects have none
  [{ '+': ['1a', 1] }, null, Number.NaN, 2, THROWS],
  [{ '+': [null, 1] }, null, 1, Number.NaN, 1],
  [{ '+': [[1], 1] }, null, Number.NaN, 2, THROWS],
  [{ '/': [1, 0] }, null, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, THROWS],
  // an operand is never spread into several
  [{ max: { var: 'l' } }, { l: [1, 2] }, Number.NaN, Number.NaN, 2],
  // three operands of every comparison count
  [{ '>': [3, 2, 5] }, null, false, true, false],
  // lists equal nothing
  [{ '==': [[1], 1] }, null, false, true, THROWS],
  // characters are not cut in two
  [{ substr: ['😀a', 1] }, null, 'a', '\ude00a', '\ude00a'],
];

describe('known differences', () => {
  const attempt = (act: () => unknown): unknown => {
    try {
      return act();
    } catch {
      return THROWS;
    }
  };
  test.each(differences)('%j over %j', (rule, data, ...[ours, js, engines]) => {
    expect(attempt(() => evaluate(rule, data))).toEqual(ours);
    expect(attempt(() => others['json-logic-js'](rule, data))).toEqual(js);
    expect(attempt(() => others['json-logic-engine'](rule, data))).toEqual(engines);
  });
});

describe('compileLogic', () => {
  test.each([
    [{ log: 'x' }, ''],
    [{ method: [1, 'toString'] }, ''],
    [{ constructor: ['a'] }, ''],
    [JSON.parse('{"__proto__": [1]}'), ''],
    [{}, ''],
    [{ '+': [1, 2], '-': [1, 2] }, ''],
    [{ if: [true, { try: [1] }] }, '/if/1'],
    [{ '==': [1] }, ''],
    [{ '/': [1, 2, 3] }, ''],
    [[1, { '!': [{ '%': 3 }] }], '/1/!/0'],
    [undefined, ''],
    [nested(LOGIC_LIMITS.depth + 1, true), '/!/0'.repeat(LOGIC_LIMITS.depth)],
  ])('refuses %j', (rule, location) => {
    expect(compileLogic(rule)).toMatchObject({ kind: 'fault', location });
  });

  test('takes 500 values nested 32 deep, and no more', () => {
    const list = (count: number) => Array.from({ length: count }, () => 1);
    expect(compileLogic(list(499))).toMatchObject({ kind: 'list' });
    expect(compileLogic(list(500))).toMatchObject({ kind: 'fault', location: '/499' });
    expect(compileLogic(nested(32, true))).toMatchObject({ kind: 'operation' });
  });

  test('ends at once on deep and wide input', () => {
    expect(compileLogic(nested(100_000, true)).kind).toBe('fault');
    expect(compileLogic(Array.from({ length: 1_000_000 }, () => 1)).kind).toBe('fault');
  });

  test('answers any JSON value', () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => compileLogic(value).kind.length > 0));
  });
});

describe('evaluateLogic', () => {
  test.each(['__proto__', 'constructor', 'a.__proto__', 'toString', 'list.map', 'list.-1', 'list.01', 't.0'])(
    'finds nothing at %s',
    (name) => {
      const data = { a: {}, list: [1], t: 'text' };
      expect(evaluate({ var: name }, data)).toBeNull();
      expect(evaluate({ missing: [name] }, data)).toEqual([name]);
    },
  );

  test('finds own members of any name', () => {
    expect(evaluate({ var: '__proto__.constructor' }, JSON.parse('{"__proto__":{"constructor":7}}'))).toBe(7);
  });

  test('takes 50,000 steps for an action, and no more', () => {
    const budget = new LogicBudget();
    const list = compiled({ some: [{ var: 'l' }, false] });
    const data = { l: Array.from({ length: 24_996 }, () => 1) };
    // Each: the operation, the variable, its name, one name, and a step for an item.
    expect(evaluateLogic(list, data, budget)).toBe(false);
    expect(evaluateLogic(list, data, budget)).toBe(false);
    expect(codeOf(() => evaluateLogic(compiled(true), data, budget))).toBe('LOGIC_BUDGET_EXCEEDED');
  });

  const long = 'a'.repeat(200_000);
  const items = Array.from({ length: 2_000 }, (_, index) => index);
  const hostile: Readonly<Record<string, readonly [unknown, unknown]>> = {
    'iterations inside iterations': [
      { map: [{ var: 'l' }, { map: [[1, 2, 3, 4, 5, 6, 7, 8, 9], { map: [[1, 2, 3, 4], 1] }] }] },
      { l: items },
    ],
    'a text that doubles': [
      { reduce: [{ var: 'l' }, { cat: [{ var: 'accumulator' }, { var: 'accumulator' }] }, 'a'] },
      { l: items },
    ],
    'a list that doubles': [
      { reduce: [{ var: 'l' }, { merge: [{ var: 'accumulator' }, { var: 'accumulator' }] }, [1]] },
      { l: items },
    ],
    'a list that contains itself twice': [
      { reduce: [{ var: 'l' }, [{ var: 'accumulator' }, { var: 'accumulator' }], 1] },
      { l: items },
    ],
    'a list inside a list inside a list': [
      { reduce: [{ var: 'l' }, [{ var: 'accumulator' }], 1] },
      { l: items },
    ],
    'a frame inside a frame': [{ reduce: [{ var: 'l' }, { var: '' }, 1] }, { l: items }],
    'the whole data for each item': [{ map: [{ var: 'l' }, long] }, { l: items }],
    'a long text joined many times': [
      { cat: Array.from({ length: 200 }, () => ({ var: 't' })) },
      { t: long },
    ],
    'a long text searched for a long one': [
      { in: [{ var: 'part' }, { var: 't' }] },
      { t: long, part: `b${'a'.repeat(100_000)}` },
    ],
    'a long text in a long list': [
      { in: [{ var: 't' }, { var: 'l' }] },
      { t: long, l: Array.from({ length: 100 }, () => `${long.slice(1)}b`) },
    ],
    'a long text cut into characters many times': [
      { map: [{ var: 'l' }, { substr: [long, 1, 1] }] },
      { l: items },
    ],
    'a wide list merged many times': [
      { merge: Array.from({ length: 200 }, () => ({ var: 'l' })) },
      { l: items },
    ],
  };
  test.each(Object.entries(hostile))('is ended by %s', (_name, [rule, data]) => {
    expect(codeOf(() => evaluate(rule, data))).toBe('LOGIC_BUDGET_EXCEEDED');
  });

  test('joins no object to a text', () => {
    expect(codeOf(() => evaluate({ cat: ['a', { var: '' }] }, { a: 1 }))).toBe('LOGIC_NO_TEXT');
    expect(evaluate({ cat: ['a', [1, [true, null]], null] })).toBe('a1,true,');
  });

  test('leaves its data as they were', () => {
    fc.assert(
      fc.property(typed.numbers, someData, (rule, data) => {
        const before = JSON.stringify(data);
        evaluate(rule, data);
        expect(JSON.stringify(data)).toBe(before);
      }),
    );
  });
});

describe('evaluateCalculation', () => {
  const calculate = (rule: unknown, data: unknown = {}, budget = new LogicBudget()) =>
    evaluateCalculation({ name: 'fee', logic: compiled(rule) }, data, budget);

  test.each([
    { '/': [1, 0] },
    { '%': [1, 0] },
    { '+': ['x', 1] },
    [1, [{ '-': [[]] }]],
    { '*': [1e308, 10] },
  ])('refuses the result of %j', (rule) => expect(codeOf(() => calculate(rule))).toBe('CALC_NOT_FINITE'));

  test('gives finite numbers, texts and lists', () => {
    expect(calculate({ '+': [0.1, 0.2] })).toBe(0.1 + 0.2);
    expect(calculate([1, 'NaN', null])).toEqual([1, 'NaN', null]);
  });

  test('bounds results that contain one another', () => {
    const budget = new LogicBudget();
    let data: Record<string, unknown> = { text: 'a'.repeat(100) };
    const grow = () => {
      for (let index = 0; index < 100; index += 1) {
        data = { ...data, [`c${index}`]: calculate({ var: '' }, data, budget) };
      }
    };
    expect(codeOf(grow)).toBe('LOGIC_BUDGET_EXCEEDED');
  });
});

describe('variablesOf', () => {
  test.each([
    [{ '+': [{ var: 'a' }, { var: ['b.c', { var: 'd' }] }, 1] }, ['a', 'b.c', 'd']],
    [{ map: [{ var: 'items' }, { '*': [{ var: 'price' }, 2] }] }, ['items']],
    [{ reduce: [{ var: 'l' }, { var: 'current' }, { var: 'start' }] }, ['l', 'start']],
    [{ missing: ['a', 'b.c'] }, ['a', 'b.c']],
    [{ missing: [['a', 'b']] }, ['a', 'b']],
    [{ missing_some: [{ var: 'n' }, ['a', 'b']] }, ['a', 'b', 'n']],
    [{ var: '' }, ['']],
    [{ var: [] }, ['']],
    [{ var: { cat: ['a', 'b'] } }, ['']],
    [{ missing: { merge: [['a'], ['b']] } }, ['']],
    [{ if: [{ var: 'a' }, [{ var: 'b' }], { var: 1 }] }, ['a', 'b', '1']],
    ['text', []],
  ])('%j reads %j', (rule, names) => expect(variablesOf(compiled(rule))).toEqual(names));

  test('lists all that decides', () => {
    fc.assert(
      fc.property(typed.number, someData, (rule, data) => {
        const logic = compiled(rule);
        const names = new Set(variablesOf(logic).map((name) => name.split('.')[0]));
        const known = Object.fromEntries(Object.entries(data).filter(([name]) => names.has(name)));
        const budget = new LogicBudget();
        expect(evaluateLogic(logic, known, budget)).toEqual(evaluateLogic(logic, data, budget));
      }),
    );
  });
});
