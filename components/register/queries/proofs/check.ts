import { decodeHex, encodeHex } from '#core/encoding/hex.ts';
import { nodeHash, rootOfInclusion } from '#core/ledger/merkle.ts';
import { parsePath, type WireProofStep } from '#core/ledger/proof-path.ts';

interface ProofClaim {
  readonly transactionHash: string;
  readonly merkleRoot: string;
  readonly proofPath: readonly WireProofStep[];
  readonly leafIndex?: number | undefined;
  readonly treeSize?: number | undefined;
  readonly docketNumber?: number | undefined;
}

interface CheckedProof {
  readonly isValid: boolean;
  /** null when the path does not have the shape for that leaf in that tree */
  readonly computedRoot: string | null;
}

/** Recomputes the root of a proof. With index and size the shape of the path is checked too. */
export function checkProof(claim: ProofClaim): CheckedProof {
  const path = parsePath(claim.proofPath);
  const leaf = decodeHex(claim.transactionHash, 32);
  const { leafIndex, treeSize } = claim;
  const computed =
    leafIndex !== undefined && treeSize !== undefined
      ? rootOfInclusion({ leaf, leafIndex, treeSize, path })
      : path.reduce((hash, step) => fold(hash, step), leaf);
  const computedRoot = computed === undefined ? null : encodeHex(computed);
  return { isValid: computedRoot === claim.merkleRoot.toLowerCase(), computedRoot };
}

function fold(
  hash: Uint8Array,
  step: { readonly hash: Uint8Array; readonly position: 'Left' | 'Right' },
): Uint8Array {
  return step.position === 'Left' ? nodeHash(step.hash, hash) : nodeHash(hash, step.hash);
}

/** Whether the ledger knows the root of a proof; null when this cannot be determined. */
export function judgeAnchor(
  claim: ProofClaim,
  checked: CheckedProof,
  storedRoot: string | undefined,
): { readonly ledgerAnchored: 'verified' | 'failed' | null; readonly ledgerAnchorReason: string } {
  if (claim.docketNumber === undefined) {
    return { ledgerAnchored: null, ledgerAnchorReason: 'No docketNumber was given to compare with.' };
  }
  if (storedRoot === undefined) {
    return { ledgerAnchored: 'failed', ledgerAnchorReason: 'The docket does not exist on this register.' };
  }
  if (storedRoot !== checked.computedRoot) {
    return { ledgerAnchored: 'failed', ledgerAnchorReason: 'The docket has another Merkle root.' };
  }
  return { ledgerAnchored: 'verified', ledgerAnchorReason: 'The docket has this Merkle root.' };
}
