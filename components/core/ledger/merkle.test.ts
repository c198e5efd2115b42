import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeHex } from '../encoding/hex.ts';
import { utf8 } from '../encoding/text.ts';
import {
  type CompleteNode,
  consistency,
  consistencyRanges,
  emptyRoot,
  Frontier,
  inclusion,
  leafHash,
  nodeHash,
  root,
  rootOfInclusion,
  verifyConsistency,
  verifyInclusion,
} from './merkle.ts';
import {
  buildConsistency,
  buildInclusion,
  type NodePosition,
  planConsistency,
  planInclusion,
} from './stored-proof.ts';

const all = Array.from({ length: 200 }, (_, index) => leafHash(utf8(`leaf ${index}`)));
const size = fc.integer({ min: 1, max: 200 });
const leaf = fc.nat();

/** The definition of RFC 6962 section 2.1, implemented literally and slowly. */
function definition(leaves: readonly Uint8Array[]): Uint8Array {
  const [first] = leaves;
  if (first === undefined) return emptyRoot();
  if (leaves.length === 1) return first;
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  return nodeHash(definition(leaves.slice(0, split)), definition(leaves.slice(split)));
}

function flip(hash: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(hash);
  copy[7] = (copy[7] ?? 0) ^ 1;
  return copy;
}

describe('root', () => {
  it('equals the definition for every size', () => {
    for (let count = 0; count <= 70; count += 1) {
      expect(encodeHex(root(all.slice(0, count)))).toBe(encodeHex(definition(all.slice(0, count))));
    }
  });

  it('does not change its input', () => {
    const leaves = all.slice(0, 7);
    const before = leaves.map(encodeHex);
    root(leaves);
    expect(leaves.map(encodeHex)).toEqual(before);
  });
});

describe('inclusion', () => {
  it('every leaf of every tree verifies, and at no other index', () => {
    fc.assert(
      fc.property(size, leaf, leaf, (treeSize, pick, other) => {
        const leaves = all.slice(0, treeSize);
        const leafIndex = pick % treeSize;
        const path = inclusion(leaves, leafIndex);
        const claim = { leaf: all[leafIndex] ?? emptyRoot(), leafIndex, treeSize, path };
        const expected = root(leaves);
        expect(verifyInclusion(claim, expected)).toBe(true);
        const elsewhere = other % treeSize;
        if (elsewhere !== leafIndex)
          expect(verifyInclusion({ ...claim, leafIndex: elsewhere }, expected)).toBe(false);
        expect(verifyInclusion({ ...claim, leaf: flip(claim.leaf) }, expected)).toBe(false);
        expect(verifyInclusion(claim, flip(expected))).toBe(false);
      }),
    );
  });

  it('any change of a path is refused', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 200 }), leaf, leaf, (treeSize, pick, place) => {
        const leaves = all.slice(0, treeSize);
        const leafIndex = pick % treeSize;
        const path = inclusion(leaves, leafIndex);
        const claim = { leaf: all[leafIndex] ?? emptyRoot(), leafIndex, treeSize, path };
        const step = path[place % path.length];
        if (step === undefined) throw new Error('a path in a tree of two has a step');
        const change = (changed: typeof step): boolean =>
          verifyInclusion(
            { ...claim, path: path.map((each) => (each === step ? changed : each)) },
            root(leaves),
          );
        expect(change({ ...step, hash: flip(step.hash) })).toBe(false);
        expect(change({ ...step, position: step.position === 'Left' ? 'Right' : 'Left' })).toBe(false);
        expect(change({ ...step, hash: step.hash.subarray(1) })).toBe(false);
        expect(verifyInclusion({ ...claim, path: [...path, step] }, root(leaves))).toBe(false);
        expect(verifyInclusion({ ...claim, path: path.slice(1) }, root(leaves))).toBe(false);
      }),
    );
  });

  it.each([
    [-1, 4],
    [4, 4],
    [0.5, 4],
    [0, 0],
    [Number.NaN, 4],
    [0, Number.POSITIVE_INFINITY],
  ])('there is no leaf %d in a tree of %d', (leafIndex, treeSize) => {
    const claim = { leaf: emptyRoot(), leafIndex, treeSize, path: [] };
    expect(rootOfInclusion(claim)).toBeUndefined();
    const refused = expect.objectContaining({ code: 'INVALID_PROOF_RANGE' });
    expect(() => planInclusion(leafIndex, treeSize)).toThrow(refused);
    if (Number.isFinite(treeSize))
      expect(() => inclusion(all.slice(0, treeSize), leafIndex)).toThrow(refused);
  });

  it('a leaf is not accepted as a node', () => {
    const [a, b] = [leafHash(utf8('a')), leafHash(utf8('b'))];
    const inner = Buffer.concat([a, b]);
    expect(encodeHex(leafHash(inner))).not.toBe(encodeHex(root([a, b])));
  });
});

