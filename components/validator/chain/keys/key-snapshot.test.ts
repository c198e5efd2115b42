import { describe, expect, it } from 'vitest';
import { addKey, emptyFilter, wordsOf } from '#core/ledger/key-filter.ts';
import { createRandom } from '#kit/testing/random.ts';
import { collectKeys, type KeyPart } from './key-snapshot.ts';

const random = createRandom(3);

/** A filter of so many random keys. */
function filterOf(keys: number): Uint8Array {
  const filter = emptyFilter(keys);
  for (let n = 0; n < keys; n += 1) addKey(filter, wordsOf('id', Buffer.from(random.bytes(32))));
  return filter;
}

const [one, two] = [filterOf(1_000), filterOf(500)];
const begin = { kind: 'begin', height: 7, logRoot: 'ab', transactionCount: 1_500, filters: 2 } as const;
const part = (filter: number, whole: Uint8Array, from = 0, to = whole.length) =>
  ({ kind: 'filter', filter, sizeBytes: whole.length, bits: whole.subarray(from, to) }) as const;
const whole: readonly KeyPart[] = [
  begin,
  part(0, one, 0, 900),
  part(0, one, 900),
  part(1, two),
  { kind: 'end' },
];

async function* streamOf(parts: readonly KeyPart[]) {
  yield* parts;
}
const collect = (parts: readonly KeyPart[], reserve: (bytes: number) => boolean = () => true) =>
  collectKeys(streamOf(parts), reserve);

describe('a snapshot of keys', () => {
  it('is collected from its parts', async () => {
    const snapshot = await collect(whole);
    expect(snapshot).toMatchObject({ height: 7, logRoot: 'ab', transactionCount: 1_500 });
    expect(snapshot.filters.map((filter) => Buffer.from(filter))).toEqual([one, two]);
  });

  it('is refused when any part is missing, repeated or moved', async () => {
    for (let at = 0; at < whole.length; at += 1) {
      const moved = whole.toSpliced(at, 1);
      await expect(collect(moved), `without part ${at}`).rejects.toMatchObject({ code: 'KEYS_MALFORMED' });
      const repeated = whole.toSpliced(at, 0, ...whole.slice(at, at + 1));
      await expect(collect(repeated), `part ${at} twice`).rejects.toMatchObject({ code: 'KEYS_MALFORMED' });
      await expect(collect(whole.slice(0, at)), `first ${at}`).rejects.toMatchObject({
        code: 'KEYS_MALFORMED',
      });
    }
    for (const swapped of [
      [begin, part(1, two), part(0, one), { kind: 'end' } as const],
      [begin, part(0, one, 0, 900), part(1, two), part(0, one, 900), { kind: 'end' } as const],
    ])
      await expect(collect(swapped)).rejects.toMatchObject({ code: 'KEYS_MALFORMED' });
  });

  it('is refused with sizes that are wrong, and with filters that lack many keys', async () => {
    const end = { kind: 'end' } as const;
    const wrong: KeyPart[][] = [
      [begin, { ...part(0, one), sizeBytes: one.length - 1 }, part(1, two), end],
      [begin, { ...part(0, one), sizeBytes: one.length + 1 }, part(1, two), end],
      [begin, { ...part(0, one), sizeBytes: 0, bits: new Uint8Array() }, part(1, two), end],
      [begin, part(0, new Uint8Array(one.length)), part(1, two), end],
      [{ ...begin, transactionCount: 3_000 }, part(0, one), part(1, two), end],
    ];
    for (const parts of wrong) await expect(collect(parts)).rejects.toMatchObject({ code: 'KEYS_MALFORMED' });
  });

  it('is refused before it takes more memory than is allowed', async () => {
    const asked: number[] = [];
    const reserve = (bytes: number) => {
      asked.push(bytes);
      return bytes <= one.length;
    };
    await expect(collect(whole, reserve)).rejects.toMatchObject({ code: 'KEYS_TOO_LARGE' });
    expect(asked).toEqual([one.length, one.length + two.length]);
  });
});
