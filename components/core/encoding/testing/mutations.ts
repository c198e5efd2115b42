import fc from 'fast-check';
import { isJsonObject } from '../json.ts';

/** A change of bytes at a place, which is taken modulo their number. */
type ByteEdit = (bytes: Buffer) => Buffer;

const places = fc.nat(1_000_000);
const short = fc.integer({ min: 1, max: 24 });

/** Puts bytes in place of some. */
function splice(whole: Buffer, at: number, removed: number, put: Uint8Array): Buffer {
  const start = at % (whole.length + 1);
  return Buffer.concat([whole.subarray(0, start), put, whole.subarray(start + removed)]);
}

function sliceOf(whole: Buffer, at: number, length: number): Buffer {
  const start = at % (whole.length + 1);
  return whole.subarray(start, start + length);
}

/** One bit flipped, bytes cut out, put in, or repeated, the end cut off, or one part copied over another. */
const byteEdits: fc.Arbitrary<ByteEdit> = fc.oneof(
  fc.tuple(places, fc.nat(7)).map(([at, bit]) => (whole: Buffer) => {
    if (whole.length === 0) return whole;
    const byte = whole[at % whole.length] ?? 0;
    return splice(whole, at % whole.length, 1, Buffer.of(byte ^ (1 << bit)));
  }),
  fc.tuple(places, short).map(
    ([at, length]) =>
      (whole: Buffer) =>
        splice(whole, at, length, Buffer.of()),
  ),
  fc.tuple(places, fc.nat(4), fc.uint8Array({ minLength: 1, maxLength: 8 })).map(
    ([at, length, put]) =>
      (whole: Buffer) =>
        splice(whole, at, length, put),
  ),
  fc.tuple(places, short, fc.integer({ min: 1, max: 40 })).map(([at, length, times]) => (whole: Buffer) => {
    const part = sliceOf(whole, at, length);
    return splice(whole, at, 0, Buffer.concat(Array.from({ length: times }, () => part)));
  }),
  places.map((at) => (whole: Buffer) => whole.subarray(0, at % (whole.length + 1))),
  fc.tuple(places, places, short).map(
    ([at, from, length]) =>
      (whole: Buffer) =>
        splice(whole, at, length, sliceOf(whole, from, length)),
  ),
);

/** One to three changes of any bytes. */
export const byteChanges: fc.Arbitrary<ByteEdit> = fc
  .array(byteEdits, { minLength: 1, maxLength: 3 })
  .map((edits) => (whole) => edits.reduce((bytes, edit) => edit(bytes), whole));

/** Bytes after such changes; rarely the same as before. */
export function mutatedBytes(whole: Uint8Array): fc.Arbitrary<Buffer> {
  return byteChanges.map((change) => change(Buffer.from(whole)));
}

/** Text after one to three changes of its UTF-8, in which characters may be cut. */
export function mutatedText(whole: string): fc.Arbitrary<string> {
  return mutatedBytes(Buffer.from(whole)).map((bytes) => bytes.toString('latin1'));
}

