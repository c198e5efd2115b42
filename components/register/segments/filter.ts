/** What no two transactions of a register share: their own id, the id they alone may follow, the replay key. */
export const keyKinds = ['id', 'successor', 'replay'] as const;
export type KeyKind = (typeof keyKinds)[number];

/** A register of ten million has ten filters, and each key that seems to be in one is looked for there. */
const bitsPerKey = 16;
/**
 * Bits that a key sets. Of the keys that are not there one in 1,400 seems to be; in filters of former releases, which have 10
 * bits a key and stay as they are, one in 120. Another number here would not find the keys of those.
 */
const bitsSet = 7;

/** Where a key's own bits are taken from: an id that is sealed and followed is two keys. */
const startOf: Readonly<Record<KeyKind, number>> = { id: 0, successor: 8, replay: 0 };

/** A Bloom filter without keys that has room for so many. */
export function emptyFilter(keys: number): Buffer {
  return Buffer.alloc(Math.max(1, Math.ceil((keys * bitsPerKey) / 8)));
}

/** Keys are hashes already, 16 bytes or more, so two words of one make all of its places. */
function placeOf(filter: Buffer, [first, step]: readonly [number, number], n: number): number {
  return (first + n * step) % (filter.length * 8);
}

function wordsOf(kind: KeyKind, key: Buffer): readonly [number, number] {
  const start = startOf[kind];
  return [key.readUInt32BE(start), key.readUInt32BE(start + 4)];
}

export function addKey(filter: Buffer, kind: KeyKind, key: Buffer): void {
  const words = wordsOf(kind, key);
  for (let n = 0; n < bitsSet; n += 1) {
    const place = placeOf(filter, words, n);
    const at = Math.floor(place / 8);
    filter[at] = (filter[at] ?? 0) | (1 << (place % 8));
  }
}

/** False: the key was never added. */
export function mayHold(filter: Buffer, kind: KeyKind, key: Buffer): boolean {
  const words = wordsOf(kind, key);
  for (let n = 0; n < bitsSet; n += 1) {
    const place = placeOf(filter, words, n);
    if (((filter[Math.floor(place / 8)] ?? 0) & (1 << (place % 8))) === 0) return false;
  }
  return true;
}
