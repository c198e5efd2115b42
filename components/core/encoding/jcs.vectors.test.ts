import serialize from 'canonicalize';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalBytes, canonicalJson } from './jcs.ts';

function ofBits(hex: string): number {
  return Buffer.from(hex, 'hex').readDoubleBE();
}

describe('RFC 8785', () => {
  it('section 3.2.2 and 3.2.3: the sample object', () => {
    const sample = JSON.parse(`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
      "literals": [null, true, false]
    }`);
    const expected =
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
      '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}';
    expect(canonicalJson(sample)).toBe(expected);
    expect(Buffer.from(canonicalBytes(sample)).toString('hex')).toBe(
      '7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c226e756d62657273223a5b3333333333333333332e333333333333332c31652b33302c342e352c302e3030322c31652d32375d2c22737472696e67223a22e282ac245c75303030665c6e4127425c225c5c5c5c5c222f227d',
    );
  });

  it('section 3.2.3: names by UTF-16 code units', () => {
    const sample = {
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\ud83d\ude00': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    };
    const values = Object.values(JSON.parse(canonicalJson(sample)));
    // ECMAScript puts number-like names first in every object, so the order is read from the text.
    const order = [...canonicalJson(sample).matchAll(/:"([^"]+)"/g)].map((match) => match[1]);
    expect(order).toEqual([
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ]);
    expect(values).toHaveLength(7);
  });

  it.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('appendix B: the double %s is %s', (bits, text) => {
    expect(canonicalJson(ofBits(bits))).toBe(text);
  });

  it.each([
    ['NaN', ofBits('7fffffffffffffff')],
    ['infinity', ofBits('7ff0000000000000')],
    ['a lone surrogate', '\ud800'],
    ['a lone surrogate in a name', { '\udead': 1 }],
    ['undefined', undefined],
    ['a hole', [undefined]],
    ['a function', () => 1],
    ['a bigint', 1n],
    ['a date', new Date(0)],
    ['a map', new Map()],
    ['a typed array', new Uint8Array(1)],
  ])('refuses %s', (_name, value) => {
    expect(() => canonicalJson(value)).toThrow(expect.objectContaining({ code: 'VAL_STRUCT_012' }));
  });

  it('leaves absent members out and keeps null', () => {
    expect(canonicalJson({ b: undefined, a: null })).toBe('{"a":null}');
  });

  it('refuses depth over 64 and cycles', () => {
    const nest = (depth: number): unknown => (depth === 0 ? 1 : [nest(depth - 1)]);
    expect(canonicalJson(nest(64))).toBe(`${'['.repeat(64)}1${']'.repeat(64)}`);
    expect(() => canonicalJson(nest(65))).toThrow(expect.objectContaining({ code: 'VAL_STRUCT_012' }));
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    expect(() => canonicalJson(cycle)).toThrow(expect.objectContaining({ code: 'VAL_STRUCT_012' }));
  });
});

describe('properties', () => {
  const json = fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' });

  it('canonical text is a fixed point and keeps the value', () => {
    fc.assert(
      fc.property(json, (value) => {
        const text = canonicalJson(value);
        const again: unknown = JSON.parse(text);
        expect(canonicalJson(again)).toBe(text);
        expect(JSON.parse(JSON.stringify(value))).toEqual(again);
      }),
    );
  });

  it('agrees with the package canonicalize', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(canonicalJson(value)).toBe(serialize(value));
      }),
    );
  });

  it('does not depend on the order of members', () => {
    const objects = fc.dictionary(fc.string({ unit: 'binary' }), fc.integer());
    fc.assert(
      fc.property(objects, (value) => {
        const reversed = Object.fromEntries(Object.entries(value).reverse());
        expect(canonicalJson(reversed)).toBe(canonicalJson({ ...value }));
      }),
    );
  });
});
