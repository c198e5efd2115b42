import { z } from 'zod';
import type { Violation } from '../../errors/errors.ts';
import { validationViolation } from '../../errors/validation-codes.ts';
import { maxSetChanges, quorum } from '../consensus.ts';
import { cryptoPolicySchema } from '../control-record.ts';
import {
  type Applied,
  type ControlAction,
  type ControlContext,
  type ControlTransaction,
  findControlAction,
  isGovernance,
  isSystemSigned,
  judgeSigners,
  type ProposalChange,
  type Refused,
  type RulesChange,
} from './control.ts';
import { GOVERNANCE_PAYLOAD_VERSION, operationPayloadSchema, validatorEntrySchema } from './operation.ts';
import { applyOperation, isOver } from './operations.ts';
import { isDevModeOff, updateCryptoPolicy } from './policies.ts';
import {
  enactPayloadSchema,
  enactProposal,
  openProposal,
  voteOnProposal,
  votePayloadSchema,
} from './proposals.ts';
import { refuse } from './roster.ts';
import { activeMembers, findRosterKey, isSameKey, type LedgerRules } from './rules.ts';
import { countSetChanges, registerValidator, withStatus } from './validators.ts';

/** Maximum nesting of objects and arrays in a governance payload. */
const MAX_PAYLOAD_DEPTH = 32;

const version = z.literal(GOVERNANCE_PAYLOAD_VERSION);
const registerId = z.string();

/** Payload of `control.crypto.update` signed by the register-control key: development mode off. */
const cryptoUpdatePayloadSchema = z.strictObject({
  version,
  registerId,
  cryptoPolicy: cryptoPolicySchema,
});

/** Payload of `control.register.updatemetadata`. Absent members stay unchanged. */
const metadataPayloadSchema = z.strictObject({
  version,
  registerId,
  title: z
    .string()
    .min(1)
    .max(128)
    .refine((title) => !/\p{Cc}/u.test(title), 'holds control characters')
    .optional(),
  description: z.string().max(2048).optional(),
  metadata: z
    .record(z.string().min(1).max(64), z.string().max(512))
    .refine((metadata) => Object.keys(metadata).length <= 32, 'has more than 32 members')
    .optional(),
});

/** Payload of `control.validator.register`. */
const registerPayloadSchema = z.strictObject({
  version,
  registerId,
  validatorEntry: validatorEntrySchema,
});

/** Fold of one docket: the rules before it, and the rules after its transactions so far. */
export interface DocketFold {
  readonly before: LedgerRules;
  readonly rules: LedgerRules;
  /** One for each governance transaction, in docket order. */
  readonly changes: readonly RulesChange[];
  /** Proposals that expired with this docket. */
  readonly expired: readonly ProposalChange[];
  /** Validators that were removed because their transition ended. */
  readonly ejected: readonly string[];
}

function shape<T>(schema: z.ZodType<T>, payload: unknown): T | Refused {
  if (!isPlain(payload, MAX_PAYLOAD_DEPTH)) {
    return refuse(
      'VAL_SCHEMA_001',
      'Payload',
      'Payload: is nested too deeply or has a member named __proto__',
    );
  }
  const result = schema.safeParse(payload);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  return refuse('VAL_SCHEMA_001', issue?.path.join('.') || 'Payload', `Payload: ${issue?.message}`);
}

/**
 * Whether data can become part of the rules. The rules contain it some levels deeper, as canonical JSON, and every
 * program that parses them must see the same members.
 */
function isPlain(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (levels === 0 || Object.hasOwn(value, '__proto__')) return false;
  return Object.values(value).every((each) => isPlain(each, levels - 1));
}

function isRefused(value: unknown): value is Refused {
  return typeof value === 'object' && value !== null && 'violations' in value;
}

type ControlStep = (
  rules: LedgerRules,
  transaction: ControlTransaction,
  action: ControlAction,
  context: ControlContext,
) => Applied | Refused;

