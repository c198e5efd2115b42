import { walletAddress } from '../../crypto/address.ts';
import { parsePublicKey } from '../../crypto/public-key.ts';
import { validationViolation } from '../../errors/validation-codes.ts';
import { MAX_ROSTER } from '../control-record.ts';
import { memberDid } from '../did.ts';
import type { ControlContext, Refused, RulesPart } from './control.ts';
import type { Operation } from './operation.ts';
import { findRosterEntry, type LedgerRules, type RosterEntry } from './rules.ts';

/** The rules after an operation, and the members that it touched. */
export interface Effect {
  readonly rules: LedgerRules;
  readonly part: RulesPart;
}

type OperationOf<T extends Operation['operationType']> = Extract<Operation, { operationType: T }>;

/** A refusal with one violation. */
export function refuse(...found: Parameters<typeof validationViolation>): Refused {
  return { violations: [validationViolation(...found)] };
}

function withRoster(rules: LedgerRules, roster: readonly RosterEntry[]): Effect {
  return { rules: { ...rules, roster, rosterVersion: rules.rosterVersion + 1 }, part: 'roster' };
}

/** Adds a member with its key. A second owner is refused, because ownership is transferred. */
export function addMember(
  rules: LedgerRules,
  operation: OperationOf<'add-member'>,
  context: ControlContext,
): Effect | Refused {
  const { targetDid: subject, targetRole: role, targetKey } = operation;
  const { publicKey, algorithm } = targetKey;
  if (role === 'Owner') return refuse('VAL_PERM_006', 'operation.targetRole');
  if (memberDid(walletAddress(algorithm, parsePublicKey(algorithm, publicKey))) !== subject) {
    return refuse('VAL_SIG_003', 'operation.targetKey', 'The key is not that of the member');
  }
  if (findRosterEntry(rules, subject) !== undefined) {
    return refuse('VAL_PERM_018', 'operation.targetDid', 'The member is on the roster already');
  }
  if (rules.roster.length >= MAX_ROSTER) {
    return refuse('VAL_PERM_018', 'operation.targetDid', `A roster has at most ${MAX_ROSTER} members`);
  }
  const entry = { role, subject, publicKey, algorithm, grantedAt: context.timestamp };
  return withRoster(rules, [...rules.roster, entry]);
}

/** Removes a member. The owner cannot be removed before ownership is transferred. */
export function removeMember(
  rules: LedgerRules,
  { targetDid }: OperationOf<'remove-member'>,
): Effect | Refused {
  const target = findRosterEntry(rules, targetDid);
  if (target === undefined) return refuse('VAL_PERM_004', 'operation.targetDid');
  if (target.role === 'Owner') return refuse('VAL_PERM_005', 'operation.targetDid');
  return withRoster(
    rules,
    rules.roster.filter((entry) => entry !== target),
  );
}

/** Changes the role of a member. Ownership is neither given nor taken this way. */
export function changeRole(
  rules: LedgerRules,
  operation: OperationOf<'change-role'>,
  context: ControlContext,
): Effect | Refused {
  const { targetDid, targetRole: role } = operation;
  const target = findRosterEntry(rules, targetDid);
  if (target === undefined) return refuse('VAL_PERM_004', 'operation.targetDid');
  if (target.role === 'Owner') return refuse('VAL_PERM_005', 'operation.targetDid');
  if (role === 'Owner' || role === target.role) return refuse('VAL_PERM_006', 'operation.targetRole');
  return withRoster(rules, withRole(rules, target, role, context));
}

/** Makes an admin the owner and the owner an admin. */
export function transferOwnership(
  rules: LedgerRules,
  operation: OperationOf<'transfer-ownership'>,
  context: ControlContext,
): Effect | Refused {
  const target = findRosterEntry(rules, operation.targetDid);
  const owner = rules.roster.find((entry) => entry.role === 'Owner');
  if (target === undefined || owner === undefined) return refuse('VAL_PERM_004', 'operation.targetDid');
  if (target.role !== 'Admin') {
    return refuse('VAL_PERM_006', 'operation.targetDid', 'Only an Admin can become the owner');
  }
  const demoted = withRole(rules, owner, 'Admin', context);
  return withRoster(
    rules,
    demoted.map((entry) =>
      entry === target ? { ...entry, role: 'Owner', grantedAt: context.timestamp } : entry,
    ),
  );
}

function withRole(
  rules: LedgerRules,
  target: RosterEntry,
  role: RosterEntry['role'],
  { timestamp }: ControlContext,
): RosterEntry[] {
  return rules.roster.map((entry) => (entry === target ? { ...entry, role, grantedAt: timestamp } : entry));
}
