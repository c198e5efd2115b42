import {
  formatLedgerTimestamp,
  parseTimestamp,
  TICKS_PER_SECOND,
  ticksToMicros,
} from '../../encoding/timestamp.ts';
import { isAppError, type Violation } from '../../errors/errors.ts';
import { validationViolation } from '../../errors/validation-codes.ts';
import type { CryptoPolicy } from '../control-record.ts';
import { findDeadlock, parsePolicy, type RegisterPolicy } from '../policy.ts';
import { type ControlContext, GOVERNANCE_BLUEPRINT, type Refused } from './control.ts';
import type { Operation } from './operation.ts';
import { type Effect, refuse } from './roster.ts';
import { activeMembers, type LedgerRules, votersOf } from './rules.ts';
import { withEjections } from './validators.ts';

type OperationOf<T extends Operation['operationType']> = Extract<Operation, { operationType: T }>;

/** Replaces the policy and stamps it with the docket. The list of approved validators is never part of an update. */
export function updatePolicy(
  rules: LedgerRules,
  operation: OperationOf<'policy-update'>,
  context: ControlContext,
): Effect | Refused {
  const read = readPolicy(operation.policy);
  if ('violations' in read) return read;
  const { parsed } = read;
  const problem = judgePolicy(rules, parsed, operation.transitionMode);
  if (problem !== undefined) return problem;
  const policy: RegisterPolicy = {
    ...parsed,
    validators: {
      ...parsed.validators,
      approvedValidators: rules.policy.validators.approvedValidators,
    },
    updatedAt: context.timestamp,
    updatedBy: operation.proposerDid,
  };
  const changed = { ...rules, policy };
  return { rules: withTransition(rules, changed, operation.transitionMode, context), part: 'policy' };
}

function readPolicy(value: unknown): { readonly parsed: RegisterPolicy } | Refused {
  try {
    return { parsed: parsePolicy(value) };
  } catch (error) {
    if (!isAppError(error)) throw error;
    const first = error.violations?.[0];
    return refuse('VAL_POLICY_005', `operation.${first?.field ?? 'policy'}`, error.message);
  }
}

function judgePolicy(
  rules: LedgerRules,
  next: RegisterPolicy,
  transitionMode: string | undefined,
): Refused | undefined {
  if (next.version !== rules.policy.version + 1) return refuse('VAL_POLICY_004', 'operation.policy.version');
  if (next.governance.blueprintVersion !== GOVERNANCE_BLUEPRINT) {
    return refuse('VAL_POLICY_005', 'operation.policy.governance.blueprintVersion');
  }
  const deadlock = findDeadlock(next);
  if (deadlock !== undefined) {
    const message = `Less than ${deadlock.least} would stop the register for good`;
    return refuse('VAL_POLICY_005', `operation.policy.${deadlock.field}`, message);
  }
  const members = activeMembers(rules).length;
  const { minValidators, maxValidators } = next.validators;
  if (members < minValidators || members > maxValidators) {
    return refuse('VAL_POLICY_006', 'operation.policy.validators');
  }
  return isClosing(rules, next) && transitionMode === undefined
    ? refuse('VAL_POLICY_005', 'operation.transitionMode', 'A change to consent needs a transitionMode')
    : undefined;
}

function isClosing(rules: LedgerRules, next: RegisterPolicy): boolean {
  return (
    rules.policy.validators.registrationMode === 'public' && next.validators.registrationMode === 'consent'
  );
}

/** Adds the end of the grace period: one operational TTL after the docket that brings the policy. */
function withTransition(
  before: LedgerRules,
  after: LedgerRules,
  transitionMode: string | undefined,
  { timestamp }: ControlContext,
): LedgerRules {
  if (after.policy.validators.registrationMode === 'public') return withEjections(after, undefined);
  if (!isClosing(before, after.policy)) return after;
  const graceSeconds = transitionMode === 'immediate' ? 0 : after.policy.validators.operationalTtlSeconds;
  return withEjections(after, later(timestamp, graceSeconds));
}

