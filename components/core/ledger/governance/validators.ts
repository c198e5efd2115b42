import { decodeBase64Any } from '../../encoding/base64.ts';
import { isAppError } from '../../errors/errors.ts';
import { MAX_VALIDATORS } from '../control-record.ts';
import { verifyPossession } from '../possession.ts';
import type { ControlContext, Refused } from './control.ts';
import type { Operation, ValidatorEntry } from './operation.ts';
import { type Effect, refuse } from './roster.ts';
import { activeMembers, isSameKey, type LedgerRules, type LedgerValidator } from './rules.ts';

type OperationOf<T extends Operation['operationType']> = Extract<Operation, { operationType: T }>;

/** Maximum of pending registrations, and of removed validators that are remembered, on one register. */
const MAX_PENDING = 100;
const MAX_REMOVED = 100;

function find(rules: LedgerRules, validatorId: string): LedgerValidator | undefined {
  return rules.validators.find((each) => each.validatorId === validatorId);
}

function withValidators(rules: LedgerRules, validators: readonly LedgerValidator[]): Effect {
  const changed = { ...rules, validators: forgetRemoved(validators) };
  return { rules: { ...changed, validatorSetVersion: rules.validatorSetVersion + 1 }, part: 'validators' };
}

/** Drops the oldest removed validators beyond the limit. */
function forgetRemoved(validators: readonly LedgerValidator[]): LedgerValidator[] {
  const removed = validators.filter((each) => each.status === 'Removed');
  const forgotten = new Set(
    removed
      .toSorted((left, right) => left.effectiveFromDocket - right.effectiveFromDocket)
      .slice(0, Math.max(0, removed.length - MAX_REMOVED)),
  );
  return validators.filter((each) => !forgotten.has(each));
}

function replaced(rules: LedgerRules, old: LedgerValidator, next: LedgerValidator): Effect {
  return withValidators(
    rules,
    rules.validators.map((each) => (each === old ? next : each)),
  );
}

/** Judges the key of a candidate: Ed25519, unused on the register, with a valid proof of possession. */
function judgeKey(rules: LedgerRules, entry: ValidatorEntry, context: ControlContext): Refused | undefined {
  if (entry.algorithm !== 'ED25519') {
    return refuse('VAL_SIG_001', 'publicKey', 'Keys of validators are Ed25519');
  }
  const other = rules.validators.find(
    (each) => isSameKey(each, entry) && each.validatorId !== entry.validatorId,
  );
  if (other !== undefined) {
    return refuse('VAL_PERM_017', 'publicKey', `The key is that of ${other.validatorId}`);
  }
  const isProven = provesPossession(rules.registerId, entry, context);
  return isProven ? undefined : refuse('VAL_SIG_002', 'proofOfPossession');
}

function provesPossession(registerId: string, entry: ValidatorEntry, { verifier }: ControlContext): boolean {
  try {
    const signature = decodeBase64Any(entry.proofOfPossession);
    return verifyPossession(verifier, { ...entry, registerId }, signature);
  } catch (error) {
    if (isAppError(error, 'invalid')) return false;
    throw error;
  }
}

function judgeRoom(rules: LedgerRules): Refused | undefined {
  const { maxValidators } = rules.policy.validators;
  const most = Math.min(maxValidators, MAX_VALIDATORS);
  return activeMembers(rules).length < most
    ? undefined
    : refuse('VAL_POLICY_006', 'validatorEntry', `The register has at most ${most} validators`);
}

/** `control.validator.register`: active at once on a public register, else pending approval. */
export function registerValidator(
  rules: LedgerRules,
  entry: ValidatorEntry,
  context: ControlContext,
): Effect | Refused {
  const isPublic = rules.policy.validators.registrationMode === 'public';
  const known = find(rules, entry.validatorId);
  const mayEnter = known === undefined || (isPublic && known.status === 'Pending');
  if (!mayEnter || (known !== undefined && !isSameKey(known, entry))) {
    return refuse('VAL_PERM_017', 'validatorId');
  }
  const problem = judgeKey(rules, entry, context) ?? (isPublic ? judgeRoom(rules) : judgeQueue(rules));
  if (problem !== undefined) return problem;
  const { validatorId, publicKey, algorithm, proofOfPossession } = entry;
  const next = {
    validatorId,
    publicKey,
    algorithm,
    status: isPublic ? 'Active' : 'Pending',
    proofOfPossession,
    registeredAt: known?.registeredAt ?? context.timestamp,
    effectiveFromDocket: context.docketNumber + 1,
  } as const;
  return known === undefined
    ? withValidators(rules, [...rules.validators, next])
    : replaced(rules, known, next);
}

