import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isAppError } from '../../errors/errors.ts';
import { parseBlueprint } from '../model/parse.ts';
import type { JsonSchema } from '../model/values.ts';
import { compileSchemas } from './compile.ts';
import { flattenSchemas } from './flatten.ts';
import { judgeSchemas } from './judge.ts';
import { findPattern } from './patterns.ts';

const example = () =>
  JSON.parse(readFileSync(new URL('../vectors/site-permit.json', import.meta.url), 'utf8'));

function judged(...schemas: JsonSchema[]): string[] {
  return judgeSchemas(schemas, []).map(({ code, location }) => `${code} ${location}`);
}

function keywordsOf(schema: JsonSchema, payload: unknown): string[] {
  return compileSchemas({ dataSchemas: [schema] })(payload).map(({ keyword }) => keyword);
}

function flat(change: (definition: ReturnType<typeof example>) => void) {
  const definition = example();
  change(definition);
  const parsed = parseBlueprint(definition);
  if ('findings' in parsed) throw new Error(JSON.stringify(parsed.findings));
  const { blueprint, findings } = flattenSchemas(parsed.blueprint);
  return {
    schemas: blueprint.actions[0]?.dataSchemas ?? [],
    findings: findings.map(({ code, location }) => `${code} ${location}`),
  };
}

function nestedSchema(depth: number): JsonSchema {
  let schema: JsonSchema = { type: 'object' };
  for (let level = 1; level < depth; level += 1) schema = { properties: { a: schema } };
  return schema;
}

