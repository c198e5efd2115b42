import { addKey, emptyFilter, type KeyWords, mayHold } from '#core/ledger/key-filter.ts';

/** Capacity of the first generation. */
const leastKeys = 16_384;
/**
 * Capacity of the next generation, as a share of the keys in the earlier ones. A new generation is empty, so that all of
 * them take at most 2.8 bytes a key beside the first.
 */
const growth = 0.4;

/** A Bloom filter that grows by generations, each of which holds at most the keys that it was made for. */
export class GrowingFilter {
  readonly #generations: Uint8Array[] = [];
  #keys = 0;
  #room = 0;
  #bytes = 0;

  /** Memory of the generations. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @param earlier number of keys that other filters hold, by which the generations are sized */
  add(words: KeyWords, earlier: number): void {
    if (this.#room === 0) this.#grow(Math.max(leastKeys, Math.ceil((earlier + this.#keys) * growth)));
    const newest = this.#generations.at(-1);
    if (newest !== undefined) addKey(newest, words);
    this.#keys += 1;
    this.#room -= 1;
  }

  /** False: the key was never added. */
  mayHold(words: KeyWords): boolean {
    return this.#generations.some((filter) => mayHold(filter, words));
  }

  #grow(keys: number): void {
    const filter = emptyFilter(keys);
    this.#generations.push(filter);
    this.#room = keys;
    this.#bytes += filter.length;
  }
}
