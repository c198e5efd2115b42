import { z } from 'zod';
import type { Api } from '../harness/api.ts';
import { type Evidence, fetchCosigners, type Proof } from '../harness/evidence.ts';
import { inParallel } from '../harness/wait.ts';

const consistency = z.object({ from: z.number(), to: z.number(), path: z.array(z.string()) });
const hashesOf = (path: Proof['proofPath']) => path.map(({ hash }) => hash);

function originOf(checkpoint: string): string {
  return checkpoint.slice(0, checkpoint.indexOf('\n'));
}

/** Proofs that each log of a register is a prefix of each later one. */
async function fetchConsistency(api: Api, token: string, { registerId, dockets }: Evidence) {
  const sizes = dockets.map((_, index) => index + 1);
  const pairs = sizes.flatMap((to) => sizes.slice(0, to).map((from) => ({ from, to })));
  const rootOf = (size: number) => dockets[size - 1]?.logRoot ?? '';
  return inParallel(pairs, 8, async ({ from, to }) => {
    const path = `/api/registers/${registerId}/proofs/consistency?from=${from}&to=${to}`;
    const proof = consistency.parse((await api.expect(200, 'GET', path, { token })).body);
    return { ...proof, fromRoot: rootOf(from), toRoot: rootOf(to) };
  });
}

function inclusionsOf({ dockets, records, proofs }: Evidence) {
  return dockets.flatMap((docket) =>
    docket.transactionIds.map((txId) => {
      const proof = proofs.get(txId);
      const record = records.get(txId);
      if (proof === undefined || record === undefined) throw new Error(`${txId} has no proof`);
      const { docketNumber, hash, merkleRoot, registerId, timestamp, validatorSetHash } = docket;
      return {
        txId,
        record: Buffer.from(record).toString('base64'),
        leafIndex: proof.leafIndex,
        treeSize: proof.treeSize,
        path: hashesOf(proof.proofPath),
        docket: { docketNumber, hash, merkleRoot, registerId, timestamp, validatorSetHash },
        logIndex: proof.logProof.leafIndex,
        logSize: proof.logProof.treeSize,
        logPath: hashesOf(proof.logProof.path),
      };
    }),
  );
}

/** The proofs of a register, as JSON for a program that shares no code with the product. */
export async function proofsText(api: Api, token: string, evidence: Evidence): Promise<string> {
  return JSON.stringify({
    origin: originOf(evidence.checkpoint),
    checkpoint: evidence.checkpoint,
    logKey: evidence.checkpointKey,
    cosigners: await fetchCosigners(api, token, evidence.registerId),
    inclusions: inclusionsOf(evidence),
    consistency: await fetchConsistency(api, token, evidence),
  });
}