describe('judgeSchemas', () => {
  const refused: Readonly<Record<string, readonly [string, JsonSchema]>> = {
    'a schema that contains itself': [
      'VAL_BP_SCHEMA_RECURSIVE /0/properties/a/$ref',
      { properties: { a: { $ref: '#' } } },
    ],
    'two schemas that contain each other': [
      'VAL_BP_SCHEMA_RECURSIVE /0/$ref/items/$ref/items/$ref',
      {
        $ref: '#/$defs/a',
        $defs: { a: { items: { $ref: '#/$defs/b' } }, b: { items: { $ref: '#/$defs/a' } } },
      },
    ],
    'a dynamic reference': ['VAL_BP_SCHEMA_KEYWORD /0/$dynamicRef', { $dynamicRef: '#a' }],
    'a remote reference': ['VAL_BP_SCHEMA_REF /0/$ref', { $ref: 'https://example.org/schema' }],
    'a reference to nothing': ['VAL_BP_SCHEMA_REF /0/$ref', { $ref: '#/$defs/none' }],
    'a reference into data': ['VAL_BP_SCHEMA_REF /0/$ref', { $ref: '#/const/a', const: { a: {} } }],
    'a reference to an anchor': ['VAL_BP_SCHEMA_REF /0/$ref', { $ref: '#a', $defs: { x: { $anchor: 'a' } } }],
    'nesting of 33': [`VAL_BP_SCHEMA_LIMIT /0${'/properties/a'.repeat(32)}`, nestedSchema(33)],
    '501 properties': [
      'VAL_BP_SCHEMA_LIMIT /0/properties',
      { properties: Object.fromEntries(Array.from({ length: 501 }, (_, index) => [`p${index}`, true])) },
    ],
    'unique items without a bound': ['VAL_BP_SCHEMA_LIMIT /0/uniqueItems', { uniqueItems: true }],
    'unique items with a high bound': [
      'VAL_BP_SCHEMA_LIMIT /0/uniqueItems',
      { uniqueItems: true, maxItems: 1001 },
    ],
    'a pattern that looks ahead': ['VAL_BP_021 /0/pattern', { pattern: '^(?=a)b' }],
    'a pattern with a reference to a group': ['VAL_BP_021 /0/pattern', { pattern: '(a+)\\1' }],
    'a pattern of re2 alone': ['VAL_BP_021 /0/pattern', { pattern: '\\Aa\\z' }],
    'a pattern with large counts': ['VAL_BP_021 /0/pattern', { pattern: '(?:[a-z]{50}){50}' }],
    'a name pattern that looks ahead': [
      'VAL_BP_021 /0/items/patternProperties/(?!a)',
      { items: { patternProperties: { '(?!a)': true } } },
    ],
    'an asynchronous schema': ['VAL_BP_SCHEMA_KEYWORD /0/$async', { $async: true, type: 'object' }],
    'items that nothing evaluated': [
      'VAL_BP_SCHEMA_KEYWORD /0/unevaluatedItems',
      { unevaluatedItems: false },
    ],
    'an id inside': ['VAL_BP_SCHEMA_KEYWORD /0/items/$id', { items: { $id: 'urn:a' } }],
    'another dialect': [
      'VAL_BP_SCHEMA_KEYWORD /0/$schema',
      { $schema: 'http://json-schema.org/draft-07/schema#' },
    ],
    'schemas in a keyword of another dialect': [
      'VAL_BP_SCHEMA_KEYWORD /0/dependencies',
      { dependencies: { a: { pattern: '(a+)\\1' } } },
    ],
    'a type that does not exist': ['VAL_BP_SCHEMA /0/type', { type: 'text' }],
    'properties that are a list': ['VAL_BP_SCHEMA /0/properties', { properties: [] }],
  };
  test.each(Object.entries(refused))('refuses %s', (_name, [finding, schema]) => {
    expect(judged(schema)).toContain(finding);
    expect(() => compileSchemas({ dataSchemas: [schema] })).toThrow(/cannot be used/);
  });

  test('refuses references that multiply', () => {
    const levels = Array.from({ length: 20 }, (_, level) => [
      `l${level}`,
      { allOf: [{ $ref: `#/$defs/l${level + 1}` }, { $ref: `#/$defs/l${level + 1}` }] },
    ]);
    const schema = { $ref: '#/$defs/l0', $defs: { ...Object.fromEntries(levels), l20: { type: 'object' } } };
    expect(judged(schema)).toEqual(['VAL_BP_SCHEMA_LIMIT /0']);
  });

  test.each([20_000, 2_000, 100])('refuses a chain of %i references, from either end', (length) => {
    const links = Array.from({ length }, (_, link) => [`l${link}`, { $ref: `#/$defs/l${link + 1}` }]);
    const schema = (defs: unknown[]) => ({
      $ref: '#/$defs/l0',
      $defs: { ...Object.fromEntries(defs as [string, unknown][]), [`l${length}`]: true },
    });
    expect(judged(schema(links))[0]).toMatch(/^VAL_BP_SCHEMA_LIMIT/);
    expect(judged(schema(links.reverse()))[0]).toMatch(/^VAL_BP_SCHEMA_LIMIT/);
  });

  test('takes the schemas of the example, and unique items with a bound', () => {
    const { actions } = example();
    expect(
      actions.flatMap(({ dataSchemas }: { dataSchemas: JsonSchema[] }) => judged(...dataSchemas)),
    ).toEqual([]);
    expect(judged({ uniqueItems: true, maxItems: 1000 }, nestedSchema(32), true)).toEqual([]);
  });

  test('bounds the schemas of an action together', () => {
    const half = { properties: Object.fromEntries(Array.from({ length: 251 }, (_, n) => [`p${n}`, true])) };
    expect(judged(half)).toEqual([]);
    expect(judged(half, half)).toEqual(['VAL_BP_SCHEMA_LIMIT /1/properties']);
  });

  test('compiles what it takes', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.jsonValue(), (inner, payload) => {
        const schema = { properties: { a: inner as JsonSchema }, items: inner as JsonSchema };
        if (judged(schema).length === 0) compileSchemas({ dataSchemas: [schema] })(payload);
      }),
    );
  });
});

