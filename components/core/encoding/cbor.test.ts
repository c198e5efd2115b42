import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isAppError } from '../errors/errors.ts';
import { type CborNode, cborBytes, findCborMember, readCbor } from './cbor.ts';
import { type CborValue, embeddedCbor, writeCbor } from './cbor-writer.ts';
import { encodeHex } from './hex.ts';

const hex = (value: CborValue): string => encodeHex(writeCbor(value));
const read = (text: string): CborNode => readCbor(Buffer.from(text, 'hex'));

/** RFC 8949 appendix A. */
const EXAMPLES: readonly (readonly [CborValue, string])[] = [
  [0, '00'],
  [23, '17'],
  [24, '1818'],
  [100, '1864'],
  [1000, '1903e8'],
  [1_000_000, '1a000f4240'],
  [1_000_000_000_000, '1b000000e8d4a51000'],
  [18_446_744_073_709_551_615n, '1bffffffffffffffff'],
  [-18_446_744_073_709_551_616n, '3bffffffffffffffff'],
  [-1, '20'],
  [-100, '3863'],
  [-1000, '3903e7'],
  [1.1, 'fb3ff199999999999a'],
  [1.5, 'f93e00'],
  [3.402_823_466_385_288_6e38, 'fa7f7fffff'],
  [1e300, 'fb7e37e43c8800759c'],
  [2 ** -24, 'f90001'],
  [0.000_061_035_156_25, 'f90400'],
  [-4.1, 'fbc010666666666666'],
  [false, 'f4'],
  [true, 'f5'],
  [null, 'f6'],
  [{ tag: 0, value: '2013-03-21T20:04:00Z' }, 'c074323031332d30332d32315432303a30343a30305a'],
  [{ tag: 24, value: Buffer.from('6449455446', 'hex') }, 'd818456449455446'],
  [embeddedCbor('IETF'), 'd818456449455446'],
  [Buffer.of(), '40'],
  [Buffer.from([1, 2, 3, 4]), '4401020304'],
  ['', '60'],
  ['"\\', '62225c'],
  ['\u6c34', '63e6b0b4'],
  ['\u{10151}', '64f0908591'],
  [[], '80'],
  [[1, [2, 3], [4, 5]], '8301820203820405'],
  [new Map(), 'a0'],
  [
    new Map([
      [3, 4],
      [1, 2],
    ]),
    'a201020304',
  ],
  [
    new Map<string, CborValue>([
      ['b', [2, 3]],
      ['a', 1],
    ]),
    'a26161016162820203',
  ],
  [{ encoded: Buffer.from('83010203', 'hex') }, '83010203'],
];

it('examples of RFC 8949 appendix A', () => {
  for (const [value, text] of EXAMPLES) {
    expect(hex(value)).toBe(text);
    expect(encodeHex(cborBytes(read(text)))).toBe(text);
  }
});

it('reads what others write less shortly', () => {
  expect(read('1800')).toMatchObject({ kind: 'integer', value: 0n });
  expect(read('f7')).toMatchObject({ kind: 'simple', value: undefined });
  expect(read('fa3fc00000')).toMatchObject({ kind: 'float', value: 1.5 });
  expect(findCborMember(read('a2010220f5'), -1)).toMatchObject({ value: true });
  expect(findCborMember(read('a2016161613002'), 2)).toBeUndefined();
  expect(findCborMember(read('80'), 'a')).toBeUndefined();
});

it.each([
  ['nothing', ''],
  ['bytes behind it', '0000'],
  ['head cut off', '18'],
  ['text cut off', '6261'],
  ['array longer than the input', '9affffffff'],
  ['map longer than the input', 'bbffffffffffffffff'],
  ['indefinite bytes', '5f4101ff'],
  ['indefinite array', '9f01ff'],
  ['indefinite map', 'bf0102ff'],
  ['reserved length', '1c'],
  ['break alone', 'ff'],
  ['key twice', 'a201000101'],
  ['key twice, spelt otherwise', 'a20100180101'],
  ['key is an array', 'a18000'],
  ['key is null', 'a1f600'],
  ['text is not UTF-8', '61ff'],
  ['unknown simple value', 'f0'],
  ['simple value of two bytes', 'f8ff'],
  ['tag too large', 'db000000010000000000'],
  ['tag of nothing', 'c0'],
])('refuses: %s', (_, text) => {
  expect(() => read(text)).toThrow(expect.objectContaining({ code: 'CBOR_MALFORMED' }));
});

it('nesting is bounded', () => {
  expect(read(`${'81'.repeat(23)}00`).kind).toBe('array');
  expect(() => read(`${'81'.repeat(24)}00`)).toThrow('nested deeper');
  expect(() => read(`${'c1'.repeat(100_000)}00`)).toThrow('nested deeper');
});

it('the number of items is bounded', () => {
  const numbers = (count: number) =>
    Buffer.concat([Buffer.of(0x9a, 0, count >> 16, (count >> 8) & 0xff, count & 0xff), Buffer.alloc(count)]);
  expect(readCbor(numbers(65_535))).toMatchObject({ kind: 'array', end: 65_540 });
  expect(() => readCbor(numbers(65_536))).toThrow('more than 65536 items');
});

it('refuses to write what has no encoding', () => {
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, 1n << 64n, -(1n << 64n) - 1n, '\ud800']) {
    expect(() => writeCbor(value)).toThrow(expect.objectContaining({ code: 'CBOR_MALFORMED' }));
  }
});

/** A node as the value that writes it. */
function valueIn(node: CborNode): CborValue {
  switch (node.kind) {
    case 'array':
      return node.items.map(valueIn);
    case 'map':
      return new Map(
        node.entries.map(({ key, value }) => [
          key.kind === 'text' ? key.value : Number(valueIn(key)),
          valueIn(value),
        ]),
      );
    case 'tag':
      return { tag: node.tag, value: valueIn(node.inner) };
    default:
      return node.value ?? null;
  }
}

it('what is written is read, and written again alike', () => {
  const { value } = fc.letrec<{ value: CborValue; leaf: CborValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      tie('leaf'),
      fc.array(tie('value'), { maxLength: 4 }),
      fc
        .uniqueArray(fc.tuple(fc.oneof(fc.string(), fc.integer()), tie('value')), {
          maxLength: 4,
          selector: ([key]) => `${typeof key}${key}`,
        })
        .map((entries) => new Map(entries)),
      tie('value').map((inner) => ({ tag: 1004, value: inner })),
    ),
    leaf: fc.oneof(
      fc.maxSafeInteger(),
      fc.double({ noDefaultInfinity: true, noNaN: true }),
      fc.string({ unit: 'grapheme' }),
      fc.uint8Array({ maxLength: 40 }),
      fc.boolean(),
      fc.constant(null),
    ),
  }));
  fc.assert(
    fc.property(value, (made) => {
      const bytes = writeCbor(made);
      expect(encodeHex(writeCbor(valueIn(readCbor(bytes))))).toBe(encodeHex(bytes));
    }),
    { numRuns: 500 },
  );
});

it('nothing but a refusal comes of any bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      try {
        return readCbor(bytes).end === bytes.length;
      } catch (error) {
        return isAppError(error, 'invalid') && error.code === 'CBOR_MALFORMED';
      }
    }),
    { numRuns: 2000 },
  );
});
