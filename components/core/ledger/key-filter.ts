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

/** An empty Bloom filter with capacity for a number of keys: 2 bytes a key. */
export function emptyFilter(keys: number): Buffer {
  return Buffer.alloc(Math.max(1, Math.ceil((keys * bitsPerKey) / 8)));
}

/**
 * The hash of a key, from which its bit positions follow: keys are hashes of 16 bytes or more, so two words suffice.
 */
export interface KeyWords {
  readonly first: number;
  readonly step: number;
}

/** The words of a key of 16 bytes or more. */
export function wordsOf(kind: KeyKind, key: Buffer): KeyWords {
  const start = startOf[kind];
  return { first: key.readUInt32BE(start), step: key.readUInt32BE(start + 4) };
}

/** As wordsOf, for a key as hexadecimal text of 32 characters or more. */
export function wordsOfHex(kind: KeyKind, key: string): KeyWords {
  const start = 2 * startOf[kind];
  return {
    first: Number.parseInt(key.slice(start, start + 8), 16),
    step: Number.parseInt(key.slice(start + 8, start + 16), 16),
  };
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

/** Adds a key; the filter contains it for good. */
export function addKey(filter: Uint8Array, { first, step }: KeyWords): void {
  const bits = filter.length * 8;
  const by = step % bits;
  for (let n = 0, place = first % bits; n < bitsSet; n += 1, place = stepped(place, by, bits)) {
    filter[place >>> 3] = (filter[place >>> 3] ?? 0) | (1 << (place & 7));
  }
}

/** False: the key was never added. */
export function mayHold(filter: Uint8Array, { first, step }: KeyWords): boolean {
  const bits = filter.length * 8;
  const by = step % bits;
  for (let n = 0, place = first % bits; n < bitsSet; n += 1, place = stepped(place, by, bits)) {
    if (((filter[place >>> 3] ?? 0) & (1 << (place & 7))) === 0) return false;
  }
  return true;
}

/** Number of bits that are set in a word of 32 bits. */
function bitsIn(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const nibbles = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((nibbles + (nibbles >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** Number of bits that are set, counted by words and with an index, which is many times faster than an iterator. */
function countBits(filter: Uint8Array): number {
  const aligned = filter.byteOffset % 4 === 0 ? filter : new Uint8Array(filter);
  const words = new Uint32Array(aligned.buffer, aligned.byteOffset, aligned.length >>> 2);
  let set = 0;
  for (let at = 0; at < words.length; at += 1) set += bitsIn(words[at] ?? 0);
  for (const byte of aligned.subarray(4 * words.length)) set += bitsIn(byte);
  return set;
}

/**
 * Estimates how many keys a filter contains from the share of its bits that are set (Swamidass and Baldi, 2007). Accurate
 * to about one percent for 10,000 keys or more.
 */
export function estimateKeys(filter: Uint8Array): number {
  const set = countBits(filter);
  const bits = filter.length * 8;
  return set === bits ? Number.POSITIVE_INFINITY : (bits / bitsSet) * -Math.log1p(-set / bits);
}
