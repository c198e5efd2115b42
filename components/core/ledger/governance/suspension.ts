import { sha256Hex } from '../../crypto/hash.ts';
import { canonicalJson } from '../../encoding/jcs.ts';
import { memberDid } from '../did.ts';
import { boundTxId, type TransactionEnvelope } from '../transaction.ts';
import { buildOperation, governanceDraft } from './build.ts';
import type { ControlContext } from './control.ts';
import type { Evidence, OperationPayload } from './operation.ts';
import type { LedgerRules } from './rules.ts';

/** A validator's proposal to suspend another one. */
export interface Accusation {
  readonly validatorId: string;
  readonly evidence: Extract<Evidence, { kind: 'double-sign' }>;
  /** Address of the accusing validator's key. */
  readonly proposerAddress: string;
}

/**
 * Builds the payload that proposes to suspend a validator for two signed messages.
 * @throws AppError unprocessable with the violation when the validator cannot be suspended now
 */
export function buildSuspension(
  rules: LedgerRules,
  { validatorId, evidence, proposerAddress }: Accusation,
  context: ControlContext,
): OperationPayload {
  const operation = {
    operationType: 'suspend-validator',
    proposerDid: memberDid(proposerAddress),
    proposedAt: context.timestamp,
    validatorId,
    evidence,
  } as const;
  return buildOperation(rules, operation, context);
}

/** A transaction without its signature. */
export interface UnsignedProposal {
  readonly envelope: TransactionEnvelope;
  readonly txId: string;
  /** Canonical JSON: the bytes that payloadHash covers. */
  readonly payloadText: string;
}

/**
 * The transaction with which a validator opens a proposal. It follows from the payload alone, so the holder of the key
 * can build the bytes to sign itself.
 * @param publicKey key of its only signer, standard base64
 */
export function suspensionTransaction(
  registerId: string,
  payload: OperationPayload,
  publicKey: string,
): UnsignedProposal {
  const { blueprintId, actionId, metadata } = governanceDraft('control.governance.propose', payload);
  const payloadText = canonicalJson(payload);
  const envelope: TransactionEnvelope = {
    registerId,
    blueprintId,
    actionId,
    type: 'Control',
    payloadHash: sha256Hex(payloadText),
    createdAt: payload.operation.proposedAt,
    metadata,
  };
  return { envelope, txId: boundTxId(envelope, [publicKey]), payloadText };
}
