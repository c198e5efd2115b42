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

/** What all places of a key are made of: keys are hashes already, 16 bytes or more, so two words of one are enough. */
export interface KeyWords {
  readonly first: number;
  readonly step: number;
}

export function wordsOf(kind: KeyKind, key: Buffer): KeyWords {
  const start = startOf[kind];
  return { first: key.readUInt32BE(start), step: key.readUInt32BE(start + 4) };
}

/**
 * A key's places are (first + n * step) modulo the bits of a filter. They are walked by remainders, which stay whole numbers of
 * 32 bits: a filter is asked for every key there is, and the remainder of a larger number takes many times as long.
 */
function stepped(place: number, by: number, bits: number): number {
  const next = place + by;
  return next < bits ? next : next - bits;
}

export function addKey(filter: Buffer, kind: KeyKind, key: Buffer): void {
  const { first, step } = wordsOf(kind, key);
  const bits = filter.length * 8;
  const by = step % bits;
  for (let n = 0, place = first % bits; n < bitsSet; n += 1, place = stepped(place, by, bits)) {
    filter[place >>> 3] = (filter[place >>> 3] ?? 0) | (1 << (place & 7));
  }
}

/** False: the key was never added. */
export function mayHold(filter: Buffer, { first, step }: KeyWords): boolean {
  const bits = filter.length * 8;
  const by = step % bits;
  for (let n = 0, place = first % bits; n < bitsSet; n += 1, place = stepped(place, by, bits)) {
    if (((filter[place >>> 3] ?? 0) & (1 << (place & 7))) === 0) return false;
  }
  return true;
}
