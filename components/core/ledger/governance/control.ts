import { PUBLISH_ACTION } from '../../blueprint/publication.ts';
import type { Verifier } from '../../crypto/verify.ts';
import { scanJson, toValue } from '../../encoding/json.ts';
import { isAppError, type Violation } from '../../errors/errors.ts';
import { validationViolation } from '../../errors/validation-codes.ts';
import type { SealedRecord } from '../record.ts';
import type { Operation, OperationType, ProposalStatus } from './operation.ts';
import {
  findRosterKey,
  isSameKey,
  type LedgerKey,
  type LedgerRules,
  type OpenProposal,
  type RosterEntry,
} from './rules.ts';

/** The governance blueprint. The system register publishes it for readers; the rules are implemented in this folder. */
export const GOVERNANCE_BLUEPRINT = 'register-governance-v1';

/** A control transaction as it is sealed. The caller verifies its signatures. */
export interface ControlTransaction {
  readonly txId: string;
  readonly type: string;
  readonly blueprintId?: string | undefined;
  readonly actionId?: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  /** JSON data; undefined when the bytes are not unambiguous JSON. */
  readonly payload: unknown;
  readonly senderAddress: string;
  readonly signers: readonly LedgerKey[];
  readonly createdAt: string;
}

/** The docket that would seal a control transaction. */
export interface ControlContext {
  readonly docketNumber: number;
  /** The docket's timestamp, the only clock of the rules. */
  readonly timestamp: string;
  /** Verifies approvals and proofs of possession. */
  readonly verifier: Verifier;
}

/** Kinds of control transactions, as the metadata member `transactionType` names them. */
const CONTROL_KINDS = [
  'blueprint-publish',
  'governance',
  'policy-update',
  'crypto-policy-update',
  'metadata-update',
  'validator-register',
  'validator-update',
  'proposal',
] as const;
export type ControlKind = (typeof CONTROL_KINDS)[number];

export type RulesPart = 'register' | 'roster' | 'validators' | 'policy' | 'crypto-policy' | 'proposals';

/** A change of a proposal's status. */
export interface ProposalChange {
  readonly proposal: Omit<OpenProposal, 'status'> & { readonly status: ProposalStatus };
  /** Id of the transaction that changed it; absent when it expired. */
  readonly txId?: string | undefined;
}

/** The effects of one control transaction. */
export interface RulesChange {
  readonly txId: string;
  readonly kind: ControlKind;
  readonly parts: readonly RulesPart[];
  /** The operation that took effect, if any. */
  readonly operation?: Operation | undefined;
  /** Proposals that were opened, voted on, enacted, rejected or expired. */
  readonly proposals: readonly ProposalChange[];
  /** Number of validators that it adds, removes or gives another key. */
  readonly setChanges: number;
}

/** The rules after one transaction. */
export interface Applied {
  readonly rules: LedgerRules;
  readonly change: RulesChange;
}
export interface Refused {
  readonly violations: readonly Violation[];
}

/** How the payload of an action is parsed, and which operations it may carry. */
type ControlStage = 'operation' | 'propose' | 'vote' | 'enact' | 'register' | 'metadata';
export interface ControlAction {
  readonly stage: ControlStage;
  /** Undefined for any operation. */
  readonly operationType?: OperationType | undefined;
}

const operation = (operationType: OperationType): ControlAction => ({ stage: 'operation', operationType });

/** Actions of the governance blueprint: those of the specification, of rosters and of validators. */
export const CONTROL_ACTIONS: Readonly<Record<string, ControlAction>> = {
  'add-member': operation('add-member'),
  'remove-member': operation('remove-member'),
  'transfer-ownership': operation('transfer-ownership'),
  'change-role': operation('change-role'),
  'add-validator': operation('add-validator'),
  'remove-validator': operation('remove-validator'),
  'rotate-validator-key': operation('rotate-validator-key'),
  'suspend-validator': operation('suspend-validator'),
  'policy-update': operation('policy-update'),
  'crypto-policy-update': operation('crypto-policy-update'),
  'control.validator.approve': operation('add-validator'),
  'control.validator.suspend': operation('suspend-validator'),
  'control.validator.remove': operation('remove-validator'),
  'control.policy.update': operation('policy-update'),
  'control.config.update': operation('policy-update'),
  'control.crypto.update': operation('crypto-policy-update'),
  'control.validator.register': { stage: 'register' },
  'control.validator.liveness-violation': { stage: 'propose', operationType: 'suspend-validator' },
  'control.register.updatemetadata': { stage: 'metadata' },
  'control.governance.propose': { stage: 'propose' },
  'control.governance.approve': { stage: 'vote' },
  'control.governance.enact': { stage: 'enact' },
};

/** Finds the action of a governance transaction; undefined for one that the blueprint does not have. */
export function findControlAction(actionId: string | undefined): ControlAction | undefined {
  return actionId !== undefined && Object.hasOwn(CONTROL_ACTIONS, actionId)
    ? CONTROL_ACTIONS[actionId]
    : undefined;
}

/** Whether a transaction can change the rules of its register. The publication of the governance blueprint cannot. */
export function isGovernance(transaction: {
  readonly type: string;
  readonly blueprintId?: string | undefined;
  readonly actionId?: string | undefined;
}): boolean {
  const { type, blueprintId, actionId } = transaction;
  return type === 'Control' && blueprintId === GOVERNANCE_BLUEPRINT && actionId !== PUBLISH_ACTION;
}

/** The control transaction of a sealed record and its payload bytes. */
export function controlTransaction(record: SealedRecord, payload: Uint8Array): ControlTransaction {
  const { txId, type, blueprintId, actionId, metadata, senderAddress, createdAt } = record;
  const signers = record.signatures.map(({ publicKey, algorithm }) => ({ publicKey, algorithm }));
  return {
    txId,
    type,
    blueprintId,
    actionId,
    metadata,
    senderAddress,
    createdAt,
    signers,
    payload: readPayload(payload),
  };
}

function readPayload(payload: Uint8Array): unknown {
  try {
    return toValue(scanJson(payload));
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

/** The members of the roster that signed; other keys are ignored. */
export function rosterSigners(rules: LedgerRules, transaction: ControlTransaction): RosterEntry[] {
  return transaction.signers.flatMap((key) => findRosterKey(rules, key) ?? []);
}

/** Whether only the installation's register-control key signed. */
export function isSystemSigned(rules: LedgerRules, { signers }: ControlTransaction): boolean {
  return signers.length > 0 && signers.every((key) => isSameKey(key, rules.systemKey));
}

/** Judges that each signer may send control transactions: a member of the roster or the register-control key. */
export function judgeSigners(rules: LedgerRules, transaction: ControlTransaction): Violation[] {
  const known = transaction.signers.map((key) => {
    if (isSameKey(key, rules.systemKey)) return 'system';
    return findRosterKey(rules, key)?.role;
  });
  if (known.length === 0 || known.includes(undefined))
    return [validationViolation('VAL_PERM_001', 'Signatures')];
  return known.includes('Auditor') ? [validationViolation('VAL_PERM_003', 'Signatures')] : [];
}
