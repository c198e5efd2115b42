import { sha256 } from '../crypto/hash.ts';
import { equalBytes } from '../encoding/text.ts';
import { AppError } from '../errors/errors.ts';

/** One node of a proof path; the path begins next to the leaf. */
export interface ProofStep {
  /** 32 bytes. */
  readonly hash: Uint8Array;
  /** Side of the running hash on which this one is joined. */
  readonly position: 'Left' | 'Right';
}

interface InclusionClaim {
  /** 32 bytes: the hash of the leaf, not its data. */
  readonly leaf: Uint8Array;
  readonly leafIndex: number;
  readonly treeSize: number;
  readonly path: readonly ProofStep[];
}

interface ConsistencyClaim {
  readonly from: number;
  readonly to: number;
  readonly fromRoot: Uint8Array;
  readonly toRoot: Uint8Array;
  readonly path: readonly Uint8Array[];
}

const HASH_BYTES = 32;
const half = (value: number): number => Math.floor(value / 2);

/** SHA-256(0x00 || data) (RFC 6962 section 2.1). */
export function leafHash(data: Uint8Array): Uint8Array {
  const input = Buffer.allocUnsafe(data.length + 1);
  input[0] = 0;
  input.set(data, 1);
  return sha256(input);
}

/** SHA-256(0x01 || left || right) (RFC 6962 section 2.1). */
export function nodeHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  const input = Buffer.allocUnsafe(1 + 2 * HASH_BYTES);
  input[0] = 1;
  input.set(left, 1);
  input.set(right, 1 + HASH_BYTES);
  return sha256(input);
}

/** The root of the tree without leaves: SHA-256 of nothing. */
export function emptyRoot(): Uint8Array {
  return sha256('');
}

/** The level above: pairs are hashed and a last odd node is carried up, which is the split of RFC 6962. */
function levelAbove(level: readonly Uint8Array[]): Uint8Array[] {
  const above: Uint8Array[] = [];
  for (let index = 0; index < level.length; index += 2) {
    const [left, right] = [level[index], level[index + 1]];
    if (left !== undefined) above.push(right === undefined ? left : nodeHash(left, right));
  }
  return above;
}

/** Merkle tree hash of leaf hashes (RFC 6962 section 2.1); n - 1 hashes for n leaves. */
export function root(leaves: readonly Uint8Array[]): Uint8Array {
  let level = leaves;
  while (level.length > 1) level = levelAbove(level);
  return level[0] ?? emptyRoot();
}

function refuse(reason: string): never {
  throw new AppError('invalid', 'INVALID_PROOF_RANGE', reason);
}

/**
 * Audit path of a leaf (RFC 6962 section 2.1.1).
 * @throws AppError invalid INVALID_PROOF_RANGE when there is no such leaf
 */
export function inclusion(leaves: readonly Uint8Array[], leafIndex: number): ProofStep[] {
  if (!Number.isSafeInteger(leafIndex) || leafIndex < 0 || leafIndex >= leaves.length) {
    refuse('The tree has no such leaf');
  }
  const path: ProofStep[] = [];
  let index = leafIndex;
  for (let level = leaves; level.length > 1; level = levelAbove(level)) {
    const odd = index % 2 === 1;
    const sibling = level[odd ? index - 1 : index + 1];
    if (sibling !== undefined) path.push({ hash: sibling, position: odd ? 'Left' : 'Right' });
    index = half(index);
  }
  return path;
}

/**
 * Sides of the siblings of a leaf, nearest first. They follow from the shape of the tree, so a proof cannot choose
 * them.
 */
function siblingSides(leafIndex: number, treeSize: number): ('Left' | 'Right')[] {
  const sides: ('Left' | 'Right')[] = [];
  let [index, last] = [leafIndex, treeSize - 1];
  while (last > 0) {
    if (index % 2 === 1) sides.push('Left');
    else if (index < last) sides.push('Right');
    [index, last] = [half(index), half(last)];
  }
  return sides;
}

/** The root that a path leads to; undefined when the path does not have the shape of that leaf in that tree. */
export function rootOfInclusion(claim: InclusionClaim): Uint8Array | undefined {
  const { leaf, leafIndex, treeSize, path } = claim;
  const known = Number.isSafeInteger(leafIndex) && Number.isSafeInteger(treeSize);
  if (!known || leafIndex < 0 || leafIndex >= treeSize || leaf.length !== HASH_BYTES) return undefined;
  const sides = siblingSides(leafIndex, treeSize);
  if (sides.length !== path.length) return undefined;
  let hash = leaf;
  for (const [index, step] of path.entries()) {
    if (step.position !== sides[index] || step.hash.length !== HASH_BYTES) return undefined;
    hash = step.position === 'Left' ? nodeHash(step.hash, hash) : nodeHash(hash, step.hash);
  }
  return hash;
}

/** Whether a leaf is at that index of the tree with that root (RFC 9162 section 2.1.3.2). */
export function verifyInclusion(claim: InclusionClaim, expectedRoot: Uint8Array): boolean {
  const computed = rootOfInclusion(claim);
  return computed !== undefined && equalBytes(computed, expectedRoot);
}

/** Largest power of two smaller than n, for n over 1. */
export function splitPoint(size: number): number {
  let point = 1;
  while (point * 2 < size) point *= 2;
  return point;
}

/**
 * The ranges `[start, end)` of leaves whose subtree roots form the consistency proof of two sizes, in its order (RFC
 * 6962 section 2.1.2). None when the sizes are equal.
 * @throws AppError invalid INVALID_PROOF_RANGE unless 0 < from <= to
 */
