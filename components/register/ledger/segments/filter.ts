/** Keys that are unique in a register: transaction id, predecessor with an only successor, replay key. */
export const keyKinds = ['id', 'successor', 'replay'] as const;
export type KeyKind = (typeof keyKinds)[number];

/** A register of ten million transactions has ten filters, and each possible match in one costs a look-up. */
const bitsPerKey = 16;
/**
 * Bits per key. The false positive rate is one in 1,400; for filters of former releases, which have 10 bits a key and
 * are not rebuilt, it is one in 120. A different number would miss the keys of those filters.
 */
const bitsSet = 7;

/** Offset in the key bytes by kind: an id that is sealed and also a predecessor is two keys. */
const startOf: Readonly<Record<KeyKind, number>> = { id: 0, successor: 8, replay: 0 };

/** An empty Bloom filter with capacity for a number of keys. */
export function emptyFilter(keys: number): Buffer {
  return Buffer.alloc(Math.max(1, Math.ceil((keys * bitsPerKey) / 8)));
}

/**
 * The hash of a key, from which its bit positions follow: keys are hashes of 16 bytes or more, so two words suffice.
 */
interface KeyWords {
  readonly first: number;
  readonly step: number;
}

export function wordsOf(kind: KeyKind, key: Buffer): KeyWords {
  const start = startOf[kind];
  return { first: key.readUInt32BE(start), step: key.readUInt32BE(start + 4) };
}

/**
 * The bit positions of a key are (first + n * step) modulo the bits of the filter. They are computed from remainders,
 * which stay 32-bit integers: every key is checked against every filter, and remainders of larger numbers are many
 * times slower.
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
