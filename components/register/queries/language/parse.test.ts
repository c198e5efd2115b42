import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isAppError } from '#core/errors/errors.ts';
import { parseFilter, parseKey, parseOrderBy, parseSelect } from './parse.ts';
import { printExpression } from './print.fixture.ts';
import { COMPARISONS, type Expression, type LiteralNode, type LiteralValue, queryLimits } from './syntax.ts';
import { instantText } from './tokens.ts';

const printed = (text: string) => printExpression(parseFilter(text));

/** Code and position of a refusal. */
function refused(read: () => unknown): [code: string, position: unknown] | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    if (isAppError(error)) return [error.code, error.details?.['position']];
    throw error;
  }
}

const at = 0;
const withoutPlaces = (expression: Expression): unknown =>
  JSON.parse(JSON.stringify(expression, (name, value) => (name === 'at' ? undefined : value)));

describe('parsing a filter', () => {
  it.each([
    ["senderAddress eq 'a'", "senderAddress eq 'a'"],
    ['a or b and c', 'a or (b and c)'],
    ['(a or b) and c', '(a or b) and c'],
    ['a and b and c or d or e', '(a and b and c) or d or e'],
    ['not a and b', '(not a) and b'],
    ['not (a and b)', 'not (a and b)'],
    ['not a eq b', '(not a) eq b'],
    ['a gt 1 eq b lt 2', '(a gt 1) eq (b lt 2)'],
    ['a eq 1 ne false', '(a eq 1) ne false'],
    ["a EQ 'x' AND NOT b", "(a eq 'x') and (not b)"],
    ["a in ('x','y') or b in (1)", "(a in ('x','y')) or (b in (1))"],
    ["contains(toLower(a), 'it''s')", "contains(tolower(a), 'it''s')"],
    ["a eq ''", "a eq ''"],
    ["a eq ''''", "a eq ''''"],
    ['a\teq\t-1.50e3', 'a eq -1.50e3'],
    ['now()', 'now()'],
    ['t lt 2026-11-22T08:01Z', 't lt 2026-11-22T08:01:00.000000Z'],
    ['t lt 2026-11-22t10:01:02.1234567890+02:00', 't lt 2026-11-22T08:01:02.123456Z'],
    ['date(t) eq 2024-02-29', 'date(t) eq 2024-02-29'],
    ['a eq 0123ABCD-0000-4000-8000-000000000001', 'a eq 0123abcd-0000-4000-8000-000000000001'],
    ['Größe gt 5', 'Größe gt 5'],
  ])('%s', (text, meaning) => {
    expect(printed(text)).toBe(meaning);
  });

  it.each([
    ['', 0],
    ['   ', 3],
    ['a eq', 4],
    ['eq eq', 5],
    ["a eq 'x", 5],
    ["a eq 'x' y", 9],
    ['a b', 2],
    ['(a', 2],
    ['a)', 1],
    ['a in ()', 6],
    ["a in ('x' 'y')", 10],
    ["a in ('x',", 10],
    ['a in (b)', 6],
    ['f(a b)', 4],
    ['f(,)', 2],
    ['f(a,)', 4],
    ['a eq 5x', 6],
    ['a eq 1e', 6],
    ['a eq 2026-02-30', 5],
    ['a eq 0000-01-01', 5],
    ['a eq 0001-01-01T00:00+01:00', 5],
    ['a eq 9999-12-31T23:59-00:01', 5],
    ['a eq 2026-01-01T25:00Z', 5],
    ['a eq "x"', 5],
    ['a; drop table', 1],
    ['a eq b = c', 7],
    ["a eq 'x\u0000'", 5],
    ["a eq 'x\ud800'", 5],
    ['a\u00a0eq b', 1],
    ['a and', 5],
    ['and and', 7],
  ])('%j is refused at %i', (text, position) => {
    const [code, found] = refused(() => parseFilter(text)) ?? [];
    expect([text, found]).toEqual([text, position]);
    expect(code).toMatch(/^QUERY_(?:INVALID|NOT_SUPPORTED)$/);
  });
});

