import { z } from 'zod';
import { walletAddress } from '#core/crypto/address.ts';
import { parsePublicKey } from '#core/crypto/public-key.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { decodeHex } from '#core/encoding/hex.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import { parseCheckpoint } from '#core/ledger/checkpoint.ts';
import { type App, addRoute, answer, decimal, json, media } from '#kit/http/http.ts';
import { ofCheckpoint, ofVisibleRegister, refusals } from '../../errors.ts';
import { receiptIdOf } from '../../ledger/dockets/receipt-id.ts';
import { attestationsOf, findDocket, type StoredDocket } from '../../ledger/dockets/store.ts';
import { getSealed, type ReadDeps, txIdOf } from '../../ledger/transactions/read.ts';
import { memberOf } from '../../ledger/writing/chain.ts';
import { getRegister, visibleRegister } from '../../registers/state/access.ts';
import { membersAt, type Register } from '../../registers/state/store.ts';
import { checkProof, judgeAnchor } from './check.ts';
import type { Checkpoints } from './checkpoint.ts';
import { proveConsistency, proveDocket, proveTransaction, type TransactionProof } from './inclusion.ts';
import {
  checkedProofSchema,
  consistencyProofSchema,
  inclusionProofSchema,
  receiptSchema,
} from './schemas.ts';

export interface ProofsDeps extends ReadDeps {
  readonly checkpoints: Checkpoints;
}

const registerParams = z.object({ registerId: z.string() });
const transactionParams = z.object({ registerId: z.string(), txId: z.string() });
const hash = z.string().regex(/^[0-9a-fA-F]{64}$/, 'expected 64 hex characters');

function presentProof({ docket, ...proof }: TransactionProof) {
  return {
    transactionHash: proof.transactionHash,
    docketNumber: docket.docket_number,
    merkleRoot: docket.merkle_root,
    proofPath: proof.proofPath,
    leafIndex: proof.leafIndex,
    treeSize: proof.treeSize,
  };
}

async function sealersOf(deps: ProofsDeps, register: Register, docket: StoredDocket) {
  const members = await membersAt(deps.db, register.registerNo, docket.docket_number);
  const addresses = new Map(
    members.map(memberOf).map((member) => {
      const key = parsePublicKey(member.algorithm, member.publicKey);
      return [
        member.validatorId,
        { address: walletAddress(member.algorithm, key), algorithm: member.algorithm },
      ];
    }),
  );
  const certificate: Certificate = JSON.parse(docket.certificate);
  return certificate.signatures.map((vote) => ({
    validatorId: vote.validatorId,
    validatorAddress: addresses.get(vote.validatorId)?.address ?? '',
    signatureValue: vote.signature,
    algorithm: addresses.get(vote.validatorId)?.algorithm ?? '',
    signedAt: vote.timestamp,
  }));
}

function presentAttested(vote: ConsensusVote) {
  return {
    validatorAddress: vote.validatorAddress,
    signatureValue: encodeBase64(decodeHex(vote.signature)),
    algorithm: vote.algorithm,
    signedAt: vote.timestamp,
  };
}

const common = {
  method: 'GET',
  tag: 'Proofs',
  policy: 'RequireAuthenticated',
  rateLimit: 'Api',
} as const;

function mountTransactionProofs(app: App, deps: ProofsDeps): void {
  const read = {
    ...common,
    params: transactionParams,
    refusals: [
      ...ofVisibleRegister,
      ...refusals('TX_NOT_FOUND', 'TX_NOT_SEALED', 'DOCKET_NOT_FOUND', 'VALIDATOR_UNAVAILABLE'),
    ],
    resource: visibleRegister(() => deps.db),
  } as const;
  addRoute(app, {
    ...read,
    path: '/api/registers/:registerId/transactions/:txId/inclusion-proof',
    operationId: 'getInclusionProof',
    summary: 'Proof that a transaction is sealed: docket tree, register log, certificate, checkpoint',
    answers: { 200: json('The proof.', inclusionProofSchema) },
    handle: async ({ params, resource: register }) => {
      const row = await getSealed(deps, register, txIdOf(params.txId));
      const { registerNo } = register;
      const proof = await proveTransaction(deps.db, registerNo, row);
      const checkpoint = await deps.checkpoints.checkpoint(register).catch(() => null);
      // The log proof leads to the root of the checkpoint, so that both can be checked together.
      const size = checkpoint === null ? register.height : parseCheckpoint(checkpoint).size;
      const treeSize = Math.max(size, row.docketNumber + 1);
      const certificate: Certificate = JSON.parse(proof.docket.certificate);
      return {
        ...presentProof(proof),
        docketHash: proof.docket.hash,
        logProof: await proveDocket(deps.db, { registerNo, docketNumber: row.docketNumber, treeSize }),
        certificate,
        checkpoint,
      };
    },
  });
  addRoute(app, {
    ...read,
    path: '/api/registers/:registerId/transactions/:txId/receipt',
    operationId: 'getTransactionReceipt',
    summary: 'Receipt of a sealed transaction',
    answers: { 200: json('The receipt.', receiptSchema) },
    handle: async ({ params, resource: register }) => {
      const txId = txIdOf(params.txId);
      const row = await getSealed(deps, register, txId);
      const proof = await proveTransaction(deps.db, register.registerNo, row);
      const votes = await attestationsOf(deps.db, register.registerNo, [row.docketNumber]);
      return {
        receiptId: receiptIdOf({ registerId: register.registerId, txId, docketHash: proof.docket.hash }),
        transactionId: txId,
        registerId: register.registerId,
        docketNumber: row.docketNumber,
        docketHash: proof.docket.hash,
        merkleRoot: proof.docket.merkle_root,
        inclusionProof: presentProof(proof),
        signatures: await sealersOf(deps, register, proof.docket),
        attestations: votes.map((vote) => presentAttested(vote.attestation)),
        sealedAt: proof.docket.timestamp,
        storedAt: apiTimestamp(proof.docket.stored_at.getTime()),
        version: 1 as const,
      };
    },
  });
}

