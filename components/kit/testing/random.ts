/** A stream of numbers that follows from its seed alone. */
export interface Random {
  /** From 0 inclusive to 1 exclusive. */
  next(): number;
  chance(probability: number): boolean;
  /** A whole number from `from` to `to`, both included. */
  whole(from: number, to: number): number;
  /** A number from `from` to `to`. */
  between(from: number, to: number): number;
  /** One of the items. Throws RangeError when there are none. */
  pick<T>(items: readonly T[]): T;
  shuffle<T>(items: readonly T[]): T[];
  bytes(count: number): Uint8Array;
  /** Another stream; drawing from it does not affect this one. */
  fork(name: string): Random;
}

/** splitmix32: 32 bits of state, every seed a different stream. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = state ^ (state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 4294967296;
  };
  const random: Random = {
    next,
    chance: (probability) => next() < probability,
    whole: (from, to) => from + Math.floor(next() * (to - from + 1)),
    between: (from, to) => from + next() * (to - from),
    pick(items) {
      const picked = items[Math.floor(next() * items.length)];
      if (picked === undefined) throw new RangeError('nothing to pick from');
      return picked;
    },
    shuffle(items) {
      const left = [...items];
      for (let at = left.length - 1; at > 0; at -= 1) {
        const other = Math.floor(next() * (at + 1));
        const [a, b] = [left[at], left[other]];
        if (a !== undefined && b !== undefined) {
          left[at] = b;
          left[other] = a;
        }
      }
      return left;
    },
    bytes: (count) => Uint8Array.from({ length: count }, () => random.whole(0, 255)),
    fork: (name) => createRandom(seed ^ nameHash(name)),
  };
  return random;
}

/** FNV-1a. */
function nameHash(name: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < name.length; at += 1) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}