const STEPS: Readonly<Record<ControlAction['stage'], ControlStep>> = {
  operation(rules, transaction, action, context) {
    if (action.operationType === 'crypto-policy-update' && !hasOperation(transaction)) {
      return turnDevModeOff(rules, transaction);
    }
    const payload = shape(operationPayloadSchema, transaction.payload);
    if (isRefused(payload)) return payload;
    return action.operationType === payload.operation.operationType
      ? applyOperation(rules, transaction, payload, context)
      : refuse('VAL_SCHEMA_001', 'operation.operationType', 'The action is for another operation');
  },
  propose(rules, transaction, action, context) {
    const payload = shape(operationPayloadSchema, transaction.payload);
    if (isRefused(payload)) return payload;
    const { operation } = payload;
    const fits =
      action.operationType === undefined ||
      (operation.operationType === 'suspend-validator' && operation.evidence?.kind === 'missed-slots');
    return fits
      ? openProposal(rules, transaction, payload, context)
      : refuse('VAL_SCHEMA_001', 'operation', 'A liveness violation names missed slots');
  },
  vote(rules, transaction, _action, context) {
    const payload = shape(votePayloadSchema, transaction.payload);
    return isRefused(payload) ? payload : voteOnProposal(rules, transaction, payload, context);
  },
  enact(rules, transaction, _action, context) {
    const payload = shape(enactPayloadSchema, transaction.payload);
    return isRefused(payload) ? payload : enactProposal(rules, transaction, payload, context);
  },
  register(rules, transaction, _action, context) {
    return register(rules, transaction, context);
  },
  metadata(rules, transaction) {
    return updateMetadata(rules, transaction);
  },
};

function hasOperation({ payload }: ControlTransaction): boolean {
  return typeof payload === 'object' && payload !== null && 'operation' in payload;
}

function turnDevModeOff(rules: LedgerRules, transaction: ControlTransaction): Applied | Refused {
  const violations = judgeSigners(rules, transaction);
  if (violations.length > 0) return { violations };
  const payload = shape(cryptoUpdatePayloadSchema, transaction.payload);
  if (isRefused(payload)) return payload;
  if (payload.registerId !== rules.registerId) return refuse('VAL_CHAIN_002', 'registerId');
  const effect = updateCryptoPolicy(rules, payload.cryptoPolicy);
  if (isRefused(effect)) return effect;
  const isAlone =
    isSystemSigned(rules, transaction) && isDevModeOff(rules.cryptoPolicy, payload.cryptoPolicy);
  if (!isAlone) return refuse('VAL_PERM_008', 'Signatures');
  return changed(rules, effect.rules, transaction, { kind: 'crypto-policy-update', part: 'crypto-policy' });
}

/** Changes name, description and metadata. The register service signs it with the register-control key. */
function updateMetadata(rules: LedgerRules, transaction: ControlTransaction): Applied | Refused {
  const violations = judgeSigners(rules, transaction);
  if (violations.length > 0) return { violations };
  if (!isSystemSigned(rules, transaction)) return refuse('VAL_PERM_003', 'Signatures');
  const payload = shape(metadataPayloadSchema, transaction.payload);
  if (isRefused(payload)) return payload;
  if (payload.registerId !== rules.registerId) return refuse('VAL_CHAIN_002', 'registerId');
  const { title, description, metadata } = payload;
  const after = {
    ...rules,
    name: title ?? rules.name,
    description: description ?? rules.description,
    metadata: metadata ?? rules.metadata,
  };
  return changed(rules, after, transaction, { kind: 'metadata-update', part: 'register' });
}

/**
 * Registers a validator: by itself, or by a signer that may send control transactions and has its proof of possession.
 */
function register(
  rules: LedgerRules,
  transaction: ControlTransaction,
  context: ControlContext,
): Applied | Refused {
  const payload = shape(registerPayloadSchema, transaction.payload);
  const entry = isRefused(payload) ? undefined : payload.validatorEntry;
  const isOwn = (key: ControlTransaction['signers'][number]) => entry !== undefined && isSameKey(key, entry);
  const others = transaction.signers.filter((key) => !isOwn(key));
  const known = others.every(
    (key) => isSameKey(key, rules.systemKey) || findRosterKey(rules, key) !== undefined,
  );
  if (transaction.signers.length === 0 || !known) return refuse('VAL_PERM_001', 'Signatures');
  if (isRefused(payload)) return payload;
  if (payload.registerId !== rules.registerId) return refuse('VAL_CHAIN_002', 'registerId');
  const effect = registerValidator(rules, payload.validatorEntry, context);
  if (isRefused(effect)) return effect;
  return changed(rules, effect.rules, transaction, { kind: 'validator-register', part: 'validators' });
}

function changed(
  before: LedgerRules,
  rules: LedgerRules,
  { txId }: ControlTransaction,
  { kind, part }: { kind: RulesChange['kind']; part: RulesChange['parts'][number] },
): Applied {
  const setChanges = countSetChanges(before, rules);
  return { rules, change: { txId, kind, parts: [part], proposals: [], setChanges } };
}

/**
 * Begins a docket and applies what time alone changes. Call it for every docket, also for one without control
 * transactions.
 */