describe('compileSchemas', () => {
  test('says where a payload does not match', () => {
    const judge = compileSchemas({ dataSchemas: [true, example().actions[0].dataSchemas[0]] });
    const errors = judge({
      siteReference: 'x',
      floorAreaM2: 1,
      estimatedCostMinor: 0,
      hazardous: 1,
      contact: {},
    });
    expect(errors.map(({ path, schemaLocation, keyword }) => [path, schemaLocation, keyword])).toEqual([
      ['/siteReference', '/dataSchemas/1/properties/siteReference/pattern', 'pattern'],
      ['/hazardous', '/dataSchemas/1/properties/hazardous/type', 'type'],
      ['/contact', '/dataSchemas/1/properties/contact/required', 'required'],
    ]);
  });

  test('matches all schemas of an action, whatever their ids', () => {
    const judge = compileSchemas({
      dataSchemas: [
        { $id: 'urn:a', minimum: 2 },
        { $id: 'urn:a', maximum: 3 },
      ],
    });
    expect([1, 2, 4].map((payload) => judge(payload).length)).toEqual([1, 0, 1]);
  });

  test.each([
    ['email', 'a@example.org', 'a'],
    ['date', '2026-02-28', '2026-02-30'],
    ['date-time', '2026-02-28T10:00:00Z', '2026-02-28T10:00:00'],
    ['time', '10:00:00Z', '25:00:00Z'],
    ['uri', 'https://example.org/', 'example'],
    ['uuid', '0198f1d2-4e12-7abc-8def-0123456789ab', '0198f1d2'],
    ['tel', '+441632960961', '01632 960961'],
    ['json-pointer', '/a~1b', '/a~2'],
  ])('asserts the format %s', (format, right, wrong) => {
    expect(keywordsOf({ format }, right)).toEqual([]);
    expect(keywordsOf({ format }, wrong)).toEqual(['format']);
    expect(keywordsOf({ format }, 7)).toEqual([]);
  });

  test('takes other formats for annotations', () => {
    expect(keywordsOf({ format: 'ipv4' }, 'none')).toEqual([]);
  });

  test('compares items by value', () => {
    const schema = { uniqueItems: true, maxItems: 10 };
    expect(keywordsOf(schema, [{ a: 1 }, { a: 2 }, 1, '1'])).toEqual([]);
    expect(
      keywordsOf(schema, [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ]),
    ).toEqual(['uniqueItems']);
  });

  test('finds no members in prototypes', () => {
    expect(keywordsOf({ required: ['constructor'] }, {})).toEqual(['required']);
    expect(keywordsOf({ properties: { toString: { type: 'number' } } }, {})).toEqual([]);
    const payload = JSON.parse('{"__proto__": {"a": 1}}');
    expect(keywordsOf({ required: ['a'] }, payload)).toEqual(['required']);
    expect(keywordsOf({ additionalProperties: false }, payload)).toEqual(['additionalProperties']);
  });

  test('lists at most 100 errors', () => {
    const payload = Array.from({ length: 1000 }, () => 1);
    expect(keywordsOf({ items: { type: 'string' } }, payload)).toHaveLength(100);
  });

  test('matches a pattern for backtracking in linear time', () => {
    const text = `${'a'.repeat(65_000)}!`;
    expect(keywordsOf({ pattern: '^(a+)+$' }, text)).toEqual(['pattern']);
  });

  test('matches no text of more than 65,536 characters', () => {
    expect(keywordsOf({ pattern: '^a*$' }, 'a'.repeat(65_536))).toEqual([]);
    expect(keywordsOf({ pattern: '^a*$' }, 'a'.repeat(65_537))).toEqual(['pattern']);
  });

  const codeOf = (act: () => unknown): string => {
    try {
      act();
    } catch (error) {
      if (isAppError(error, 'unprocessable')) return error.code;
      throw error;
    }
    return 'none';
  };

  test('refuses with a code', () => {
    expect(codeOf(() => compileSchemas({ dataSchemas: [{ $ref: '#' }] }))).toBe('SCHEMA_REFUSED');
  });

  test('bounds what the patterns of one payload cost, for each payload anew', () => {
    const judge = compileSchemas({ dataSchemas: [{ items: { pattern: '^(?:[ab]*a[ab]{90})$' } }] });
    const text = 'b'.repeat(50_000);
    expect(judge([text, text])).toHaveLength(2);
    expect(judge([text, text])).toHaveLength(2);
    expect(codeOf(() => judge([text, text, text]))).toBe('SCHEMA_BUDGET_EXCEEDED');
    expect(judge([text, text])).toHaveLength(2);
  });
});

