import fc from 'fast-check';

/** Well-typed logic over data of known types: where every implementation must agree. */
export const typed = fc.letrec<Record<'number' | 'boolean' | 'text' | 'numbers', unknown>>((tie) => {
  const both = (operators: readonly string[], left: fc.Arbitrary<unknown>, right: fc.Arbitrary<unknown>) =>
    fc.tuple(fc.constantFrom(...operators), left, right).map(([name, a, b]) => ({ [name]: [a, b] }));
  const branches = (kind: fc.Arbitrary<unknown>) =>
    fc
      .tuple(fc.constantFrom('if', '?:'), tie('boolean'), kind, kind)
      .map(([name, test, yes, no]) => ({ [name]: [test, yes, no] }));
  const number = tie('number');
  const numbers = tie('numbers');
  const item = fc.constantFrom({ var: '' }, { '*': [{ var: '' }, 2] }, { '+': [{ var: '' }, 1] });
  const test = fc.constantFrom({ '>': [{ var: '' }, 1] }, { '%': [{ var: '' }, 2] }, { '!': { var: '' } });
  return {
    number: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.integer({ min: -50, max: 50 }),
      fc.constantFrom({ var: 'n' }, { var: 'inner.m' }, { var: ['nothing', 7] }, { var: 'list.1' }),
      both(['+', '-', '*', 'max', 'min'], number, number),
      both(['/', '%'], number, fc.constantFrom(1, 2, 4, -8)),
      fc.tuple(numbers, item).map(([list, body]) => ({
        reduce: [{ map: [list, body] }, { '+': [{ var: 'accumulator' }, { var: 'current' }] }, 0],
      })),
      branches(number),
    ),
    boolean: fc.oneof(
      { depthSize: 'small' },
      fc.boolean(),
      both(['<', '<=', '>', '>=', '==', '!=', '===', '!=='], number, number),
      both(['<', '<=', '>', '>=', '==', '!=', '===', '!=='], tie('text'), tie('text')),
      both(['and', 'or'], tie('boolean'), tie('boolean')),
      fc
        .tuple(fc.constantFrom('!', '!!'), fc.oneof(tie('boolean'), number, tie('text')))
        .map(([name, of]) => ({
          [name]: [of],
        })),
      fc.tuple(fc.constantFrom('all', 'none', 'some'), numbers, test).map(([name, list, body]) => ({
        [name]: [list, body],
      })),
      both(['in'], number, numbers),
      both(['in'], tie('text'), tie('text')),
    ),
    text: fc.oneof(
      { depthSize: 'small' },
      fc.string({ maxLength: 5 }),
      fc.constantFrom({ var: 't' }, { var: 'inner.u' }),
      both(['cat'], tie('text'), fc.oneof(tie('text'), fc.integer(), tie('boolean'))),
      fc.tuple(tie('text'), fc.integer({ min: -6, max: 6 }), fc.integer({ min: -6, max: 6 })).map((all) => ({
        substr: all,
      })),
      branches(tie('text')),
    ),
    numbers: fc.oneof(
      { depthSize: 'small' },
      fc.array(fc.integer({ min: -9, max: 9 }), { maxLength: 4 }),
      fc.constant({ var: 'list' }),
      both(['merge'], numbers, numbers),
      fc.tuple(numbers, item).map(([list, body]) => ({ map: [list, body] })),
      fc.tuple(numbers, test).map(([list, body]) => ({ filter: [list, body] })),
      branches(numbers),
    ),
  };
});

/** Data that the variables of `typed` name. */
export const someData = fc.record({
  n: fc.integer({ min: -100, max: 100 }),
  t: fc.string({ maxLength: 6 }),
  list: fc.array(fc.integer({ min: -9, max: 9 }), { minLength: 2, maxLength: 5 }),
  inner: fc.record({ m: fc.integer({ min: 0, max: 3 }), u: fc.string({ maxLength: 3 }) }),
});