function judgeQueue(rules: LedgerRules): Refused | undefined {
  const waiting = rules.validators.filter((each) => each.status === 'Pending').length;
  return waiting < MAX_PENDING ? undefined : refuse('VAL_PERM_018', 'validatorId');
}

/**
 * Approves a validator: a pending one with the same key, a suspended one, one that joined in public mode without
 * approval, or a new one.
 */
export function addValidator(
  rules: LedgerRules,
  operation: OperationOf<'add-validator'>,
  context: ControlContext,
): Effect | Refused {
  const { validatorEntry: entry, proposerDid } = operation;
  const known = find(rules, entry.validatorId);
  const waits = known?.status === 'Pending' || known?.status === 'Suspended';
  if (waits && !isSameKey(known, entry)) return refuse('VAL_PERM_017', 'operation.validatorEntry.publicKey');
  if (known?.status === 'Active' && (known.approvedBy !== undefined || !isSameKey(known, entry))) {
    return refuse('VAL_PERM_017', 'operation.validatorEntry.validatorId');
  }
  const problem =
    judgeKey(rules, entry, context) ?? (known?.status === 'Active' ? undefined : judgeRoom(rules));
  if (problem !== undefined) return problem;
  const { validatorId, publicKey, algorithm, proofOfPossession } = entry;
  const next = {
    validatorId,
    publicKey,
    algorithm,
    status: 'Active',
    proofOfPossession,
    registeredAt: known?.registeredAt ?? context.timestamp,
    approvedAt: context.timestamp,
    approvedBy: proposerDid,
    effectiveFromDocket: known?.status === 'Active' ? known.effectiveFromDocket : context.docketNumber + 1,
  } as const;
  return known === undefined
    ? withValidators(rules, [...rules.validators, next])
    : replaced(rules, known, next);
}

/** Removes a validator, or rejects a pending one. */
export function removeValidator(
  rules: LedgerRules,
  { validatorId }: OperationOf<'remove-validator'>,
  { docketNumber }: ControlContext,
): Effect | Refused {
  const known = find(rules, validatorId);
  if (known === undefined || known.status === 'Removed') {
    return refuse('VAL_PERM_017', 'operation.validatorId');
  }
  return replaced(rules, known, withStatus(known, 'Removed', docketNumber + 1));
}

/** Removes an active validator from the set until it is approved again. */
export function suspendValidator(
  rules: LedgerRules,
  { validatorId }: OperationOf<'suspend-validator'>,
  { docketNumber }: ControlContext,
): Effect | Refused {
  const known = find(rules, validatorId);
  if (known?.status !== 'Active') return refuse('VAL_PERM_017', 'operation.validatorId');
  return replaced(rules, known, withStatus(known, 'Suspended', docketNumber + 1));
}

/** Replaces the key of an active validator. Only the new key counts from the next docket on. */
export function rotateValidatorKey(
  rules: LedgerRules,
  { validatorEntry: entry }: OperationOf<'rotate-validator-key'>,
  context: ControlContext,
): Effect | Refused {
  const known = find(rules, entry.validatorId);
  if (known?.status !== 'Active' || isSameKey(known, entry)) {
    return refuse('VAL_PERM_017', 'operation.validatorEntry');
  }
  const problem = judgeKey(rules, entry, context);
  if (problem !== undefined) return problem;
  const { publicKey, algorithm, proofOfPossession } = entry;
  const effectiveFromDocket = context.docketNumber + 1;
  return replaced(rules, known, { ...known, publicKey, algorithm, proofOfPossession, effectiveFromDocket });
}

/** Marks or clears the removal of validators without approval after a change from public to consent. */
export function withEjections(rules: LedgerRules, ejectAt: string | undefined): LedgerRules {
  const validators = rules.validators.map((each) => {
    const { ejectAt: _earlier, ...rest } = each;
    const isDue = each.status === 'Active' && each.approvedBy === undefined && ejectAt !== undefined;
    return isDue ? { ...rest, ejectAt } : rest;
  });
  return { ...rules, validators };
}

/** The validator with another status, effective from a docket on. */
export function withStatus(
  validator: LedgerValidator,
  status: LedgerValidator['status'],
  effectiveFromDocket: number,
): LedgerValidator {
  const { ejectAt: _ejectAt, ...rest } = validator;
  return { ...rest, status, effectiveFromDocket };
}

/** Number of members in which two sets differ: added, removed or with another key. */
export function countSetChanges(before: LedgerRules, after: LedgerRules): number {
  const old = activeMembers(before);
  const now = activeMembers(after);
  const kept = now.filter((member) => old.some((each) => each.validatorId === member.validatorId));
  const rekeyed = kept.filter((member) => !old.some((each) => isSameKey(each, member))).length;
  return old.length - kept.length + (now.length - kept.length) + rekeyed;
}
