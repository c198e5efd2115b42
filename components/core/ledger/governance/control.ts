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

/** The governance blueprint; the system register shows it to people, the rules are in this folder. */
export const GOVERNANCE_BLUEPRINT = 'register-governance-v1';

/** A control transaction as it is sealed; its signatures are verified by whoever judges the transaction. */
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

/** Where a control transaction is judged: the docket that would seal it. */
export interface ControlContext {
  readonly docketNumber: number;
  /** The docket's timestamp; time is judged by it alone. */
  readonly timestamp: string;
  /** Verifies approvals and proofs of possession. */
  readonly verifier: Verifier;
}

/** What a control transaction does, in the words of notes/ledger.md L-36. */
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

/** What became of a proposal. */
export interface ProposalChange {
  readonly proposal: Omit<OpenProposal, 'status'> & { readonly status: ProposalStatus };
  /** Id of the transaction that changed it; absent when time did. */
  readonly txId?: string | undefined;
}

/** What one control transaction changed. */
export interface RulesChange {
  readonly txId: string;
  readonly kind: ControlKind;
  readonly parts: readonly RulesPart[];
  /** The operation that took effect, if one did. */
  readonly operation?: Operation | undefined;
  /** Proposals that were opened, voted on, enacted, rejected or found expired. */
  readonly proposals: readonly ProposalChange[];
  /** Members of the validator set that it adds, removes or gives another key. */
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

/** How the payload of an action is read, and which operations it may carry. */
export type ControlStage = 'operation' | 'propose' | 'vote' | 'enact' | 'register' | 'metadata';
export interface ControlAction {
  readonly stage: ControlStage;
  /** Undefined: any. */
  readonly operationType?: OperationType | undefined;
}

const operation = (operationType: OperationType): ControlAction => ({ stage: 'operation', operationType });

/** Actions of the governance blueprint: those of the specification, of L-89 and of L-108. */
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

/** The action of a governance transaction; undefined for one that the blueprint does not have. */
export function findControlAction(actionId: string | undefined): ControlAction | undefined {
  return actionId !== undefined && Object.hasOwn(CONTROL_ACTIONS, actionId)
    ? CONTROL_ACTIONS[actionId]
    : undefined;
}

/** Whether a transaction can change the rules of its register; the publication of the blueprint itself does not. */
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

/** The members of the roster that signed; other keys are left out. */
export function rosterSigners(rules: LedgerRules, transaction: ControlTransaction): RosterEntry[] {
  return transaction.signers.flatMap((key) => findRosterKey(rules, key) ?? []);
}

/** Whether only the installation's register-control key signed. */
export function isSystemSigned(rules: LedgerRules, { signers }: ControlTransaction): boolean {
  return signers.length > 0 && signers.every((key) => isSameKey(key, rules.systemKey));
}

/** A control label is granted by its signers: roster or register-control key, each of them. */
export function judgeSigners(rules: LedgerRules, transaction: ControlTransaction): Violation[] {
  const known = transaction.signers.map((key) => {
    if (isSameKey(key, rules.systemKey)) return 'system';
    return findRosterKey(rules, key)?.role;
  });
  if (known.length === 0 || known.includes(undefined))
    return [validationViolation('VAL_PERM_001', 'Signatures')];
  return known.includes('Auditor') ? [validationViolation('VAL_PERM_003', 'Signatures')] : [];
}