describe('patterns', () => {
  const source = fc.array(
    fc.constantFrom(
      'a',
      'b',
      '[ab]',
      '.',
      '\\d',
      '\\w',
      '(?:ab)',
      '(a|b)',
      'a{2}',
      '\\u0061',
      '^',
      '$',
      '\\b',
    ),
    { minLength: 1, maxLength: 6 },
  );
  test('match as those of ECMAScript do', () => {
    fc.assert(
      fc.property(
        source,
        fc.string({ unit: fc.constantFrom('a', 'b', '1', '_', ' ', '😀') }),
        (parts, text) => {
          const pattern = parts.join('');
          expect(findPattern(pattern)?.test(text)).toBe(new RegExp(pattern, 'u').test(text));
        },
      ),
    );
  });
});

describe('flattenSchemas', () => {
  const shared = {
    $id: 'urn:shared',
    $defs: { name: { type: 'string' }, all: { properties: { n: { $ref: '#/$defs/name' } } } },
    type: 'object',
  };
  test('leaves a definition without references as it is', () => {
    expect(flat(() => undefined).schemas).toEqual(example().actions[0].dataSchemas);
  });

  test('copies shared schemas and their references', () => {
    const { schemas, findings } = flat((it) => {
      it.dataSchemas = [shared];
      it.actions[0].dataSchemas = [
        { $ref: 'urn:shared' },
        { properties: { a: { $ref: 'urn:shared#/$defs/all', title: 'A' } } },
        { $defs: { own: { $ref: 'urn:shared#/$defs/name' } }, $ref: '#/$defs/own' },
      ];
    });
    expect(findings).toEqual([]);
    expect(schemas).toEqual([
      { type: 'object' },
      { properties: { a: { title: 'A', allOf: [{ properties: { n: { type: 'string' } } }] } } },
      { $defs: { own: { type: 'string' } }, $ref: '#/$defs/own' },
    ]);
    expect(schemas.flatMap((schema) => judged(schema))).toEqual([]);
  });

  test('names references to nothing, and shared schemas that contain themselves', () => {
    const { findings } = flat((it) => {
      it.dataSchemas = [
        { $id: 'urn:loop', items: { $ref: 'urn:loop' } },
        { $id: 'urn:broken', $ref: '#/$defs/x' },
      ];
      it.actions[0].dataSchemas = [
        { $ref: 'urn:none' },
        { not: { $ref: 'urn:loop' } },
        { $ref: 'urn:broken' },
      ];
    });
    expect(findings).toEqual([
      'VAL_BP_SCHEMA_REF /actions/0/dataSchemas/0/$ref',
      'VAL_BP_SCHEMA_REF /actions/0/dataSchemas/1/not/$ref/items/$ref',
      'VAL_BP_SCHEMA_REF /actions/0/dataSchemas/2/$ref/$ref',
    ]);
  });

  test('ends when references multiply', () => {
    const { findings } = flat((it) => {
      it.dataSchemas = Array.from({ length: 30 }, (_, level) => ({
        $id: `urn:${level}`,
        allOf: [{ $ref: `urn:${level + 1}` }, { $ref: `urn:${level + 1}` }],
      }));
      it.dataSchemas.push({ $id: 'urn:30' });
      it.actions[0].dataSchemas = [{ $ref: 'urn:0' }];
    });
    expect(findings).toHaveLength(1);
  });
});