export function beginDocket(rules: LedgerRules, context: ControlContext): DocketFold {
  const due = rules.validators.filter(
    (each) => each.ejectAt !== undefined && each.status === 'Active' && isOver(each.ejectAt, context),
  );
  let after = rules;
  const ejected: string[] = [];
  for (const each of due) {
    const validators = after.validators.map((one) =>
      one === each ? withStatus(one, 'Removed', context.docketNumber + 1) : one,
    );
    const next = { ...after, validators, validatorSetVersion: after.validatorSetVersion + 1 };
    if (judgeSetChange(rules, next).length > 0) break;
    after = next;
    ejected.push(each.validatorId);
  }
  return { before: rules, rules: after, changes: [], expired: [], ejected };
}

/**
 * Judges the limits of one docket: the number of members that change, and the number that remain of the previous set.
 */
function judgeSetChange(before: LedgerRules, after: LedgerRules): Violation[] {
  const changes = countSetChanges(before, after);
  if (changes === 0) return [];
  const old = activeMembers(before).length;
  if (changes > maxSetChanges(old)) return [validationViolation('VAL_PERM_016')];
  const left = activeMembers(after).length;
  const { validators, consensus } = after.policy;
  const least = Math.max(validators.minValidators, quorum(old, consensus.signatureThresholdMin));
  return left < old && left < least ? [validationViolation('VAL_PERM_011')] : [];
}

/**
 * Folds one more control transaction into a docket. Governance transactions change the rules. Other control
 * transactions, such as the publication of a blueprint, only need signers that may send them.
 */
export function foldControl(
  fold: DocketFold,
  transaction: ControlTransaction,
  context: ControlContext,
): DocketFold | Refused {
  if (!isGovernance(transaction)) {
    const violations = judgeSigners(fold.rules, transaction);
    return violations.length > 0 ? { violations } : fold;
  }
  const action = findControlAction(transaction.actionId);
  if (action === undefined) return refuseUnknown(fold.rules, transaction);
  const applied = STEPS[action.stage](fold.rules, transaction, action, context);
  if (isRefused(applied)) return applied;
  const counted = { ...applied.rules, controlCount: applied.rules.controlCount + 1 };
  const violations = judgeSetChange(fold.before, counted);
  if (violations.length > 0) return { violations };
  const { rules, expired } = forgetExpired(counted, context);
  return {
    ...fold,
    rules,
    changes: [...fold.changes, applied.change],
    expired: [...fold.expired, ...expired],
  };
}

function refuseUnknown(rules: LedgerRules, transaction: ControlTransaction): Refused {
  const violations = judgeSigners(rules, transaction);
  return violations.length > 0 ? { violations } : refuse('VAL_SCHEMA_004', 'ActionId');
}

function forgetExpired(
  rules: LedgerRules,
  context: ControlContext,
): { readonly rules: LedgerRules; readonly expired: readonly ProposalChange[] } {
  const over = rules.proposals.filter((each) => isOver(each.expiresAt, context));
  const enacted = rules.enacted.filter((each) => !isOver(each.expiresAt, context));
  const proposals = rules.proposals.filter((each) => !over.includes(each));
  return {
    rules: { ...rules, proposals, enacted },
    expired: over.map((each) => ({ proposal: { ...each, status: 'Expired' } })),
  };
}

/**
 * Judges whether the signers may use the label of a control transaction at all. Registrations and proposals with
 * evidence may come from validators, which only the full judgement decides.
 */
export function judgeControlLabel(rules: LedgerRules, transaction: ControlTransaction): readonly Violation[] {
  const action = isGovernance(transaction) ? findControlAction(transaction.actionId) : undefined;
  if (action?.stage === 'register' || action?.stage === 'propose') return [];
  return judgeSigners(rules, transaction);
}

/** Pure function: the rules after one control transaction, or the reason why a docket may not seal it. */
export function applyControl(
  rules: LedgerRules,
  transaction: ControlTransaction,
  context: ControlContext,
): DocketFold | Refused {
  return foldControl(beginDocket(rules, context), transaction, context);
}

/** The refusal of a docket's control transaction. */
export interface RefusedIn extends Refused {
  readonly txId: string;
}

/**
 * Applies all control transactions of a docket in its order. The changes take effect from the next docket. Without any,
 * the rules remain the same object unless time changed them.
 */
export function applyControls(
  rules: LedgerRules,
  transactions: readonly ControlTransaction[],
  context: ControlContext,
): DocketFold | RefusedIn {
  let fold = beginDocket(rules, context);
  for (const transaction of transactions) {
    const next = foldControl(fold, transaction, context);
    if (isRefused(next)) return { ...next, txId: transaction.txId };
    fold = next;
  }
  return fold;
}
