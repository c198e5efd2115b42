import { describe, expect, it } from 'vitest';
import { createVerifier, nodeEd25519 } from '../../crypto/verify.ts';
import { canonicalJson } from '../../encoding/jcs.ts';
import { boundTxId, payloadHash, verifyTransactionSignature } from '../transaction.ts';
import figures from '../vectors/governance.json' with { type: 'json' };
import { verifyApproval } from './approvals.ts';
import { governanceDraft } from './build.ts';
import { findControlAction } from './control.ts';
import {
  approvalDigest,
  approvalSchema,
  operationId,
  operationPayloadSchema,
  operationSchema,
} from './operation.ts';
import { applyEffect } from './operations.ts';
import { type LedgerRules, rosterHash } from './rules.ts';
import { Scene } from './testing/scene.ts';

const { registerId, createdAt } = figures;
const verifier = createVerifier(nodeEd25519());

function boardRules(): LedgerRules {
  const roster = figures.roster.map((entry) => ({
    ...entry,
    role: entry.role === 'Owner' ? ('Owner' as const) : ('Admin' as const),
    algorithm: 'ED25519' as const,
    grantedAt: createdAt,
  }));
  return { ...new Scene().rules, roster };
}

// Made by e2e/independent/governance_vectors.py.
describe('governance by a second implementation', () => {
  const rules = boardRules();

  it('the hash of the roster', () => {
    expect(rosterHash(registerId, rules.roster)).toBe(figures.rosterHash);
  });

  it.each(figures.cases)('$operation.operationType: digest, votes, payload and transaction', (figure) => {
    const operation = operationSchema.parse(figure.operation);
    const rosterHashBefore = figures.rosterHash;
    expect(operation).toEqual(figure.operation);
    expect(operationId(registerId, operation, rosterHashBefore)).toBe(figure.operationId);
    for (const vote of figure.votes) {
      const approval = approvalSchema.parse(vote.approval);
      const { approverDid, isApproval } = approval;
      const facts = { registerId, approverDid, isApproval, operation, rosterHashBefore };
      expect(approvalDigest(facts)).toBe(vote.digest);
      const subject = { operation, rosterHashBefore };
      expect(verifyApproval(rules, subject, approval, verifier)).toBe(true);
      expect(verifyApproval(rules, subject, { ...approval, isApproval: !isApproval }, verifier)).toBe(false);
    }
    const payload = operationPayloadSchema.parse(JSON.parse(figure.payload));
    expect(canonicalJson(payload)).toBe(figure.payload);
    expect(payloadHash(payload)).toBe(figure.payloadHash);
    const envelope = envelopeOf(operation.operationType, figure.payloadHash);
    const publicKey = figures.roster[0]?.publicKey ?? '';
    expect(boundTxId(envelope, [publicKey])).toBe(figure.transactionId);
    const signed = { txId: figure.transactionId, payloadHash: figure.payloadHash };
    const signature = { publicKey, signatureValue: figure.signature, algorithm: 'ED25519' as const };
    expect(verifyTransactionSignature(verifier, signed, signature)).toBe(true);
  });

  it.each(figures.cases)('$operation.operationType: the resulting roster', (figure) => {
    const payload = operationPayloadSchema.parse(JSON.parse(figure.payload));
    const context = { docketNumber: 1, timestamp: createdAt, verifier };
    const effect = applyEffect(rules, payload.operation, context);
    if ('violations' in effect) throw new Error(effect.violations[0]?.message);
    expect(rosterHash(registerId, effect.rules.roster)).toBe(payload.rosterHashAfter);
    expect(findControlAction(payload.operation.operationType)?.operationType).toBe(
      payload.operation.operationType,
    );
  });
});

function envelopeOf(actionId: string, hash: string) {
  const { payload: _payload, ...draft } = governanceDraft(actionId, undefined);
  return { registerId, ...draft, type: 'Control' as const, payloadHash: hash, createdAt };
}
