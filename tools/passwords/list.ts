import { dictionary } from '@zxcvbn-ts/language-common';

/** The most frequent ones; further ones are rarely tried and cost memory in every process. */
const mostFrequent = 30_000;
/** Shorter texts are refused by their length, and are no core of a longer password. */
const shortest = 3;

/**
 * Frequent passwords of leaks, in lower case and sorted, with words of our own.
 * @param own words beside those of the package
 */
export async function listCommonPasswords(own: readonly string[]): Promise<readonly string[]> {
  const leaked = dictionary['passwords-common'].slice(0, mostFrequent);
  const words = [...leaked, ...own].map((word) => String(word).toLowerCase());
  const kept = words.filter((word) => word.length >= shortest && !/\s/.test(word));
  // By code units, so that the order is the same everywhere.
  return [...new Set(kept)].sort();
}
