/** Choices that follow from a seed. */
export interface Chance {
  /** A whole number from 0 to `limit` - 1. */
  below(limit: number): number;
  isLikely(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
  /** The item at a place, which must be there. */
  at<T>(items: readonly T[], index: number): T;
  /** Some of the items, in their order. */
  some<T>(items: readonly T[], probability: number): T[];
  bytes(count: number): Uint8Array;
}

/** Choices by the generator mulberry32. */
export function createChance(seed: number): Chance {
  let state = seed >>> 0;
  const fraction = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(fraction() * limit);
  const at = <T>(items: readonly T[], index: number): T => {
    const item = items[index];
    if (item === undefined) throw new Error(`there is no item ${index}`);
    return item;
  };
  return {
    below,
    at,
    isLikely: (probability) => fraction() < probability,
    pick: (items) => at(items, below(items.length)),
    some: (items, probability) => items.filter(() => fraction() < probability),
    bytes: (count) => Uint8Array.from({ length: count }, () => below(256)),
  };
}