/** A text, as C2SP tools read it. */
const plainText = (text: string) => answer(200, text, { 'content-type': 'text/plain; charset=utf-8' });

function mountCheckpoints(app: App, deps: ProofsDeps): void {
  const read = {
    ...common,
    params: registerParams,
    refusals: [...ofVisibleRegister, ...ofCheckpoint],
    resource: visibleRegister(() => deps.db),
  } as const;
  addRoute(app, {
    ...read,
    path: '/api/registers/:registerId/checkpoint',
    operationId: 'getCheckpoint',
    summary: 'C2SP checkpoint of the register log',
    answers: { 200: media('text/plain', 'A signed note.') },
    handle: async ({ resource: register }) => plainText(await deps.checkpoints.checkpoint(register)),
  });
  addRoute(app, {
    ...read,
    path: '/api/registers/:registerId/checkpoint/key',
    operationId: 'getCheckpointKey',
    summary: 'Verifier key of the checkpoint, as C2SP tools read it',
    answers: { 200: media('text/plain', 'A verifier key.') },
    handle: async ({ resource: register }) => plainText(`${await deps.checkpoints.key(register)}\n`),
  });
  addRoute(app, {
    ...read,
    path: '/api/registers/:registerId/checkpoint/cosigners',
    operationId: 'listCheckpointCosigners',
    summary: 'Verifier keys of the cosignatures under the checkpoint, one validator a line',
    answers: { 200: media('text/plain', 'One verifier key a line.') },
    refusals: ofVisibleRegister,
    handle: async ({ resource: register }) => {
      const keys = await deps.checkpoints.cosignerKeys(register);
      return plainText(keys.map((key) => `${key}\n`).join(''));
    },
  });
}

function mountConsistency(app: App, deps: ProofsDeps): void {
  addRoute(app, {
    ...common,
    path: '/api/registers/:registerId/proofs/consistency',
    operationId: 'getConsistencyProof',
    summary: 'Proof that the log of from dockets is the beginning of the log of to dockets',
    params: registerParams,
    query: z.object({
      from: decimal({ min: 1 }),
      to: decimal({ min: 1 }).optional().describe('The height when absent.'),
    }),
    answers: { 200: json('The proof.', consistencyProofSchema) },
    refusals: [...ofVisibleRegister, ...refusals('TREE_SIZE_INVALID')],
    resource: visibleRegister(() => deps.db),
    handle: ({ query, resource: register }) => {
      const { from, to = register.height } = query;
      return proveConsistency(deps.db, register, { from, to });
    },
  });
}

const proofBody = z.object({
  transactionHash: hash,
  merkleRoot: hash,
  proofPath: z.array(z.object({ hash, position: z.enum(['Left', 'Right']) })).max(64),
  leafIndex: z.int().min(0).optional(),
  treeSize: z.int().min(1).optional(),
  docketNumber: z.int().min(0).optional(),
});

/** The proof of the only transaction of a docket: its root is the leaf. */
const exampleHash = 'b4f6c1f0b1a7c0e5ac3a6d5f0a9c6c2b53b6e6a5d1a0b0f48bd2e0c6a1f7d3e9';

function mountVerify(app: App, deps: ProofsDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/registers/:registerId/inclusion-proofs/verify',
    operationId: 'verifyInclusionProof',
    tag: 'Proofs',
    summary: 'Recompute an inclusion proof',
    policy: 'Anonymous',
    rateLimit: 'Api',
    params: registerParams,
    body: {
      schema: proofBody,
      example: {
        transactionHash: exampleHash,
        merkleRoot: exampleHash,
        proofPath: [],
        leafIndex: 0,
        treeSize: 1,
        docketNumber: 12,
      },
    },
    answers: { 200: json('Whether the proof holds.', checkedProofSchema) },
    refusals: ofVisibleRegister,
    resource: ({ params }) => getRegister(deps.db, params.registerId),
    handle: async ({ body, resource: register }) => {
      const checked = checkProof(body);
      const { docketNumber } = body;
      const docket =
        docketNumber === undefined
          ? undefined
          : await findDocket(deps.db, register.registerNo, { docketNumber });
      return { ...checked, ...judgeAnchor(body, checked, docket?.merkle_root) };
    },
  });
}

/** Inclusion, consistency, checkpoints: what proves that the ledger holds something. */
export function mountProofs(app: App, deps: ProofsDeps): void {
  mountTransactionProofs(app, deps);
  mountCheckpoints(app, deps);
  mountConsistency(app, deps);
  mountVerify(app, deps);
}
