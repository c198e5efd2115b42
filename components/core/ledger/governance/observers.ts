import { parseTimestamp, TICKS_PER_SECOND } from '../../encoding/timestamp.ts';
import { memberDid } from '../did.ts';
import { type ControlContext, type ControlTransaction, isSystemSigned, type Refused } from './control.ts';
import { type OperationPayload, suspensionId } from './operation.ts';
import { isOver, remember } from './operations.ts';
import { refuse } from './roster.ts';
import { isSameKey, type LedgerRules, type OpenProposal, rosterHash } from './rules.ts';

/** Maximum age of an observer's proposal when it is sealed, so that its life is about that of the policy. */
const OLDEST_TICKS = 3_600n * TICKS_PER_SECOND;

/**
 * Whether only active validators signed, or only the register-control key. Both may report evidence, and neither has a
 * vote.
 */
export function isObserver(rules: LedgerRules, transaction: ControlTransaction): boolean {
  if (isSystemSigned(rules, transaction)) return true;
  const { signers } = transaction;
  const active = rules.validators.filter((each) => each.status === 'Active');
  return signers.length > 0 && signers.every((key) => active.some((each) => isSameKey(each, key)));
}

/**
 * Judges whether an observer may propose to suspend a validator. One proposal is accepted for each term of the
 * validator in the set, because all members see the same fault and may send the same proposal. The proposal cannot be
 * wasted: the accused may not send it, and it lives as long as the policy says, whichever member sent it.
 */
export function judgeObserver(
  rules: LedgerRules,
  transaction: ControlTransaction,
  payload: OperationPayload,
  context: ControlContext,
): Refused | undefined {
  const { operation } = payload;
  if (operation.operationType !== 'suspend-validator') return refuse('VAL_PERM_003', 'operation');
  if (operation.proposerDid !== memberDid(transaction.senderAddress)) {
    return refuse('VAL_PERM_003', 'operation.proposerDid', 'The proposer is not the first signer');
  }
  const accused = rules.validators.find((each) => each.validatorId === operation.validatorId);
  if (accused !== undefined && transaction.signers.some((key) => isSameKey(key, accused))) {
    return refuse('VAL_PERM_003', 'Signatures', 'A validator does not propose its own suspension');
  }
  const age = parseTimestamp(context.timestamp) - parseTimestamp(operation.proposedAt);
  if (operation.expiresAt !== undefined || age > OLDEST_TICKS) {
    return refuse('VAL_PERM_013', 'operation.proposedAt', 'The proposal is not a fresh one');
  }
  return isProposed(rules, payload, context)
    ? refuse('VAL_PERM_018', 'operation.validatorId', 'The suspension of the validator is proposed already')
    : undefined;
}

function isProposed(rules: LedgerRules, payload: OperationPayload, context: ControlContext): boolean {
  const suspension = suspensionIdOf(rules, payload);
  if (suspension !== undefined) return rules.enacted.some((each) => each.operationId === suspension);
  const { operation } = payload;
  if (operation.operationType !== 'suspend-validator') return false;
  const { validatorId, evidence } = operation;
  return rules.proposals.some(
    (each) => isSuspensionOf(each, validatorId, evidence?.kind) && !isOver(each.expiresAt, context),
  );
}

function isSuspensionOf({ operation }: OpenProposal, validatorId: string, kind: string | undefined): boolean {
  return (
    operation.operationType === 'suspend-validator' &&
    operation.validatorId === validatorId &&
    operation.evidence?.kind === kind
  );
}

/** Id of the suspension that a proposal requests; undefined for all but a suspension for two signed messages. */
function suspensionIdOf(
  rules: LedgerRules,
  { operation, rosterHashBefore }: OperationPayload,
): string | undefined {
  if (operation.operationType !== 'suspend-validator' || operation.evidence?.kind !== 'double-sign') {
    return undefined;
  }
  const accused = rules.validators.find((each) => each.validatorId === operation.validatorId);
  if (accused === undefined) return undefined;
  const { registerId } = rules;
  const { validatorId, effectiveFromDocket } = accused;
  return suspensionId({ registerId, validatorId, effectiveFromDocket, rosterHashBefore });
}

/** The rules with the suspension term of a proposal recorded, by whichever member it was opened. */
export function withQuestion(rules: LedgerRules, payload: OperationPayload): LedgerRules | Refused {
  const suspension = suspensionIdOf(rules, payload);
  const isKnown = rules.enacted.some((each) => each.operationId === suspension);
  return suspension === undefined || isKnown ? rules : remember(rules, suspension, payload.operation);
}

/** Whether a suspension for two signed messages was proposed to the present roster in the validator's present term. */
export function isSuspensionProposed(rules: LedgerRules, validatorId: string): boolean {
  const accused = rules.validators.find((each) => each.validatorId === validatorId);
  if (accused === undefined) return false;
  const { registerId, roster } = rules;
  const { effectiveFromDocket } = accused;
  const rosterHashBefore = rosterHash(registerId, roster);
  const suspension = suspensionId({ registerId, validatorId, effectiveFromDocket, rosterHashBefore });
  return rules.enacted.some((each) => each.operationId === suspension);
}

/** Finds the latest open proposal to suspend a validator for two signed messages. */
export function findSuspension(rules: LedgerRules, validatorId: string): OpenProposal | undefined {
  return rules.proposals.findLast((each) => isSuspensionOf(each, validatorId, 'double-sign'));
}