describe('the cases of the OASIS grammar', () => {
  // Inputs of the published test cases of OData 4.01 for $filter, $orderby and $select; https://github.com/oasis-tcs/odata-abnf
  it.each([
    'true',
    'Completed',
    'true eq false',
    'Size eq true',
    'Size eq 4.0',
    "Street eq 'Hugo'",
    "Name ne 'Milk'",
    'true ne false',
    "Name gt 'Milk'",
    "Name ge 'Milk'",
    "Name lt 'Milk'",
    "Name le 'Milk'",
    'true and false',
    'true or false',
    'not false',
    "Name EQ 'Milk' AND Price LT 2.55",
    "Name Eq 'Milk' OR Price Lt 2.55",
    "not endswith(Name,'ilk')",
    "Name in ('Milk', 'Cheese')",
    '(true)',
    '( true )',
    "(Name eq 'Milk')",
    "contains(CompanyName,'lfreds')",
    "endswith(CompanyName,'Futterkiste')",
    'length(CompanyName) eq 19',
    "startswith(CompanyName,'Futterkiste')",
    'tolower(CompanyName)',
    'toupper(CompanyName)',
    'date(LifeTime)',
    'day(BirthDate)',
    'month(BirthDate)',
    'year(BirthDate)',
    'now()',
    'now( )',
    'ReleaseDate gt 2013-05-24',
  ])('$filter=%s is parsed, and parses the same when printed', (text) => {
    expect(printed(printed(text))).toBe(printed(text));
  });

  it.each([
    ["Address/Street eq 'Hugo'", 7],
    ['Products/$count gt 0', 8],
    ["style has Sales.Pattern'Yellow'", 15],
    ['Name in ["Milk", "Cheese"]', 8],
    ['Price add 2.45 eq 5.00', 6],
    ['Price sub 0.55 eq 2.00', 6],
    ['Price mul 2.0 eq 5.10', 6],
    ['Price div 2.55 eq 1', 6],
    ['Rating divby 2 eq 2.5', 7],
    ['Rating mod 5 eq 0', 7],
    ['-Price lt 0', 0],
    ['contains(Names,["Fred","George"])', 15],
    ["endswith($it,'.com')", 9],
    ["$it/Completed eq 'x'", 0],
    ['Products/any(lambda:true)', 8],
    ["Price/@Measures.Currency eq 'EUR'", 5],
    ['contains(Title,@word)', 15],
    ["length(geography'SRID=0;Point(142.1 64.1)') gt 1", 7],
    ["a eq duration'PT1S'", 5],
    ['{"Street":"NE"} eq Address', 0],
  ])('$filter=%s is reported as not supported at %i', (text, position) => {
    expect(refused(() => parseFilter(text))).toEqual(['QUERY_NOT_SUPPORTED', position]);
  });

  it.each([
    ['Name', ['asc']],
    ['Name\tasc', ['asc']],
    ['Name asc,Rating,ReleaseDate desc', ['asc', 'asc', 'desc']],
    ['Cost ge Revenue asc', ['asc']],
  ])('$orderby=%s', (text, directions) => {
    expect(parseOrderBy(text).map(({ direction }) => direction)).toEqual(directions);
  });

  it('parses $select', () => {
    expect(parseSelect('Rating,ReleaseDate')?.map(({ name }) => name)).toEqual(['Rating', 'ReleaseDate']);
    expect(parseSelect('*')).toBeUndefined();
    for (const [text, position] of [
      ['Address/Street', 7],
      ['@Measures.Currency', 0],
      ['Model.*', 5],
      ['Address($select=Street)', 8],
    ] as const) {
      expect([text, refused(() => parseSelect(text))]).toEqual([text, ['QUERY_NOT_SUPPORTED', position]]);
    }
  });

  it('parses keys', () => {
    const key = (text: string) => parseKey(text).map(({ name, value }) => [name, printExpression(value)]);
    expect(key("'O''Neil'")).toEqual([[undefined, "'O''Neil'"]]);
    expect(key("registerId='a=b,c',docketNumber=3")).toEqual([
      ['registerId', "'a=b,c'"],
      ['docketNumber', '3'],
    ]);
    for (const text of ['', 'a', 'x=', "'a',", "='a'", "'a'b", '1,2,3,4,5']) {
      expect([text, refused(() => parseKey(text))?.[0]]).toEqual([text, 'QUERY_INVALID']);
    }
  });
});

