import { canonicalBytes } from '../../encoding/jcs.ts';
import {
  formatLedgerTimestamp,
  parseTimestamp,
  TICKS_PER_SECOND,
  ticksToMicros,
} from '../../encoding/timestamp.ts';
import { validationViolation } from '../../errors/validation-codes.ts';
import { memberDid } from '../did.ts';
import {
  approvalsAmong,
  countVotes,
  eligibleVoters,
  isAccepted,
  mayBypass,
  requiredApprovals,
} from './approvals.ts';
import {
  type Applied,
  type ControlContext,
  type ControlKind,
  type ControlTransaction,
  judgeSigners,
  type Refused,
  type RulesPart,
  rosterSigners,
} from './control.ts';
import { judgeEvidence } from './evidence.ts';
import { MAX_OPERATION_BYTES, type Operation, type OperationPayload, operationId } from './operation.ts';
import { updateCryptoPolicy, updatePolicy } from './policies.ts';
import { addMember, changeRole, type Effect, refuse, removeMember, transferOwnership } from './roster.ts';
import { type EnactedOperation, findRosterEntry, type LedgerRules, rosterHash } from './rules.ts';
import {
  addValidator,
  countSetChanges,
  removeValidator,
  rotateValidatorKey,
  suspendValidator,
} from './validators.ts';

const TICKS_PER_DAY = 86_400n * TICKS_PER_SECOND;
const FUTURE_SKEW_TICKS = 5n * 60n * TICKS_PER_SECOND;
/** The last instant that a timestamp can express: the end of the year 9999. */
const MAX_MICROS = 253_402_300_799_999_999n;
const MAX_ENACTED = 2_000;
/** Maximum of the policy's proposalTtlDays. */
const LONGEST_TTL_DAYS = 90;

const KINDS: Readonly<Record<Exclude<RulesPart, 'proposals'>, ControlKind>> = {
  register: 'metadata-update',
  roster: 'governance',
  validators: 'validator-update',
  policy: 'policy-update',
  'crypto-policy': 'crypto-policy-update',
};

/**
 * The end of an operation, as a ledger timestamp: its own end, limited to the TTL of the policy after it was proposed.
 */
export function operationEnd(operation: Operation, ttlDays: number): string {
  const latest = parseTimestamp(operation.proposedAt) + BigInt(ttlDays) * TICKS_PER_DAY;
  const own = parseTimestamp(operation.expiresAt ?? formatLedgerTimestamp(MAX_MICROS));
  const end = own < latest ? own : latest;
  // An offset can put the instant before the year 0000; it is in the past in any case.
  return formatLedgerTimestamp(end > 0n ? ticksToMicros(end) : 0n);
}

/** Whether an instant, given as text, has passed at a docket's timestamp. */
export function isOver(end: string, { timestamp }: Pick<ControlContext, 'timestamp'>): boolean {
  return parseTimestamp(end) <= parseTimestamp(timestamp);
}

/** Judges what every operation must meet in any form: size, roster, time, and that it has not been enacted. */
export function judgeOperation(
  rules: LedgerRules,
  payload: OperationPayload,
  context: ControlContext,
): Refused | undefined {
  const { operation, rosterHashBefore } = payload;
  if (canonicalBytes(operation).length > MAX_OPERATION_BYTES) return refuse('VAL_SIZE_001', 'operation');
  if (rosterHashBefore !== rosterHash(rules.registerId, rules.roster)) {
    return refuse('VAL_PERM_009', 'rosterHashBefore');
  }
  const now = parseTimestamp(context.timestamp);
  const proposed = parseTimestamp(operation.proposedAt);
  if (proposed > now + FUTURE_SKEW_TICKS) return refuse('VAL_PERM_013', 'operation.proposedAt');
  const { proposalTtlDays } = rules.policy.governance;
  if (isOver(operationEnd(operation, proposalTtlDays), context)) {
    return refuse('VAL_PERM_013', 'operation.expiresAt');
  }
  return isEnacted(rules, operation, rosterHashBefore) ? refuse('VAL_PERM_014', 'operation') : undefined;
}

function isEnacted(rules: LedgerRules, operation: Operation, rosterHashBefore: string): boolean {
  const id = operationId(rules.registerId, operation, rosterHashBefore);
  return rules.enacted.some((each) => each.operationId === id);
}

