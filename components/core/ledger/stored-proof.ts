import { AppError } from '../errors/errors.ts';
import { consistencyRanges, nodeHash, type ProofStep, splitPoint } from './merkle.ts';

/** Position of a complete subtree: its 2^level leaves begin at index * 2^level. */
export interface NodePosition {
  readonly level: number;
  readonly index: number;
}

/** A proof hash, given by the complete subtrees that it covers, left to right. */
interface PlannedHash {
  readonly parts: readonly NodePosition[];
  readonly position: 'Left' | 'Right';
}

/** Finds the hash of a complete subtree, 32 bytes. */
export type FindNode = (place: NodePosition) => Uint8Array | undefined;

/** The complete subtrees that cover the leaves `[start, end)`; start is a multiple of the first one's size. */
function partsOf(start: number, end: number): NodePosition[] {
  const parts: NodePosition[] = [];
  let at = start;
  while (at < end) {
    let [level, size] = [0, 1];
    while (at % (size * 2) === 0 && at + size * 2 <= end) [level, size] = [level + 1, size * 2];
    parts.push({ level, index: at / size });
    at += size;
  }
  return parts;
}

/**
 * Lists the stored nodes that the inclusion proof of a leaf needs: O(log n).
 * @throws AppError invalid INVALID_PROOF_RANGE when the tree has no such leaf
 */
export function planInclusion(leafIndex: number, treeSize: number): PlannedHash[] {
  const known = Number.isSafeInteger(leafIndex) && Number.isSafeInteger(treeSize);
  if (!known || leafIndex < 0 || leafIndex >= treeSize) {
    throw new AppError('invalid', 'INVALID_PROOF_RANGE', 'The tree has no such leaf');
  }
  const plan: PlannedHash[] = [];
  let [start, end] = [0, treeSize];
  while (end - start > 1) {
    const split = start + splitPoint(end - start);
    if (leafIndex < split) {
      plan.push({ parts: partsOf(split, end), position: 'Right' });
      end = split;
    } else {
      plan.push({ parts: partsOf(start, split), position: 'Left' });
      start = split;
    }
  }
  return plan.reverse();
}

/** Lists the stored nodes that the consistency proof of two sizes needs; throws like consistencyRanges. */
export function planConsistency(from: number, to: number): NodePosition[][] {
  return consistencyRanges(from, to).map(([start, end]) => partsOf(start, end));
}

/** The hash of adjacent subtrees. */
function join(parts: readonly NodePosition[], find: FindNode): Uint8Array {
  const hashes = parts.map((place) => {
    const hash = find(place);
    if (hash !== undefined) return hash;
    throw new AppError('internal', 'TREE_NODE_MISSING', 'A node of the tree is not stored', {
      details: { ...place },
    });
  });
  const last = hashes.pop();
  if (last === undefined) throw new AppError('internal', 'TREE_NODE_MISSING', 'A proof hash has no parts');
  return hashes.reduceRight((right, left) => nodeHash(left, right), last);
}

/**
 * Builds the inclusion proof of a plan.
 * @throws AppError internal TREE_NODE_MISSING when a node is not stored
 */
export function buildInclusion(plan: readonly PlannedHash[], find: FindNode): ProofStep[] {
  return plan.map(({ parts, position }) => ({ hash: join(parts, find), position }));
}

/** Builds the consistency proof of a plan; throws like buildInclusion. */
export function buildConsistency(plan: readonly (readonly NodePosition[])[], find: FindNode): Uint8Array[] {
  return plan.map((parts) => join(parts, find));
}
