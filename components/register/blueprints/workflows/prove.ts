import { parseCheckpoint } from '#core/ledger/checkpoint.ts';
import { parsePath, type WireProofStep } from '#core/ledger/proof-path.ts';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { findSealed } from '../../ledger/sealed/store.ts';
import type { Segments } from '../../ledger/segments/segments.ts';
import { keyed, txIdOf } from '../../ledger/transactions/read.ts';
import type { Checkpoints } from '../../queries/proofs/checkpoint.ts';
import { proveDocket, proveTransaction } from '../../queries/proofs/inclusion.ts';
import type { Register } from '../../registers/state/store.ts';

export interface ProveDeps {
  readonly db: Reader<RegisterSchema>;
  readonly segments: Pick<Segments, 'of'>;
  readonly checkpoints: Pick<Checkpoints, 'checkpoint' | 'key'>;
}

/**
 * A sealed transaction with its proof under a checkpoint, as the RPC answers it.
 * @throws AppError not_found TX_NOT_FOUND, what the checkpoint throws
 */
export async function proveSealed(deps: ProveDeps, register: Register, transactionId: string) {
  const { db, checkpoints } = deps;
  const row = await findSealed(db, keyed(deps, register), txIdOf(transactionId));
  if (row === undefined) throw refusal('TX_NOT_FOUND');
  const { record, payload, payloadHashForm, docketNumber } = row;
  const [{ docket, proofPath }, checkpoint, checkpointKey] = await Promise.all([
    proveTransaction(db, register.registerNo, row),
    checkpoints.checkpoint(register),
    checkpoints.key(register),
  ]);
  const treeSize = parseCheckpoint(checkpoint).size;
  const { path } = await proveDocket(db, { registerNo: register.registerNo, docketNumber, treeSize });
  return {
    transaction: { record, payload, payloadHashForm },
    docket: {
      docketNumber: BigInt(docketNumber),
      hash: docket.hash,
      merkleRoot: docket.merkle_root,
      timestamp: docket.timestamp,
      validatorSetHash: docket.validator_set_hash,
    },
    inclusion: nodesOf(proofPath),
    log: nodesOf(path),
    checkpoint,
    checkpointKey,
  };
}

function nodesOf(path: readonly WireProofStep[]) {
  return parsePath(path).map(({ hash, position }) => ({ hash, left: position === 'Left' }));
}