describe('consistency', () => {
  it('every prefix verifies; another root or path never does', () => {
    fc.assert(
      fc.property(size, leaf, leaf, (to, pick, place) => {
        const from = 1 + (pick % to);
        const [older, newer] = [root(all.slice(0, from)), root(all.slice(0, to))];
        const path = consistency(all.slice(0, to), from);
        const claim = { from, to, fromRoot: older, toRoot: newer, path };
        expect(verifyConsistency(claim)).toBe(true);
        expect(verifyConsistency({ ...claim, fromRoot: flip(older) })).toBe(false);
        expect(verifyConsistency({ ...claim, toRoot: flip(newer) })).toBe(false);
        expect(verifyConsistency({ ...claim, path: [...path, older] })).toBe(false);
        if (path.length === 0) return;
        const changed = path.map((hash, index) => (index === place % path.length ? flip(hash) : hash));
        expect(verifyConsistency({ ...claim, path: changed })).toBe(false);
        expect(verifyConsistency({ ...claim, path: path.slice(1) })).toBe(false);
        expect(verifyConsistency({ ...claim, path: path.slice(0, -1) })).toBe(false);
      }),
    );
  });

  it('a rewritten past is refused', () => {
    const forged = [leafHash(utf8('forged')), ...all.slice(1, 9)];
    const claim = {
      from: 5,
      to: 9,
      fromRoot: root(all.slice(0, 5)),
      toRoot: root(forged),
      path: consistency(forged, 5),
    };
    expect(verifyConsistency(claim)).toBe(false);
  });

  it.each([
    [0, 5],
    [6, 5],
    [-1, 5],
    [1.5, 5],
  ])('from %d to %d has no proof', (from, to) => {
    expect(() => consistencyRanges(from, to)).toThrow(
      expect.objectContaining({ code: 'INVALID_PROOF_RANGE' }),
    );
    expect(verifyConsistency({ from, to, fromRoot: emptyRoot(), toRoot: emptyRoot(), path: [] })).toBe(false);
  });
});

describe('Frontier', () => {
  it('has the root of the tree after every append, also after it was stored and parsed', () => {
    let frontier = Frontier.empty();
    expect(encodeHex(frontier.root())).toBe(encodeHex(emptyRoot()));
    for (const [index, hash] of all.entries()) {
      const before = frontier.clone();
      frontier.append(hash);
      expect(before.size).toBe(index);
      expect(frontier.size).toBe(index + 1);
      expect(encodeHex(frontier.root())).toBe(encodeHex(root(all.slice(0, index + 1))));
      frontier = Frontier.parse(frontier.size, frontier.serialise());
    }
  });

  it('refuses hashes that do not fit the size', () => {
    const [hash = emptyRoot()] = all;
    for (const [count, hashes] of [
      [1, []],
      [0, [hash]],
      [2, [hash, hash]],
      [3, [hash]],
      [-1, []],
      [0.5, []],
      [1, [hash.subarray(1)]],
    ] as const) {
      expect(() => Frontier.parse(count, hashes)).toThrow(
        expect.objectContaining({ code: 'INVALID_FRONTIER' }),
      );
    }
  });
});

describe('proofs from stored nodes', () => {
  const stored = new Map<string, CompleteNode>();
  const frontier = Frontier.empty();
  const name = ({ level, index }: NodePosition): string => `${level}/${index}`;
  for (const hash of all) for (const node of frontier.append(hash)) stored.set(name(node), node);
  const find = (place: NodePosition): Uint8Array | undefined => stored.get(name(place))?.hash;

  it('equal those of the whole tree', () => {
    fc.assert(
      fc.property(size, leaf, (treeSize, pick) => {
        const leaves = all.slice(0, treeSize);
        const index = pick % treeSize;
        expect(buildInclusion(planInclusion(index, treeSize), find)).toEqual(inclusion(leaves, index));
        expect(buildConsistency(planConsistency(index + 1, treeSize), find)).toEqual(
          consistency(leaves, index + 1),
        );
      }),
    );
  });

  it('need only logarithmically many nodes of a large tree', () => {
    const places = planInclusion(987_654, 10_000_000).flatMap(({ parts }) => parts);
    expect(places.length).toBeLessThan(60);
    expect(planConsistency(1_234_567, 10_000_000).flat().length).toBeLessThan(60);
  });

  it('fail when a node is missing', () => {
    expect(() => buildInclusion(planInclusion(0, 4), () => undefined)).toThrow(
      expect.objectContaining({ kind: 'internal', code: 'TREE_NODE_MISSING' }),
    );
  });
});
