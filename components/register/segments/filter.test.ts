import { describe, expect, it } from 'vitest';
import { createRandom } from '#kit/testing/random.ts';
import { addKey, emptyFilter, keyKinds, mayHold } from './filter.ts';

describe('the filter of a sealed segment', () => {
  it('holds every key that was added, of whatever kind and number', () => {
    const random = createRandom(8);
    for (const count of [0, 1, 2, 7, 100, 20_000]) {
      const keys = Array.from({ length: count }, () => ({
        kind: random.pick(keyKinds),
        key: Buffer.from(random.bytes(32)),
      }));
      const filter = emptyFilter(count);
      for (const { kind, key } of keys) addKey(filter, kind, key);
      expect(keys.filter(({ kind, key }) => !mayHold(filter, kind, key))).toEqual([]);
    }
  });

  it('rules out nearly all others with 16 bits a key', () => {
    const random = createRandom(9);
    const filter = emptyFilter(10_000);
    expect(filter.length).toBe(20_000);
    for (let n = 0; n < 10_000; n += 1) addKey(filter, 'id', Buffer.from(random.bytes(32)));
    const taken = Array.from({ length: 10_000 }, () => mayHold(filter, 'id', Buffer.from(random.bytes(32))));
    expect(taken.filter(Boolean).length).toBeLessThan(25);
  });

  it('holds every key that was added with 10 bits a key, by a former release', () => {
    const random = createRandom(11);
    const filter = Buffer.alloc(1_250);
    const keys = Array.from({ length: 1_000 }, () => Buffer.from(random.bytes(32)));
    for (const key of keys) addKey(filter, 'id', key);
    expect(keys.every((key) => mayHold(filter, 'id', key))).toBe(true);
  });

  it('tells an id from the same id that is followed, and rules out everything without keys', () => {
    const key = Buffer.from(createRandom(10).bytes(32));
    const filter = emptyFilter(1_000);
    expect(keyKinds.map((kind) => mayHold(filter, kind, key))).toEqual([false, false, false]);
    addKey(filter, 'id', key);
    expect(mayHold(filter, 'successor', key)).toBe(false);
  });
});
