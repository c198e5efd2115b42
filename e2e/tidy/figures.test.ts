import { expect, it } from 'vitest';
import { findUnusedExports } from './exports.ts';
import { findWords } from './words.ts';

it('production code and documents have no word of the earlier language', () => {
  const { examined, found } = findWords();
  expect(examined).toBeGreaterThan(700);
  expect(found).toEqual([]);
});

/** Bundled into the image of PostgreSQL, whose digest is the image's revision. */
const bundled = /^tools\/images\/(?:layers|oci|postgres)\//;

it('every export is imported somewhere', () => {
  const unused = findUnusedExports().unused.filter(({ path }) => !bundled.test(path));
  expect(unused.map(({ path, name }) => `${path}: ${name}`)).toEqual([]);
});
