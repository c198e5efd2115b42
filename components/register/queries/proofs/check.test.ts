import { describe, expect, it } from 'vitest';
import { encodeHex } from '#core/encoding/hex.ts';
import { inclusion, leafHash, root } from '#core/ledger/merkle.ts';
import { presentPath } from '#core/ledger/proof-path.ts';
import { checkProof, judgeAnchor } from './check.ts';

const leaves = Array.from({ length: 7 }, (_, index) => leafHash(Buffer.from(String(index))));
const merkleRoot = encodeHex(root(leaves));

function claimOf(leafIndex: number) {
  const transactionHash = encodeHex(leaves[leafIndex] ?? new Uint8Array());
  return { transactionHash, merkleRoot, proofPath: presentPath(inclusion(leaves, leafIndex)) };
}

describe('checkProof', () => {
  it('recomputes the root, with and without the place of the leaf', () => {
    for (const leafIndex of leaves.keys()) {
      const claim = claimOf(leafIndex);
      expect(checkProof(claim)).toEqual({ isValid: true, computedRoot: merkleRoot });
      expect(checkProof({ ...claim, leafIndex, treeSize: leaves.length }).isValid).toBe(true);
    }
  });

  it('refuses a path without the shape of its leaf index', () => {
    const wrong = { ...claimOf(2), leafIndex: 3, treeSize: leaves.length };
    expect(checkProof(wrong)).toEqual({ isValid: false, computedRoot: null });
    expect(checkProof({ ...claimOf(2), leafIndex: 9, treeSize: leaves.length }).isValid).toBe(false);
  });

  it('refuses another root', () => {
    expect(checkProof({ ...claimOf(0), merkleRoot: '0'.repeat(64) }).isValid).toBe(false);
  });
});

describe('judgeAnchor', () => {
  const claim = claimOf(0);
  const checked = checkProof(claim);

  it('reports what the ledger knows of a root', () => {
    expect(judgeAnchor(claim, checked, undefined).ledgerAnchored).toBeNull();
    const named = { ...claim, docketNumber: 1 };
    expect(judgeAnchor(named, checked, undefined).ledgerAnchored).toBe('failed');
    expect(judgeAnchor(named, checked, '0'.repeat(64)).ledgerAnchored).toBe('failed');
    expect(judgeAnchor(named, checked, merkleRoot).ledgerAnchored).toBe('verified');
  });
});
