import { encodeHex } from '#core/encoding/hex.ts';
import { inclusion } from '#core/ledger/merkle.ts';
import { presentHashes, presentPath } from '#core/ledger/proof-path.ts';
import {
  buildConsistency,
  buildInclusion,
  planConsistency,
  planInclusion,
} from '#core/ledger/stored-proof.ts';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { findDocket, type StoredDocket } from '../../ledger/dockets/store.ts';
import type { SealedRow } from '../../ledger/sealed/rows/store.ts';
import { leavesOfDocket } from '../../ledger/sealed/store.ts';
import type { Register } from '../../registers/state/store.ts';
import { loadLogNodes } from './store.ts';

type Db = Reader<RegisterSchema>;

export interface TransactionProof {
  readonly docket: StoredDocket;
  readonly transactionHash: string;
  readonly proofPath: ReturnType<typeof presentPath>;
  readonly leafIndex: number;
  readonly treeSize: number;
}

/** Inclusion proof of a sealed record in the tree of its docket, which is computed from the docket's leaves. */
export async function proveTransaction(
  db: Db,
  registerNo: number,
  row: SealedRow,
): Promise<TransactionProof> {
  const [docket, leaves] = await Promise.all([
    findDocket(db, registerNo, { docketNumber: row.docketNumber }),
    leavesOfDocket(db, registerNo, row.docketNumber),
  ]);
  if (docket === undefined) throw refusal('DOCKET_NOT_FOUND');
  return {
    docket,
    transactionHash: encodeHex(row.leaf),
    proofPath: presentPath(inclusion(leaves, row.position)),
    leafIndex: row.position,
    treeSize: leaves.length,
  };
}

/** Inclusion proof of a docket in the register log of `treeSize` dockets, from O(log n) stored nodes. */
export async function proveDocket(
  db: Db,
  at: { registerNo: number; docketNumber: number; treeSize: number },
) {
  const plan = planInclusion(at.docketNumber, at.treeSize);
  const find = await loadLogNodes(
    db,
    at.registerNo,
    plan.flatMap((element) => element.parts),
  );
  return {
    leafIndex: at.docketNumber,
    treeSize: at.treeSize,
    path: presentPath(buildInclusion(plan, find)),
  };
}

/** Consistency proof between the logs of `from` and `to` dockets (RFC 9162). */
export async function proveConsistency(db: Db, register: Register, range: { from: number; to: number }) {
  const { from, to } = range;
  if (from < 1 || from > to || to > register.height) throw refusal('TREE_SIZE_INVALID');
  const plan = planConsistency(from, to);
  const find = await loadLogNodes(db, register.registerNo, plan.flat());
  return { from, to, path: presentHashes(buildConsistency(plan, find)) };
}