/** The rules after an operation has taken effect, whichever way it was decided. */
export function applyEffect(
  rules: LedgerRules,
  operation: Operation,
  context: ControlContext,
): Effect | Refused {
  switch (operation.operationType) {
    case 'add-member':
      return addMember(rules, operation, context);
    case 'remove-member':
      return removeMember(rules, operation);
    case 'transfer-ownership':
      return transferOwnership(rules, operation, context);
    case 'change-role':
      return changeRole(rules, operation, context);
    case 'add-validator':
      return addValidator(rules, operation, context);
    case 'remove-validator':
      return removeValidator(rules, operation, context);
    case 'rotate-validator-key':
      return rotateValidatorKey(rules, operation, context);
    case 'suspend-validator':
      return suspendValidator(rules, operation, context);
    case 'policy-update':
      return updatePolicy(rules, operation, context);
    case 'crypto-policy-update':
      return updateCryptoPolicy(rules, operation.cryptoPolicy);
  }
}

/** Judges that the proposer signs first and votes: owner or admin of the present roster. */
export function judgeProposer(
  rules: LedgerRules,
  transaction: ControlTransaction,
  operation: Operation,
): Refused | undefined {
  const violations = judgeSigners(rules, transaction);
  if (violations.length > 0) return { violations };
  if (memberDid(transaction.senderAddress) !== operation.proposerDid) {
    return refuse('VAL_PERM_003', 'operation.proposerDid', 'The proposer is not the first signer');
  }
  const role = findRosterEntry(rules, operation.proposerDid)?.role;
  return role === 'Owner' || role === 'Admin' ? undefined : refuse('VAL_PERM_003', 'operation.proposerDid');
}

/**
 * Enacts a decided operation and records its id, so that it is not enacted again.
 * @param decision the part of the payload that was decided on
 */
export function enactOperation(
  rules: LedgerRules,
  transaction: ControlTransaction,
  decision: Omit<OperationPayload, 'version'>,
  context: ControlContext,
): Applied | Refused {
  const { operation, rosterHashBefore, rosterHashAfter } = decision;
  if (isEnacted(rules, operation, rosterHashBefore)) return refuse('VAL_PERM_014', 'operation');
  const effect = applyEffect(rules, operation, context);
  if ('violations' in effect) return effect;
  if (rosterHash(rules.registerId, effect.rules.roster) !== rosterHashAfter) {
    return refuse('VAL_SCHEMA_001', 'rosterHashAfter', 'rosterHashAfter does not follow from the operation');
  }
  const remembered = withEnacted(effect.rules, operation, rosterHashBefore);
  if ('violations' in remembered) return remembered;
  return {
    rules: remembered,
    change: {
      txId: transaction.txId,
      kind: KINDS[effect.part === 'proposals' ? 'roster' : effect.part],
      parts: [effect.part],
      operation,
      proposals: [],
      setChanges: countSetChanges(rules, effect.rules),
    },
  };
}

/** Updates of a policy name their version and never fit twice; every other operation is recorded. */
function withEnacted(
  rules: LedgerRules,
  operation: Operation,
  rosterHashBefore: string,
): LedgerRules | Refused {
  const { operationType } = operation;
  if (operationType === 'policy-update' || operationType === 'crypto-policy-update') return rules;
  return remember(rules, operationId(rules.registerId, operation, rosterHashBefore), operation);
}

/** The rules with an operation's id recorded for as long as its approvals could be used. */
export function remember(rules: LedgerRules, id: string, operation: Operation): LedgerRules | Refused {
  const entry: EnactedOperation = {
    operationId: id,
    expiresAt: operationEnd(operation, LONGEST_TTL_DAYS),
  };
  if (rules.enacted.length >= MAX_ENACTED) return refuse('VAL_PERM_018', 'operation');
  return { ...rules, enacted: [...rules.enacted, entry] };
}

/** Applies an operation that carries its approvals in one transaction. */
export function applyOperation(
  rules: LedgerRules,
  transaction: ControlTransaction,
  payload: OperationPayload,
  context: ControlContext,
): Applied | Refused {
  const { operation } = payload;
  const problem =
    judgeProposer(rules, transaction, operation) ??
    judgeOperation(rules, payload, context) ??
    judgeEvidence(rules, operation, context);
  if (problem !== undefined) return problem;
  const applied = enactOperation(rules, transaction, payload, context);
  if ('violations' in applied) return applied;
  const signed = rosterSigners(rules, transaction).map(({ subject }) => ({ did: subject, isApproval: true }));
  const cast = { approvals: operation.approvalSignatures ?? [], signed };
  const votes = countVotes(rules, payload, cast, context.verifier);
  if (!isAccepted(operation, votes)) return refuse('VAL_PERM_010', 'operation.approvalSignatures');
  const required = requiredApprovals(
    rules.policy.governance.quorumFormula,
    eligibleVoters(rules, operation).length,
  );
  if (approvalsAmong(votes) >= required || mayBypass(rules, operation)) return applied;
  const message = `${approvalsAmong(votes)} of ${required} approvals count`;
  return { violations: [validationViolation('VAL_PERM_008', 'operation.approvalSignatures', message)] };
}
