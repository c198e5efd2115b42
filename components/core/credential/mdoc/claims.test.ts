import { expect, it } from 'vitest';
import { readCbor } from '../../encoding/cbor.ts';
import { type CborValue, writeCbor } from '../../encoding/cbor-writer.ts';
import { claimOf } from './claims.ts';

const read = (value: CborValue) => claimOf(readCbor(writeCbor(value)));
const map = (...entries: readonly (readonly [string | number, CborValue])[]) => new Map(entries);

it('the members of a map are its keys as text', () => {
  const members = read(map([1, 'a'], ['b', 2], ['__proto__', 3]));
  expect(Object.entries(members as object)).toEqual([
    ['1', 'a'],
    ['b', 2],
    ['__proto__', 3],
  ]);
});

it('two keys of one text are no members: one value would hide the other', () => {
  for (const keys of [map([1, 'a'], ['1', 'b']), map(['in', map([-1, 'a'], ['-1', 'a'])])])
    expect(() => read(keys)).toThrow(expect.objectContaining({ code: 'FORMAT' }));
});
