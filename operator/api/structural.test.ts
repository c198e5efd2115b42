import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { immutable, integer, keepsPresence, listOf, mapOf, quantity, text, withRules } from './fields.ts';
import { structuralSchema } from './structural.ts';

const line = text({ max: 10 });

describe('a construct becomes', () => {
  const examples: readonly [string, z.ZodType, object][] = [
    [
      'bounds for text, counted in code points',
      text({ min: 1, max: 5 }),
      { type: 'string', minLength: 1, maxLength: 5 },
    ],
    ['an int64 with bounds', integer(1, 9), { type: 'integer', format: 'int64', minimum: 1, maximum: 9 }],
    ['a boolean', z.boolean(), { type: 'boolean' }],
    ['words', z.enum(['A', 'B']), { type: 'string', enum: ['A', 'B'] }],
    ['one value', z.literal(true), { type: 'boolean', enum: [true] }],
    ['a list', listOf(line, 3), { type: 'array', maxItems: 3, items: { type: 'string', maxLength: 10 } }],
    [
      'the schema of the input, for a transform',
      line.transform((value) => value.length),
      { type: 'string', maxLength: 10 },
    ],
    [
      'a default',
      integer(1, 9).default(4),
      { type: 'integer', format: 'int64', default: 4, minimum: 1, maximum: 9 },
    ],
    ['a description', z.boolean().describe('Why.'), { type: 'boolean', description: 'Why.' }],
    [
      'members, required when they have neither default nor optional',
      z.strictObject({ a: line, b: line.optional(), c: z.boolean().default(true) }),
      {
        type: 'object',
        required: ['a'],
        properties: {
          a: { type: 'string', maxLength: 10 },
          b: { type: 'string', maxLength: 10 },
          c: { type: 'boolean', default: true },
        },
      },
    ],
    [
      'an empty default, so that the defaults of the members below apply',
      z.strictObject({ a: z.boolean().default(true) }).prefault({}),
      { type: 'object', default: {}, properties: { a: { type: 'boolean', default: true } } },
    ],
    [
      'the members of both sides, for an intersection',
      z.intersection(z.object({ a: line.optional() }), z.object({ b: line.optional() })),
      {
        type: 'object',
        properties: { a: { type: 'string', maxLength: 10 }, b: { type: 'string', maxLength: 10 } },
      },
    ],
    [
      'a format that the API server knows',
      text({ max: 64 }).meta({ format: 'date-time' }),
      { type: 'string', format: 'date-time', maxLength: 64 },
    ],
    [
      'keys for a list with several field managers',
      listOf(z.object({ name: line }), 2).meta({
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
      }),
      {
        type: 'array',
        maxItems: 2,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        items: {
          type: 'object',
          required: ['name'],
          properties: { name: { type: 'string', maxLength: 10 } },
        },
      },
    ],
  ];
  test.each(examples)('%s', (_what, schema, expected) => {
    expect(structuralSchema(schema)).toEqual(expected);
  });

  test('a rule with a message, for a pattern', () => {
    expect(structuralSchema(text({ max: 9, pattern: /^a[/]\d$/, message: 'write a/1' }))).toEqual({
      type: 'string',
      maxLength: 9,
      'x-kubernetes-validations': [{ rule: "self.matches(r'^a[/]\\d$')", message: 'write a/1' }],
    });
  });

  test('number or text without a type, for a quantity', () => {
    const found = structuralSchema(quantity().prefault('1Gi').describe('Size.'));
    expect(found).toMatchObject({ 'x-kubernetes-int-or-string': true, default: '1Gi', description: 'Size.' });
    expect(Object.keys(found)).not.toContain('type');
    expect(Object.keys(found)).not.toContain('anyOf');
  });

  test('a map with bounds and a rule over its keys', () => {
    const map = mapOf(line, { entries: 2, keyMax: 5, keyPattern: /^k/, message: 'write k' });
    expect(structuralSchema(map)).toEqual({
      type: 'object',
      maxProperties: 2,
      additionalProperties: { type: 'string', maxLength: 10 },
      'x-kubernetes-validations': [
        { rule: "self.all(k, size(k) > 0 && size(k) <= 5 && k.matches(r'^k'))", message: 'write k' },
      ],
    });
  });

  test('rules in the order of their addition, each with its member', () => {
    const object = withRules(
      immutable(z.strictObject({ a: line.optional() }), 'first'),
      keepsPresence('a', 'second'),
    ).describe('Both.');
    expect(structuralSchema(object)).toMatchObject({
      description: 'Both.',
      'x-kubernetes-validations': [
        { rule: 'self == oldSelf', message: 'first' },
        { rule: 'has(self.a) == has(oldSelf.a)', message: 'second', fieldPath: '.a' },
      ],
    });
  });
});

describe('a construct that a CRD cannot express is refused with path and remedy:', () => {
  const node: z.ZodType = z.lazy(() => z.object({ next: node.optional() }));
  const cases: readonly [string, z.ZodType, string][] = [
    ['a union', z.union([line, z.boolean()]), 'unions are not structural'],
    [
      'a discriminated union',
      z.discriminatedUnion('k', [z.object({ k: z.literal('a') })]),
      'unions are not structural',
    ],
    ['a tuple', z.tuple([line]), 'unions are not structural'],
    ['a recursive schema', node, 'write the schema where it is used'],
    ['text without a bound', z.string(), 'the text has no maxLength'],
    ['a bare pattern', z.string().max(5).regex(/a/), 'whose rule names the remedy'],
    ['a list without a bound', z.array(line), 'the list has no maxItems'],
    ['a map without a bound', z.record(z.string(), line), 'the map has no maxProperties'],
    ['a number with a fraction', z.number().min(0).max(1), 'type number is not structural'],
    ['an exclusive bound', z.int().gt(0).max(5), 'write an inclusive bound'],
    ['anything', z.unknown(), 'is not structural'],
    ['a date', z.date(), 'is not structural'],
    ['a loose object', z.looseObject({}), 'the map has no maxProperties'],
  ];
  test.each(cases)('%s', (_what, schema, message) => {
    const within = z.strictObject({ outer: z.strictObject({ inner: schema }) });
    expect(() => structuralSchema(within)).toThrow(message);
    if (_what !== 'a recursive schema') expect(() => structuralSchema(within)).toThrow(/^outer\.inner/);
  });
});