describe('bounds', () => {
  const { characters, depth, terms, orderings } = queryLimits;
  it('on the length', () => {
    expect(refused(() => parseFilter(`a${' '.repeat(characters - 1)}`))).toBeUndefined();
    expect(refused(() => parseFilter(`a${' '.repeat(characters)}`))).toEqual(['QUERY_INVALID', characters]);
  });

  it('on nesting', () => {
    const nested = (levels: number) => `${'('.repeat(levels)}a${')'.repeat(levels)}`;
    expect(refused(() => parseFilter(nested(depth)))).toBeUndefined();
    expect(refused(() => parseFilter(nested(depth + 1)))).toEqual(['QUERY_INVALID', depth]);
    expect(refused(() => parseFilter('not '.repeat(depth + 1).concat('a')))?.[1]).toBe(depth * 4);
    expect(refused(() => parseFilter(`${'f('.repeat(depth + 1)}a`))?.[1]).toBe(depth * 2);
  });

  it('on the number of terms', () => {
    const list = (size: number) => `a in (${Array.from({ length: size }, () => '1').join(',')})`;
    expect(refused(() => parseFilter(list(terms - 2)))).toBeUndefined();
    expect(refused(() => parseFilter(list(terms - 1)))?.[0]).toBe('QUERY_INVALID');
    expect(refused(() => parseFilter(Array.from({ length: 200 }, () => 'a').join(' or ')))?.[0]).toBe(
      'QUERY_INVALID',
    );
  });

  it('on orderings', () => {
    const names = (size: number) => Array.from({ length: size }, () => 'a').join(',');
    expect(refused(() => parseOrderBy(names(orderings)))).toBeUndefined();
    expect(refused(() => parseOrderBy(names(orderings + 1)))).toEqual(['QUERY_INVALID', 10]);
  });
});

const nameArbitrary = fc
  .stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,12}$/)
  .filter((name) => !['not', 'null', 'true', 'false'].includes(name.toLowerCase()));

const literalArbitrary: fc.Arbitrary<LiteralNode> = fc
  .oneof<fc.Arbitrary<LiteralValue>[]>(
    fc.constant({ type: 'null' }),
    fc.boolean().map((value) => ({ type: 'boolean', value })),
    fc.integer().map((value) => ({ type: 'number', value: String(value) })),
    fc
      .string({ unit: 'binary' })
      .filter((value) => !value.includes('\u0000'))
      .map((value) => ({ type: 'string', value })),
    fc
      .integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 })
      .map((ms) => ({ type: 'instant', value: instantText(BigInt(ms) * 1_000n + 7n) })),
    fc.uuid().map((value) => ({ type: 'guid', value })),
  )
  .map((literal) => ({ kind: 'literal', literal, at }));

const { expression: expressionArbitrary } = fc.letrec<{ expression: Expression }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'expression' },
    literalArbitrary,
    nameArbitrary.map((name): Expression => ({ kind: 'property', name, at })),
    fc
      .tuple(nameArbitrary, fc.array(tie('expression'), { maxLength: 2, depthIdentifier: 'expression' }))
      .map(([name, args]): Expression => ({ kind: 'call', name: name.toLowerCase(), args, at })),
    fc
      .tuple(fc.constantFrom(...COMPARISONS), tie('expression'), tie('expression'))
      .map(([operator, left, right]): Expression => ({ kind: 'compare', operator, left, right, at })),
    fc
      .tuple(tie('expression'), fc.array(literalArbitrary, { minLength: 1, maxLength: 3 }))
      .map(([item, list]): Expression => ({ kind: 'in', item, list, at })),
    tie('expression').map((of): Expression => ({ kind: 'not', of, at })),
    fc
      .tuple(
        fc.constantFrom('all', 'any'),
        fc.array(tie('expression'), { minLength: 2, maxLength: 3, depthIdentifier: 'expression' }),
      )
      .map(([kind, of]): Expression => ({ kind, of, at })),
  ),
}));

describe('any text', () => {
  it('printed from an expression parses as that expression', () => {
    fc.assert(
      fc.property(expressionArbitrary, (expression) => {
        const text = printExpression(expression);
        fc.pre(text.length <= queryLimits.characters);
        try {
          expect(withoutPlaces(parseFilter(text))).toEqual(withoutPlaces(expression));
        } catch (error) {
          fc.pre(!(isAppError(error) && /more than/.test(error.message)));
          throw error;
        }
      }),
      { numRuns: 500 },
    );
  });

  it('is parsed, or refused with a position inside it', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '(',
        ')',
        ',',
        "'",
        ' ',
        'eq',
        'and',
        'not ',
        'in',
        'a',
        '1',
        '-',
        '.',
        'e',
        'T',
        'Z',
        '=',
      ),
      fc.string({ maxLength: 3 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const text = pieces.join('');
        for (const read of [parseFilter, parseOrderBy, parseSelect, parseKey]) {
          const [code, position] = refused(() => read(text)) ?? [undefined, 0];
          expect(code ?? 'QUERY_INVALID').toMatch(/^QUERY_(?:INVALID|NOT_SUPPORTED)$/);
          expect(position).toBeGreaterThanOrEqual(0);
          expect(position).toBeLessThanOrEqual(text.length);
        }
      }),
      { numRuns: 1_000 },
    );
  });
});