const deep = (levels: number) => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`) as unknown;

/** Values that parsers meet where they expect another one. */
const oddValues = fc.constantFrom<unknown>(
  null,
  true,
  false,
  '',
  ' ',
  'a\u0000b',
  '\u202eevil',
  '__proto__',
  'A='.repeat(20),
  'x'.repeat(3_000),
  '2026-02-30T00:00:00Z',
  0,
  -1,
  0.5,
  2 ** 31,
  2 ** 53,
  1e300,
  -1e300,
  [],
  [null],
  [[]],
  {},
  { '': '' },
  JSON.parse('{"__proto__":{"polluted":true}}'),
  { constructor: { prototype: {} } },
  { '...': 'x' },
  { _sd: ['x'] },
  deep(30),
  deep(63),
);
const oddNames = fc.constantFrom(
  '__proto__',
  'constructor',
  'toString',
  '',
  '\u0000',
  '_sd',
  '...',
  'length',
);

/** A change of one member or element of JSON data. */
type Change = (parent: Map<string, unknown> | unknown[], at: number) => void;

function entriesOf(parent: Map<string, unknown>): readonly (readonly [string, unknown])[] {
  return [...parent];
}

function replaceAt(parent: Map<string, unknown> | unknown[], at: number, to: unknown): void {
  if (Array.isArray(parent)) parent[at] = to;
  else parent.set(entriesOf(parent)[at]?.[0] ?? '', to);
}

function valueAt(parent: Map<string, unknown> | unknown[], at: number): unknown {
  return Array.isArray(parent) ? parent[at] : entriesOf(parent)[at]?.[1];
}

const sizeOf = (parent: Map<string, unknown> | unknown[]): number =>
  Array.isArray(parent) ? parent.length : parent.size;

const changes: fc.Arbitrary<Change> = fc.oneof(
  oddValues.map(
    (odd): Change =>
      (parent, at) =>
        replaceAt(parent, at, odd),
  ),
  fc.constant<Change>((parent, at) => {
    if (Array.isArray(parent)) parent.splice(at, 1);
    else parent.delete(entriesOf(parent)[at]?.[0] ?? '');
  }),
  fc.nat(50).map(
    (other): Change =>
      (parent, at) => {
        const to = other % sizeOf(parent);
        const [left, right] = [valueAt(parent, at), valueAt(parent, to)];
        replaceAt(parent, at, right);
        replaceAt(parent, to, left);
      },
  ),
  fc.tuple(oddNames, oddValues).map(
    ([name, odd]): Change =>
      (parent, at) => {
        if (Array.isArray(parent)) parent.push(valueAt(parent, at));
        else parent.set(name, odd);
      },
  ),
  fc.constantFrom<Change>(
    (parent, at) => replaceAt(parent, at, [valueAt(parent, at)]),
    (parent, at) => replaceAt(parent, at, JSON.stringify(valueAt(parent, at)) ?? ''),
    (parent, at) =>
      replaceAt(
        parent,
        at,
        Array.from({ length: 300 }, () => valueAt(parent, at)),
      ),
  ),
);

/** Changes one member or element somewhere below a value; places are counted in the order of the text. */
function changedAt(value: unknown, place: { left: number }, change: Change): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const parent = Array.isArray(value) ? [...value] : new Map(Object.entries(value));
  const size = sizeOf(parent);
  for (let at = 0; at < size && place.left >= 0; at += 1) {
    place.left -= 1;
    if (place.left < 0) change(parent, at);
    else replaceAt(parent, at, changedAt(valueAt(parent, at), place, change));
  }
  // A member named __proto__ is a member.
  return Array.isArray(parent) ? parent : Object.fromEntries(parent);
}

function countBelow(value: unknown): number {
  if (!Array.isArray(value) && !isJsonObject(value)) return 0;
  const inside = Object.values(value);
  return inside.reduce((count: number, each) => count + countBelow(each), inside.length);
}

/**
 * JSON data after one to three changes of its structure: a member or an element is replaced by an odd value, removed,
 * exchanged, wrapped, made a text or repeated, or one is added.
 */
export function mutatedJson<T>(whole: T): fc.Arbitrary<unknown> {
  return fc.array(fc.tuple(places, changes), { minLength: 1, maxLength: 3 }).map((edits) =>
    edits.reduce<unknown>((value, [at, change]) => {
      const count = countBelow(value);
      return count === 0 ? value : changedAt(value, { left: at % count }, change);
    }, whole),
  );
}

/**
 * Runs of fuzz tests, the same in each normal run: `CHANCERY_TEST_SEED` names others, `CHANCERY_TEST_LENGTH=full` makes
 * long runs of random ones.
 */
export function fuzzing(
  environment: Readonly<Record<string, string | undefined>>,
): (numRuns: number) => { readonly numRuns: number; readonly seed?: number } {
  const { CHANCERY_TEST_LENGTH: length, CHANCERY_TEST_SEED: seed } = environment;
  if (length !== 'full') return (numRuns) => ({ numRuns, seed: Number(seed ?? 1) });
  return (numRuns) => ({ numRuns: numRuns * 100, ...(seed !== undefined && { seed: Number(seed) }) });
}

/** Whether JSON data has nothing that the whole has not: members and elements may be missing. */
export function isWithin(part: unknown, whole: unknown): boolean {
  if (Array.isArray(part)) {
    if (!Array.isArray(whole)) return false;
    let from = 0;
    return part.every((item) => {
      while (from < whole.length && !isWithin(item, whole[from])) from += 1;
      from += 1;
      return from <= whole.length;
    });
  }
  if (!isJsonObject(part)) return part === whole;
  if (!isJsonObject(whole)) return false;
  return Object.keys(part).every((name) => Object.hasOwn(whole, name) && isWithin(part[name], whole[name]));
}
