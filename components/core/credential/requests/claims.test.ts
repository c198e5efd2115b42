import fc from 'fast-check';
import { expect, it } from 'vitest';
import { canonicalJson } from '../../encoding/jcs.ts';
import { pickClaims, selectClaims } from './claims.ts';

it('what paths select is picked, and nothing beside it', () => {
  const claims = {
    name: 'Ada',
    none: null,
    address: { town: 'London', street: 'A 1', geo: { lat: 1, lon: 2 } },
    degrees: [{ type: 'BSc', year: 1 }, { type: 'MSc', year: 2 }, { year: 3 }, 'PhD'],
  };
  expect(pickClaims(claims, [['address', 'town'], ['address', 'geo', 'lat'], ['none']])).toEqual({
    none: null,
    address: { town: 'London', geo: { lat: 1 } },
  });
  expect(pickClaims(claims, [['address'], ['address', 'town']])).toEqual({ address: claims.address });
  expect(pickClaims(claims, [['degrees', null, 'type']])).toEqual({
    degrees: [{ type: 'BSc' }, { type: 'MSc' }],
  });
  expect(pickClaims(claims, [['degrees', 1, 'type']])).toEqual({ degrees: claims.degrees });
  for (const path of [
    ['name', 'x'],
    ['name', null],
    ['degrees', 9],
    ['address', 'none'],
    ['toString'],
  ] as const)
    expect(pickClaims(claims, [[...path]])).toEqual({});
});

it('what is picked answers as the whole does', () => {
  const value = fc.jsonValue({ maxDepth: 4 });
  const step = fc.oneof(fc.constantFrom('a', 'b', 'c'), fc.nat(2), fc.constant(null));
  const key = fc.constantFrom('a', 'b', 'c');
  const path = fc
    .tuple(key, step, step)
    .chain((steps) => fc.nat(2).map((count) => steps.slice(0, count + 1)));
  const claims = fc.dictionary(
    key,
    fc.oneof(value, fc.array(fc.dictionary(key, value)), fc.dictionary(key, fc.dictionary(key, value))),
  );
  fc.assert(
    fc.property(claims, fc.array(path, { minLength: 1, maxLength: 3 }), (all, paths) => {
      const picked = pickClaims(all, paths);
      return paths.every((one) => {
        const selected = selectClaims(all, one);
        return selected.length === 0 || canonicalJson(selectClaims(picked, one)) === canonicalJson(selected);
      });
    }),
  );
});
