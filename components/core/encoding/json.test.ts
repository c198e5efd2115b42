import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from './jcs.ts';
import {
  findMember,
  type JsonNode,
  MAX_JSON_DEPTH,
  memberSlices,
  minify,
  rawText,
  scanJson,
  toValue,
} from './json.ts';
import { utf8 } from './text.ts';

function refusal(text: string | Uint8Array): unknown {
  try {
    scanJson(text);
  } catch (error) {
    return error;
  }
  return undefined;
}

function accepts(text: string): boolean {
  return refusal(text) === undefined;
}

/** `count` members, n0 first. */
const names = (count: number) => Array.from({ length: count }, (_, n) => `"n${n}":0`).join(',');

/** The value of a tree of nodes, built without JSON.parse. */
function plainValue(node: JsonNode): unknown {
  switch (node.kind) {
    case 'object':
      return node.members.map((member) => [member.name, plainValue(member.value)]);
    case 'array':
      return node.items.map(plainValue);
    default:
      return node.value;
  }
}

function pairs(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(pairs);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value).map(([name, member]) => [name, pairs(member)]);
}

describe('scanJson', () => {
  it('keeps the text as it was written', () => {
    const text = ' { "a" : [ 1.50 , "\\u00e9\\n" ] ,\n"b":{ "c" : -0e1 } , "__proto__": null }\t';
    const node = scanJson(text);
    expect(memberSlices(node)).toEqual(
      new Map([
        ['a', '[ 1.50 , "\\u00e9\\n" ]'],
        ['b', '{ "c" : -0e1 }'],
        ['__proto__', 'null'],
      ]),
    );
    expect(minify(node)).toBe('{"a":[1.50,"\\u00e9\\n"],"b":{"c":-0e1},"__proto__":null}');
    expect(rawText(node)).toBe(text.trim());
    const a = findMember(node, 'a');
    expect(a === undefined ? undefined : toValue(a)).toEqual([1.5, 'é\n']);
    expect(findMember(node, 'z')).toBeUndefined();
    expect(findMember(scanJson('[]'), 'a')).toBeUndefined();
    expect(memberSlices(scanJson('1')).size).toBe(0);
    expect(Object.hasOwn(Object(toValue(node)), '__proto__')).toBe(true);
  });

  it.each([
    ['{"a":1,"a":2}', 'duplicate member name', 7],
    ['{"a":1,"\\u0061":2}', 'duplicate member name', 7],
    [`{${names(30)},"n2":1}`, 'duplicate member name', names(30).length + 2],
    [`{${names(30)},"n29":1}`, 'duplicate member name', names(30).length + 2],
    ['[{"x":{"a":1,"a":1}}]', 'duplicate member name', 13],
    ['"\\ud800"', 'lone surrogate', 0],
    ['"\\udc00\\ud800"', 'lone surrogate', 0],
    ['NaN', 'unexpected character', 0],
    ['-Infinity', 'unexpected character', 0],
    ['1e999', 'number is too large', 0],
    ['', 'unexpected character', 0],
    ['01', 'text after the value', 1],
    ['1 2', 'text after the value', 2],
    ['{"a" 1}', 'expected :', 5],
    ['{"a":1,}', 'expected a member name', 7],
    ['{a:1}', 'expected a member name', 1],
    ['[1,]', 'unexpected character', 3],
    ['[1', 'expected , or ]', 2],
    ['[1}', 'expected , or ]', 2],
    ['"abc', 'unterminated string', 4],
    ['"a\\', 'unterminated string', 4],
    ['"a\u0001"', 'control character in a string', 2],
    ['"\\x41"', 'invalid escape', 0],
    ['tru', 'unexpected character', 0],
    ['+1', 'unexpected character', 0],
    ['.5', 'unexpected character', 0],
    ['\ufeff1', 'unexpected character', 0],
    ['\u00a01', 'unexpected character', 0],
    ['/**/1', 'unexpected character', 0],
  ])('refuses %j: %s at %i', (text, reason, position) => {
    expect(refusal(text)).toMatchObject({
      kind: 'invalid',
      code: 'VAL_STRUCT_012',
      details: { reason, position },
    });
  });

  it('nesting stops at the limit, for arrays and objects', () => {
    const nest = (open: string, close: string, depth: number) => open.repeat(depth) + close.repeat(depth);
    expect(accepts(nest('[', ']', MAX_JSON_DEPTH))).toBe(true);
    expect(accepts(nest('[', ']', MAX_JSON_DEPTH + 1))).toBe(false);
    expect(accepts(`${'{"a":'.repeat(64)}1${'}'.repeat(64)}`)).toBe(true);
    expect(accepts(`${'{"a":'.repeat(65)}1${'}'.repeat(65)}`)).toBe(false);
    expect(accepts('['.repeat(1_000_000))).toBe(false);
    expect(accepts(`[${Array.from({ length: 100 }, () => '[]').join(',')}]`)).toBe(true);
  });

  it('bytes must be UTF-8 without a byte order mark', () => {
    expect(toValue(scanJson(utf8('{"ä":"€"}')))).toEqual({ ä: '€' });
    expect(refusal(Uint8Array.of(0x22, 0xff, 0x22))).toMatchObject({ code: 'VAL_STRUCT_012' });
    expect(refusal(Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22))).toMatchObject({ code: 'VAL_STRUCT_012' });
    expect(refusal(Uint8Array.of(0xef, 0xbb, 0xbf, 0x31))).toMatchObject({ code: 'VAL_STRUCT_012' });
    expect(refusal('"\ud800"')).toMatchObject({ code: 'VAL_STRUCT_012' });
  });
});

describe('properties', () => {
  const value = fc.jsonValue({ maxDepth: 5, stringUnit: 'binary' });

  it('gives the value of JSON.parse, in the order of writing', () => {
    fc.assert(
      fc.property(value, fc.constantFrom(0, 1, 2), (data, indent) => {
        const text = JSON.stringify(data, null, indent);
        const node = scanJson(text);
        expect(plainValue(node)).toEqual(pairs(JSON.parse(text)));
        expect(toValue(node)).toEqual(JSON.parse(text));
        expect(minify(node)).toBe(JSON.stringify(JSON.parse(text)));
        expect(canonicalJson(toValue(scanJson(minify(node))))).toBe(canonicalJson(JSON.parse(text)));
      }),
    );
  });

  it('never accepts what JSON.parse refuses', () => {
    const alphabet = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ':',
      ',',
      '"',
      '\\',
      'a',
      '1',
      '0',
      '-',
      '.',
      'e',
      ' ',
      'true',
    );
    fc.assert(
      fc.property(fc.array(alphabet, { maxLength: 12 }), (parts) => {
        const text = parts.join('');
        let parses = true;
        try {
          JSON.parse(text);
        } catch {
          parses = false;
        }
        if (!parses) expect(accepts(text)).toBe(false);
        else if (!accepts(text))
          expect(refusal(text)).toMatchObject({
            details: { reason: expect.stringMatching(/duplicate|surrogate|large/) },
          });
      }),
      { numRuns: 2000 },
    );
  });

  it('refuses a copy of any member', () => {
    const objects = fc.dictionary(fc.string(), fc.integer(), { minKeys: 1, maxKeys: 8 });
    fc.assert(
      fc.property(objects, fc.nat(), (object, pick) => {
        const entries = Object.entries(object);
        const copied = entries[pick % entries.length];
        const members = [...entries, copied ?? ['', 0]].map(
          ([name, data]) => `${JSON.stringify(name)}:${data}`,
        );
        expect(accepts(`{${members.join(',')}}`)).toBe(false);
      }),
    );
  });
});
