import type { Pool } from 'undici';
import { z } from 'zod';
import { createVerifier, type Verifier } from '#core/crypto/verify.ts';
import {
  type NoteKey,
  parseCheckpoint,
  parseVerifierKey,
  verifyCheckpoint,
} from '#core/ledger/checkpoint.ts';
import { logLeaf } from '#core/ledger/log.ts';
import { verifyInclusion } from '#core/ledger/merkle.ts';
import { parsePath } from '#core/ledger/proof-path.ts';
import { recordLeaf } from '#core/ledger/record.ts';
import { loadEd25519 } from '#kit/crypto/ed25519.ts';
import { postConfirmed, restSubmission } from '../latency.ts';
import type { Stage } from '../stage.ts';

const confirmed = z.object({ docketNumber: z.number() });

/**
 * Submits a transaction at the register service's listener and waits until it is confirmed; returns the number of its
 * docket.
 */
export async function confirm(stage: Stage, register: Pool, submission: string): Promise<number> {
  const text = await postConfirmed(stage, register, restSubmission(submission));
  return confirmed.parse(JSON.parse(text)).docketNumber;
}

const path = z.array(z.object({ hash: z.string(), position: z.enum(['Left', 'Right']) }));
const inclusion = z.object({
  docketHash: z.string(),
  merkleRoot: z.string(),
  proofPath: path,
  leafIndex: z.number(),
  treeSize: z.number(),
  logProof: z.object({ leafIndex: z.number(), treeSize: z.number(), path }),
  checkpoint: z.string(),
});
const docketHeader = z.object({
  registerId: z.string(),
  docketNumber: z.number(),
  hash: z.string(),
  merkleRoot: z.string(),
  timestamp: z.string(),
  validatorSetHash: z.string(),
});

/** A client that requests proofs; it knows the key of the checkpoints. */
export interface Prover {
  readonly stage: Stage;
  readonly register: Pool;
  readonly key: NoteKey;
  readonly verifier: Verifier;
}

async function read(stage: Stage, register: Pool, place: string): Promise<Buffer> {
  const answer = await register.request({
    path: `/api/registers/${stage.registerId}/${place}`,
    method: 'GET',
    headers: { authorization: `Bearer ${stage.token}` },
  });
  const bytes = Buffer.from(await answer.body.arrayBuffer());
  if (answer.statusCode !== 200) throw new Error(`${place} answered ${answer.statusCode}: ${bytes}`);
  return bytes;
}

export async function openProver(stage: Stage, register: Pool): Promise<Prover> {
  const key = parseVerifierKey((await read(stage, register, 'checkpoint/key')).toString().trim());
  return { stage, register, key, verifier: createVerifier(loadEd25519().backend) };
}

/** From the first byte sent until a proof of inclusion under a signed checkpoint has verified. */
export async function confirmAndProve(prover: Prover, submission: string): Promise<void> {
  const { stage, register, key, verifier } = prover;
  const docketNumber = await confirm(stage, register, submission);
  const txId: string = JSON.parse(submission).TransactionId;
  const at = `transactions/${txId}`;
  const [record, proofText, docketText] = await Promise.all([
    read(stage, register, `${at}/record`),
    read(stage, register, `${at}/inclusion-proof`),
    read(stage, register, `dockets/${docketNumber}`),
  ]);
  const { logProof, ...proof } = inclusion.parse(JSON.parse(proofText.toString()));
  const header = docketHeader.parse(JSON.parse(docketText.toString()));
  const checkpoint = parseCheckpoint(proof.checkpoint);
  const inDocket = verifyInclusion(
    { ...proof, leaf: recordLeaf(record), path: parsePath(proof.proofPath) },
    Buffer.from(header.merkleRoot, 'hex'),
  );
  const inLog = verifyInclusion(
    { ...logProof, leaf: logLeaf(header), path: parsePath(logProof.path) },
    checkpoint.rootHash,
  );
  const isSigned = verifyCheckpoint(verifier, checkpoint, key) && logProof.treeSize === checkpoint.size;
  if (!inDocket || !inLog || !isSigned) throw new Error(`the proof of ${txId} does not verify`);
}
