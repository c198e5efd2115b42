import { AppError, isAppError } from '#core/errors/errors.ts';
import { validationViolation } from '#core/errors/validation-codes.ts';
import type { Caller } from '#core/identity/claims.ts';
import { decide } from '#core/identity/policies.ts';
import { quorum } from '#core/ledger/consensus.ts';
import type { Operation } from '#core/ledger/governance/operation.ts';
import { activeMembers, type LedgerRules } from '#core/ledger/governance/rules.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Validators, ValidatorView } from '../../clients/validators.ts';
import { askAll, type FindMembers } from '../../registers/directory/ask.ts';
import type { Register } from '../../registers/state/store.ts';
import { presentOperational } from './present.ts';

export interface OperationalDeps {
  readonly findMembers: FindMembers;
  readonly validators: Pick<Validators, 'view'>;
  readonly clock: Clock;
}

/**
 * The heartbeats known to the members that answer. Throws AppError unavailable VALIDATOR_UNAVAILABLE when none answers.
 */
async function askViews(deps: OperationalDeps, register: Register): Promise<readonly ValidatorView[]> {
  const members = await deps.findMembers(register.registerNo);
  return (await askAll(members, (at) => deps.validators.view(at, register.registerId))).answers;
}

/** The heartbeats known to the members that answer; empty when none is alive. */
export async function viewsOf(deps: OperationalDeps, register: Register): Promise<readonly ValidatorView[]> {
  try {
    return await askViews(deps, register);
  } catch (error) {
    if (isAppError(error, 'unavailable')) return [];
    throw error;
  }
}

/** The active validator that an operation would remove from the set. */
function removedValidatorOf(rules: LedgerRules, operation: Operation): string | undefined {
  const takesOut =
    operation.operationType === 'remove-validator' || operation.operationType === 'suspend-validator';
  if (!takesOut) return undefined;
  const { validatorId } = operation;
  return activeMembers(rules).some((each) => each.validatorId === validatorId) ? validatorId : undefined;
}

/**
 * Refuses a removal or suspension after which fewer members are alive than the new quorum: the register could not seal
 * until one comes back. Liveness is what validators heard recently, which cannot be replayed, so this is judged when
 * the change is requested and never when it is sealed.
 * @throws AppError unprocessable VAL_PERM_011, unavailable VALIDATOR_UNAVAILABLE when no member can be reached
 */
export async function assertStaysOperational(
  deps: OperationalDeps,
  { register, rules }: { readonly register: Register; readonly rules: LedgerRules },
  operation: Operation,
  isForced: boolean,
): Promise<void> {
  const leaver = removedValidatorOf(rules, operation);
  if (leaver === undefined || isForced) return;
  const left = activeMembers(rules).filter(({ validatorId }) => validatorId !== leaver);
  const needed = quorum(left.length, rules.policy.consensus.signatureThresholdMin);
  const { validators } = presentOperational(rules, await askViews(deps, register), deps.clock.nowMs());
  const alive = validators.filter(({ validatorId, status }) => validatorId !== leaver && status === 'active');
  if (left.length === 0 || alive.length >= needed) return;
  const message = `Of the ${left.length} that would be left ${alive.length} are operational, and ${needed} must vote; a system administrator may use force=true`;
  const found = { ...validationViolation('VAL_PERM_011', 'operation.validatorId'), message };
  throw new AppError('unprocessable', 'VAL_PERM_011', message, { violations: [found] });
}

/** `force=true` is effective for system administrators only. */
export function mayForce(caller: Caller, force: boolean): boolean {
  return force && decide('RequireSystemAdmin', caller) === 'allow';
}
