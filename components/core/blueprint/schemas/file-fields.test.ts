import { describe, expect, it } from 'vitest';
import type { JsonSchema } from '../model/values.ts';
import { fileValues, misfitOf, onlyFileProperty } from './file-fields.ts';

const file = { type: 'object', 'x-file': { maxChunks: 2 } };
const pathsOf = (schema: JsonSchema, payload: object) =>
  [...fileValues([schema], { ...payload })].map(({ path }) => path);

describe('values of files', () => {
  it.each<[string, JsonSchema, object, string[]]>([
    ['a property', { properties: { a: file } }, { a: {}, b: {} }, ['/a']],
    ['a property with a name of a pointer', { properties: { 'a/b~': file } }, { 'a/b~': {} }, ['/a~1b~0']],
    ['a nested property', { properties: { a: { properties: { b: file } } } }, { a: { b: {} } }, ['/a/b']],
    ['items', { properties: { a: { items: file } } }, { a: [{}, {}] }, ['/a/0', '/a/1']],
    [
      'a list that has the keyword itself',
      { properties: { a: { type: 'array', items: { type: 'object' }, 'x-file': {} } } },
      { a: [{}, {}] },
      ['/a/0', '/a/1'],
    ],
    ['first items', { properties: { a: { prefixItems: [true, file] } } }, { a: [{}, {}, {}] }, ['/a/1']],
    ['a reference', { $defs: { f: file }, properties: { a: { $ref: '#/$defs/f' } } }, { a: {} }, ['/a']],
    ['an alternative', { properties: { a: { anyOf: [{ type: 'null' }, file] } } }, { a: {} }, ['/a']],
    ['an alternative of the payload', { else: { properties: { a: file } } }, { a: {} }, ['/a']],
    ['a pattern', { patternProperties: { '^f': file } }, { fa: {}, a: {} }, ['/fa']],
    [
      'all other properties',
      { properties: { a: true }, additionalProperties: file },
      { a: {}, b: {} },
      ['/b'],
    ],
    ['no object', { properties: { a: file } }, { a: null }, []],
    ['nothing', true, { a: {} }, []],
  ])('are found behind %s', (_name, schema, payload, expected) => {
    expect(pathsOf(schema, payload)).toEqual(expected);
  });
});

describe('the only property of a file', () => {
  const list = { type: 'array', items: { type: 'object' }, 'x-file': {} };
  it.each<[string, JsonSchema[], ReturnType<typeof onlyFileProperty>]>([
    ['a property', [{ properties: { a: file, b: {} } }], { path: ['a'], isList: false }],
    [
      'a nested property',
      [{ properties: { a: { properties: { b: file } } } }],
      { path: ['a', 'b'], isList: false },
    ],
    ['a list', [{ properties: { a: list } }], { path: ['a'], isList: true }],
    [
      'a reference',
      [{ $defs: { f: file }, properties: { a: { $ref: '#/$defs/f' } } }],
      { path: ['a'], isList: false },
    ],
    [
      'one place in two schemas',
      [{ properties: { a: file } }, { properties: { a: file } }],
      { path: ['a'], isList: false },
    ],
    ['an alternative', [{ else: { properties: { a: file } } }], { path: ['a'], isList: false }],
    ['two properties', [{ properties: { a: file, b: file } }], undefined],
    ['properties of two schemas', [{ properties: { a: file } }, { properties: { b: file } }], undefined],
    [
      'a reference at two places',
      [{ $defs: { f: file }, properties: { a: { $ref: '#/$defs/f' }, b: { $ref: '#/$defs/f' } } }],
      undefined,
    ],
    ['items', [{ properties: { a: { items: file } } }], undefined],
    ['a property inside items', [{ properties: { a: { items: { properties: { b: file } } } } }], undefined],
    ['a property and other names', [{ properties: { a: file }, additionalProperties: file }], undefined],
    ['a pattern', [{ patternProperties: { '^f': file } }], undefined],
    ['the payload itself', [file], undefined],
    ['nothing', [true, { properties: { a: {} } }], undefined],
    ['a definition that is not used', [{ $defs: { f: file }, properties: { a: {} } }], undefined],
  ])('is found for %s', (_name, schemas, expected) => {
    expect(onlyFileProperty(schemas)).toEqual(expected);
  });
});

describe('a file', () => {
  const pdf = { contentType: 'application/pdf', size: 1024, chunkTransactionIds: ['a'] };

  it.each<[string, object, object, string | undefined]>([
    ['any type', {}, {}, undefined],
    ['an empty list of types', { accept: [] }, {}, undefined],
    ['its type', { accept: ['image/png', 'Application/PDF'] }, {}, undefined],
    [
      'its type with parameters',
      { accept: ['application/pdf'] },
      { contentType: 'application/pdf; a=b' },
      undefined,
    ],
    ['a range of types', { accept: ['application/*'] }, {}, undefined],
    ['every type', { accept: ['*/*'] }, {}, undefined],
    ['another type', { accept: ['image/*'] }, {}, 'the type of the file is not taken here'],
    [
      'a type that begins alike',
      { accept: ['application/pd'] },
      {},
      'the type of the file is not taken here',
    ],
    ['its size', { maxSizePerFile: '1KB' }, {}, undefined],
    ['a smaller size', { maxSizePerFile: '1KB' }, { size: 1025 }, 'the file has more than 1KB'],
    ['megabytes', { maxSizePerFile: '2MB' }, { size: 2 * 1024 * 1024 + 1 }, 'the file has more than 2MB'],
    [
      'fewer chunks',
      { maxChunks: 1 },
      { chunkTransactionIds: ['a', 'b'] },
      'the file has more than 1 chunks',
    ],
  ])('is judged by a field of %s', (_name, field, change, expected) => {
    expect(misfitOf(field, { ...pdf, ...change })).toBe(expected);
  });
});
