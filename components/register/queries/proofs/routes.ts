import { z } from 'zod';
import { walletAddress } from '#core/crypto/address.ts';
import { parsePublicKey } from '#core/crypto/public-key.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { decodeHex } from '#core/encoding/hex.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import { parseCheckpoint } from '#core/ledger/checkpoint.ts';
import { type App, callerOf, decimal, jsonAnswer, textAnswer } from '#kit/http/http.ts';
import { receiptIdOf } from '../../ledger/dockets/receipt-id.ts';
import { attestationsOf, findDocket, type StoredDocket } from '../../ledger/dockets/store.ts';
import { getSealed, type ReadDeps, txIdOf } from '../../ledger/transactions/read.ts';
import { memberOf } from '../../ledger/writing/chain.ts';
import { getRegister, getVisibleRegister } from '../../registers/state/access.ts';
import { membersAt, type Register } from '../../registers/state/store.ts';
import { checkProof, judgeAnchor } from './check.ts';
import type { Checkpoints } from './checkpoint.ts';
import { proveConsistency, proveDocket, proveTransaction, type TransactionProof } from './inclusion.ts';

export interface ProofsDeps extends ReadDeps {
  readonly checkpoints: Checkpoints;
}

const registerParams = z.object({ registerId: z.string() });
const transactionParams = z.object({ registerId: z.string(), txId: z.string() });
const hash = z.string().regex(/^[0-9a-fA-F]{64}$/, 'expected 64 hex characters');
const tags = ['Proofs'];

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

function mountTransactionProofs(app: App, deps: ProofsDeps): void {
  app.get(
    '/api/registers/:registerId/transactions/:txId/inclusion-proof',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'getInclusionProof',
        tags,
        summary: 'Proof that a transaction is sealed: docket tree, register log, certificate, checkpoint',
        params: transactionParams,
        response: jsonAnswer('The proof.'),
      },
    },
    async (request) => {
      const register = await getVisibleRegister(deps.db, callerOf(request), request.params.registerId);
      const row = await getSealed(deps, register, txIdOf(request.params.txId));
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
  );
  app.get(
    '/api/registers/:registerId/transactions/:txId/receipt',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'getTransactionReceipt',
        tags,
        summary: 'Receipt of a sealed transaction',
        params: transactionParams,
        response: jsonAnswer('The receipt.'),
      },
    },
    async (request) => {
      const register = await getVisibleRegister(deps.db, callerOf(request), request.params.registerId);
      const txId = txIdOf(request.params.txId);
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
        version: 1,
      };
    },
  );
}

function mountCheckpoints(app: App, deps: ProofsDeps): void {
  app.get(
    '/api/registers/:registerId/checkpoint',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'getCheckpoint',
        tags,
        summary: 'C2SP checkpoint of the register log',
        params: registerParams,
        response: textAnswer('text/plain', 'A signed note.'),
      },
    },
    async (request, reply) => {
      const register = await getVisibleRegister(deps.db, callerOf(request), request.params.registerId);
      const note = await deps.checkpoints.checkpoint(register);
      return reply.type('text/plain; charset=utf-8').send(note);
    },
  );
  app.get(
    '/api/registers/:registerId/checkpoint/key',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'getCheckpointKey',
        tags,
        summary: 'Verifier key of the checkpoint, as C2SP tools read it',
        params: registerParams,
        response: textAnswer('text/plain', 'A verifier key.'),
      },
    },
    async (request, reply) => {
      const register = await getVisibleRegister(deps.db, callerOf(request), request.params.registerId);
      const key = await deps.checkpoints.key(register);
      return reply.type('text/plain; charset=utf-8').send(`${key}\n`);
    },
  );
  app.get(
    '/api/registers/:registerId/checkpoint/cosigners',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'listCheckpointCosigners',
        tags,
        summary: 'Verifier keys of the cosignatures under the checkpoint, one validator a line',
        params: registerParams,
        response: textAnswer('text/plain', 'One verifier key a line.'),
      },
    },
    async (request, reply) => {
      const register = await getVisibleRegister(deps.db, callerOf(request), request.params.registerId);
      const keys = await deps.checkpoints.cosignerKeys(register);
      return reply.type('text/plain; charset=utf-8').send(keys.map((key) => `${key}\n`).join(''));
    },
  );
}

function mountConsistency(app: App, deps: ProofsDeps): void {
  app.get(
    '/api/registers/:registerId/proofs/consistency',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'getConsistencyProof',
        tags,
        summary: 'Proof that the log of from dockets is the beginning of the log of to dockets',
        params: registerParams,
        querystring: z.object({
          from: decimal({ min: 1 }),
          to: decimal({ min: 1 }).optional().describe('The height when absent.'),
        }),
        response: jsonAnswer('The proof.'),
      },
    },
    async (request) => {
      const register = await getVisibleRegister(deps.db, callerOf(request), request.params.registerId);
      const { from, to = register.height } = request.query;
      return proveConsistency(deps.db, register, { from, to });
    },
  );
}

const proofBody = z.object({
  transactionHash: hash,
  merkleRoot: hash,
  proofPath: z.array(z.object({ hash, position: z.enum(['Left', 'Right']) })).max(64),
  leafIndex: z.int().min(0).optional(),
  treeSize: z.int().min(1).optional(),
  docketNumber: z.int().min(0).optional(),
});

export function mountProofs(app: App, deps: ProofsDeps): void {
  mountTransactionProofs(app, deps);
  mountCheckpoints(app, deps);
  mountConsistency(app, deps);
  app.post(
    '/api/registers/:registerId/inclusion-proofs/verify',
    {
      config: { policy: 'Anonymous', rateLimit: 'Api' },
      schema: {
        operationId: 'verifyInclusionProof',
        tags,
        summary: 'Recompute an inclusion proof',
        params: registerParams,
        body: proofBody,
        response: jsonAnswer('Whether the proof holds.'),
      },
    },
    async (request) => {
      const { body } = request;
      const register = await getRegister(deps.db, request.params.registerId);
      const checked = checkProof(body);
      const { docketNumber } = body;
      const docket =
        docketNumber === undefined
          ? undefined
          : await findDocket(deps.db, register.registerNo, { docketNumber });
      return { ...checked, ...judgeAnchor(body, checked, docket?.merkle_root) };
    },
  );
}