/** A ledger timestamp some seconds later. */
function later(timestamp: string, seconds: number): string {
  const ticks = parseTimestamp(timestamp) + BigInt(seconds) * TICKS_PER_SECOND;
  return formatLedgerTimestamp(ticksToMicros(ticks));
}

/** Replaces the crypto policy. Development mode cannot be switched on again (VAL_POLICY_003). */
export function updateCryptoPolicy(rules: LedgerRules, next: CryptoPolicy): Effect | Refused {
  const { cryptoPolicy } = rules;
  if (next.devMode && !cryptoPolicy.devMode) return refuse('VAL_POLICY_003', 'cryptoPolicy.devMode');
  if (next.version !== cryptoPolicy.version + 1) return refuse('VAL_POLICY_004', 'cryptoPolicy.version');
  const accepted = new Set<string>(next.acceptedSignatureAlgorithms);
  if (!next.requiredSignatureAlgorithms.every((each) => accepted.has(each))) {
    return refuse('VAL_POLICY_005', 'cryptoPolicy.requiredSignatureAlgorithms');
  }
  if (!votersOf(rules).every(({ algorithm }) => acceptsAlgorithms(next, [algorithm]))) {
    return refuse('VAL_POLICY_007', 'cryptoPolicy.acceptedSignatureAlgorithms');
  }
  return { rules: { ...rules, cryptoPolicy: next }, part: 'crypto-policy' };
}

/**
 * Whether a change does nothing but switch development mode off: the one change that the register-control key may make
 * alone.
 */
export function isDevModeOff(before: CryptoPolicy, after: CryptoPolicy): boolean {
  const { version: _was, effectiveFrom: _since, devMode: wasOn, ...kept } = before;
  const { version: _is, effectiveFrom: _from, devMode: isOn, ...now } = after;
  return wasOn && !isOn && isSameJson(kept, now);
}

function isSameJson(
  left: Readonly<Record<string, unknown>>,
  right: Readonly<Record<string, unknown>>,
): boolean {
  return Object.keys(left).every((name) => JSON.stringify(left[name]) === JSON.stringify(right[name]));
}

/** Whether a crypto policy accepts a transaction that is signed with these algorithms; warnings do not count. */
export function acceptsAlgorithms(policy: CryptoPolicy, algorithms: readonly string[]): boolean {
  if (policy.enforcementMode === 'Permissive') return true;
  const accepted: readonly string[] = policy.acceptedSignatureAlgorithms;
  return (
    algorithms.every((each) => accepted.includes(each)) &&
    policy.requiredSignatureAlgorithms.every((each) => algorithms.includes(each))
  );
}

/**
 * Judges the algorithms of a transaction's signatures by a crypto policy. Strict mode refuses algorithms that are not
 * accepted, and transactions without a required algorithm. Deprecated algorithms give violations of severity Warning.
 */
export function judgeCrypto(policy: CryptoPolicy, algorithms: readonly string[]): Violation[] {
  const warned = policy.deprecatedAlgorithms.filter((each) => algorithms.includes(each));
  const found: Violation[] = warned.map((each) => ({
    code: 'VAL_POLICY_001',
    message: `${each} is deprecated on this register`,
    field: 'Signatures',
    severity: 'Warning',
  }));
  if (policy.enforcementMode === 'Permissive') return found;
  const accepted: readonly string[] = policy.acceptedSignatureAlgorithms;
  if (!algorithms.every((each) => accepted.includes(each))) {
    found.unshift(validationViolation('VAL_POLICY_001', 'Signatures'));
  }
  if (!policy.requiredSignatureAlgorithms.every((each) => algorithms.includes(each))) {
    found.push(validationViolation('VAL_POLICY_002', 'Signatures'));
  }
  return found;
}