export function consistencyRanges(from: number, to: number): [number, number][] {
  const known = Number.isSafeInteger(from) && Number.isSafeInteger(to);
  if (!known || from < 1 || from > to) refuse('A consistency proof needs 0 < from <= to');
  const ranges: [number, number][] = [];
  let [start, end, whole] = [0, to, true];
  while (from !== end) {
    const split = start + splitPoint(end - start);
    if (from <= split) {
      ranges.push([split, end]);
      end = split;
    } else {
      ranges.push([start, split]);
      start = split;
      whole = false;
    }
  }
  if (!whole) ranges.push([start, end]);
  return ranges.reverse();
}

/**
 * Consistency proof between the tree of the first `from` leaves and that of all of them (RFC 6962 section 2.1.2).
 * Throws like consistencyRanges.
 */
export function consistency(leaves: readonly Uint8Array[], from: number): Uint8Array[] {
  return consistencyRanges(from, leaves.length).map(([start, end]) => root(leaves.slice(start, end)));
}

/** Both roots that a consistency path leads to, computed from the last complete subtree of the older tree. */
function rootsOfConsistency(
  steps: IterableIterator<Uint8Array>,
  first: Uint8Array,
  place: { readonly node: number; readonly last: number },
): { readonly older: Uint8Array; readonly newer: Uint8Array } | undefined {
  let { node, last } = place;
  let [older, newer] = [first, first];
  for (const hash of steps) {
    if (last === 0) return undefined;
    if (node % 2 === 1 || node === last) {
      older = nodeHash(hash, older);
      newer = nodeHash(hash, newer);
      while (node % 2 === 0 && node !== 0) [node, last] = [half(node), half(last)];
    } else {
      newer = nodeHash(newer, hash);
    }
    [node, last] = [half(node), half(last)];
  }
  return last === 0 ? { older, newer } : undefined;
}

/** Whether one tree is a prefix of another (RFC 9162 section 2.1.4.2). */
export function verifyConsistency(claim: ConsistencyClaim): boolean {
  const { from, to, fromRoot, toRoot, path } = claim;
  const known = Number.isSafeInteger(from) && Number.isSafeInteger(to);
  if (!known || from < 1 || from > to || path.some((hash) => hash.length !== HASH_BYTES)) return false;
  if (from === to) return path.length === 0 && equalBytes(fromRoot, toRoot);
  let [node, last] = [from - 1, to - 1];
  while (node % 2 === 1) [node, last] = [half(node), half(last)];
  const steps = path.values();
  const first = node === 0 ? fromRoot : steps.next().value;
  if (first === undefined) return false;
  const roots = rootsOfConsistency(steps, first, { node, last });
  return roots !== undefined && equalBytes(roots.older, fromRoot) && equalBytes(roots.newer, toRoot);
}

/** A complete subtree: its 2^level leaves begin at index * 2^level. */
export interface CompleteNode {
  readonly level: number;
  readonly index: number;
  /** 32 bytes. */
  readonly hash: Uint8Array;
}

function onesOf(size: number): number {
  let [ones, rest] = [0, size];
  while (rest > 0) {
    ones += rest % 2;
    rest = Math.floor(rest / 2);
  }
  return ones;
}

/**
 * The right edge of an append-only tree of RFC 6962: roots of its complete subtrees, largest first. It suffices to
 * compute the next root, with log2(n) hashes stored and one hash an append on average.
 */
export class Frontier {
  #size: number;
  readonly #hashes: Uint8Array[];

  private constructor(size: number, hashes: Uint8Array[]) {
    this.#size = size;
    this.#hashes = hashes;
  }

  /** The edge of the tree without leaves. */
  static empty(): Frontier {
    return new Frontier(0, []);
  }

  /**
   * Parses what serialise gave for a tree of that size.
   * @throws AppError invalid INVALID_FRONTIER when the number or the length of the hashes does not fit
   */
  static parse(size: number, hashes: readonly Uint8Array[]): Frontier {
    const fits = Number.isSafeInteger(size) && size >= 0 && hashes.length === onesOf(size);
    if (!fits || hashes.some((hash) => hash.length !== 32)) {
      throw new AppError('invalid', 'INVALID_FRONTIER', 'Hashes are not the frontier of a tree of that size');
    }
    return new Frontier(size, [...hashes]);
  }

  /** Number of leaves. */
  get size(): number {
    return this.#size;
  }

  /**
   * Roots of the complete subtrees, largest first, 32 bytes each. Together with the size they are the input of parse.
   */
  serialise(): Uint8Array[] {
    return [...this.#hashes];
  }

  clone(): Frontier {
    return new Frontier(this.#size, [...this.#hashes]);
  }

  /** Appends the hash of a leaf. Returns the subtrees that it completes, itself first, for stores of tree nodes. */
  append(leaf: Uint8Array): CompleteNode[] {
    let [level, index, hash] = [0, this.#size, leaf];
    const completed: CompleteNode[] = [{ level, index, hash }];
    while (index % 2 === 1) {
      const left = this.#hashes.pop();
      if (left === undefined)
        throw new AppError('internal', 'INVALID_FRONTIER', 'The frontier lost a subtree');
      level += 1;
      index = (index - 1) / 2;
      hash = nodeHash(left, hash);
      completed.push({ level, index, hash });
    }
    this.#hashes.push(hash);
    this.#size += 1;
    return completed;
  }

  /** The root of the present tree. */
  root(): Uint8Array {
    const last = this.#hashes.at(-1);
    if (last === undefined) return emptyRoot();
    return this.#hashes.slice(0, -1).reduceRight((right, left) => nodeHash(left, right), last);
  }
}
