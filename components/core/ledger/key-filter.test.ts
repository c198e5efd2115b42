import { describe, expect, it } from 'vitest';
import { createRandom } from '#kit/testing/random.ts';
import { addKey, emptyFilter, estimateKeys, keyKinds, mayHold, wordsOf, wordsOfHex } from './key-filter.ts';

describe('the filter of a sealed segment', () => {
  it('contains every added key, of any kind and number', () => {
    const random = createRandom(8);
    for (const count of [0, 1, 2, 7, 100, 20_000]) {
      const keys = Array.from({ length: count }, () => ({
        kind: random.pick(keyKinds),
        key: Buffer.from(random.bytes(32)),
      }));
      const filter = emptyFilter(count);
      for (const { kind, key } of keys) addKey(filter, wordsOf(kind, key));
      expect(keys.filter(({ kind, key }) => !mayHold(filter, wordsOf(kind, key)))).toEqual([]);
    }
  });

  it('excludes nearly all other keys with 16 bits a key', () => {
    const random = createRandom(9);
    const filter = emptyFilter(10_000);
    expect(filter.length).toBe(20_000);
    for (let n = 0; n < 10_000; n += 1) addKey(filter, wordsOf('id', Buffer.from(random.bytes(32))));
    const taken = Array.from({ length: 10_000 }, () =>
      mayHold(filter, wordsOf('id', Buffer.from(random.bytes(32)))),
    );
    expect(taken.filter(Boolean).length).toBeLessThan(25);
  });

  it('contains every key that a former release added with 10 bits a key', () => {
    const random = createRandom(11);
    const filter = Buffer.alloc(1_250);
    const keys = Array.from({ length: 1_000 }, () => Buffer.from(random.bytes(32)));
    for (const key of keys) addKey(filter, wordsOf('id', key));
    expect(keys.every((key) => mayHold(filter, wordsOf('id', key)))).toBe(true);
  });

  it('distinguishes an id from the same id as a predecessor, and excludes everything when empty', () => {
    const key = Buffer.from(createRandom(10).bytes(32));
    const filter = emptyFilter(1_000);
    expect(keyKinds.map((kind) => mayHold(filter, wordsOf(kind, key)))).toEqual([false, false, false]);
    addKey(filter, wordsOf('id', key));
    expect(mayHold(filter, wordsOf('successor', key))).toBe(false);
  });

  it('sets exactly the bits (first + n * step) modulo its size, as former releases did', () => {
    const random = createRandom(12);
    for (const bytes of [1, 3, 1_250, 20_000, 6_000_001]) {
      const key = Buffer.concat([Buffer.alloc(4, 0xff), Buffer.from(random.bytes(28))]);
      const filter = Buffer.alloc(bytes);
      addKey(filter, wordsOf('id', key));
      const [first, step] = [BigInt(key.readUInt32BE(0)), BigInt(key.readUInt32BE(4))];
      const wanted = Buffer.alloc(bytes);
      for (let n = 0n; n < 7n; n += 1n) {
        const place = Number((first + n * step) % BigInt(bytes * 8));
        wanted.writeUInt8(wanted.readUInt8(place >> 3) | (1 << (place % 8)), place >> 3);
      }
      expect(filter.equals(wanted)).toBe(true);
    }
  });

  it('has the same words for a key as bytes and as text', () => {
    const key = Buffer.from(createRandom(13).bytes(32));
    for (const kind of keyKinds) {
      expect(wordsOfHex(kind, key.toString('hex'))).toEqual(wordsOf(kind, key));
      expect(wordsOfHex(kind, key.toString('hex').toUpperCase())).toEqual(wordsOf(kind, key));
    }
  });

  it('estimates its number of keys from its bits', () => {
    const random = createRandom(14);
    expect(estimateKeys(emptyFilter(100))).toBeCloseTo(0);
    const filter = emptyFilter(20_000);
    for (const count of [10_000, 20_000]) {
      for (let n = 0; n < 10_000; n += 1) addKey(filter, wordsOf('id', Buffer.from(random.bytes(32))));
      expect(Math.abs(estimateKeys(filter) / count - 1)).toBeLessThan(0.02);
    }
    expect(estimateKeys(Buffer.alloc(10, 0xff))).toBe(Number.POSITIVE_INFINITY);
  });

  it('estimates from every bit, whatever the length and the alignment of the filter', () => {
    const random = createRandom(15);
    for (let length = 0; length < 10; length += 1) {
      for (let offset = 0; offset < 4; offset += 1) {
        const around = Uint8Array.from(random.bytes(length + offset + 3));
        const filter = around.subarray(offset, offset + length);
        let set = 0;
        for (let bit = 0; bit < 8 * length; bit += 1) set += ((filter[bit >>> 3] ?? 0) >>> (bit & 7)) & 1;
        const bits = 8 * length;
        const keys = set === bits ? Number.POSITIVE_INFINITY : (bits / 7) * -Math.log1p(-set / bits);
        expect(estimateKeys(filter)).toBe(keys);
      }
    }
    const full = new Uint8Array(8).fill(0xff);
    expect(estimateKeys(Uint8Array.of(...full, 0))).toBe((72 / 7) * -Math.log1p(-64 / 72));
  });
});
