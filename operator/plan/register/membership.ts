import { quorum } from '#core/ledger/consensus.ts';
import { findOrdinal } from '../../api/names.ts';
import type { ValidatorSet } from '../../api/validator-set.ts';
import type { RegisterFacts, ValidatorFacts } from './facts.ts';
import { policyNumber } from './policy.ts';

/** Plan from the validators of a register to the members of its set. */
interface MembershipPlan {
  /** The next change; one at a time. */
  readonly next?: {
    readonly change: 'addValidator' | 'removeValidator';
    readonly validatorId: string;
    /** Description with the arithmetic that proves it safe. */
    readonly summary: string;
  };
  /** Why the next change is not made. */
  readonly blocked?: string;
  /** Number of remaining changes. */
  readonly remaining: number;
}

const usablePhases = new Set(['KeyReady', 'Registered', 'PendingApproval', 'Syncing', 'Active']);
const PREFIX = 'validator-';

/** Running members of a set with a key, lowest ordinal first. */
export function usableMembers(set: ValidatorSet): readonly string[] {
  const members = set.status.members ?? [];
  return members
    .filter(({ phase, ready, ordinal }) => {
      const isWanted = (ordinal ?? set.spec.replicas) < set.spec.replicas;
      return isWanted && ready !== false && usablePhases.has(phase ?? '');
    })
    .toSorted((left, right) => (left.ordinal ?? 0) - (right.ordinal ?? 0))
    .flatMap(({ validatorId }) => validatorId ?? []);
}

/** Ordinal of a validator within a set; undefined for a validator outside it. */
function ordinalIn(setName: string, validatorId: string): number | undefined {
  return validatorId.startsWith(PREFIX) ? findOrdinal(setName, validatorId.slice(PREFIX.length)) : undefined;
}

/**
 * Plans one change of the validators of a register towards the members of its set. New members are added before old ones
 * are removed. A member is not removed if the others have no quorum.
 * @param setNames sets of the namespace; validators of other sets are never removed
 */
export function planMembership(
  set: ValidatorSet,
  setNames: readonly string[],
  facts: RegisterFacts,
): MembershipPlan {
  if (set.spec.suspend) return { remaining: 0 };
  const present = facts.validators.members.filter(
    ({ status }) => status === 'Active' || status === 'Suspended',
  );
  const ids = new Set(present.map(({ validatorId }) => validatorId));
  const missing = set.spec.registration.autoApprove
    ? usableMembers(set).filter((validatorId) => !ids.has(validatorId))
    : [];
  const surplus = surplusMembers(set, setNames, present);
  const remaining = missing.length + surplus.length;
  const [added] = missing;
  const [removed] = surplus;
  const active = present.filter(({ status }) => status === 'Active');
  const maxValidators = policyNumber(facts.policy, 'validators.maxValidators', 100);
  if (added !== undefined && (active.length < maxValidators || removed === undefined)) {
    return planAddition(added, active.length, { facts, maxValidators, remaining });
  }
  if (removed !== undefined) return planRemoval(removed, active, { facts, remaining });
  return { remaining: 0 };
}

interface ChangeContext {
  readonly facts: RegisterFacts;
  readonly remaining: number;
}

function planAddition(
  validatorId: string,
  size: number,
  { facts, maxValidators, remaining }: ChangeContext & { readonly maxValidators: number },
): MembershipPlan {
  if (size >= maxValidators) {
    const blocked = `${validatorId} cannot be added: validators.maxValidators of the policy is ${maxValidators}; raise it`;
    return { blocked, remaining };
  }
  const summary = `Add ${validatorId}: ${arithmetic(size, size + 1, facts)}`;
  return { next: { change: 'addValidator', validatorId, summary }, remaining };
}

function planRemoval(
  surplus: ValidatorFacts,
  active: readonly ValidatorFacts[],
  { facts, remaining }: ChangeContext,
): MembershipPlan {
  const { validatorId } = surplus;
  const staying = active.filter((each) => each !== surplus);
  const size = staying.length;
  const minValidators = policyNumber(facts.policy, 'validators.minValidators', 1);
  if (size < minValidators) {
    const blocked = `${validatorId} cannot be removed: validators.minValidators of the policy is ${minValidators}; lower it or raise replicas`;
    return { blocked, remaining };
  }
  const needed = quorum(size, thresholdOf(facts));
  const operational = staying.filter((each) => each.operational).length;
  if (operational < needed) {
    const blocked = `${validatorId} cannot be removed: without it ${operational} of ${size} validators answer and ${needed} must agree; bring back the others`;
    return { blocked, remaining };
  }
  const summary = `Remove ${validatorId}: ${arithmetic(active.length, size, facts)}, ${operational} answer`;
  return { next: { change: 'removeValidator', validatorId, summary }, remaining };
}

function thresholdOf({ policy }: RegisterFacts): number {
  return policyNumber(policy, 'consensus.signatureThresholdMin', 1);
}

/** `4 -> 5 validators, quorum 3 -> 4`. */
function arithmetic(from: number, to: number, facts: RegisterFacts): string {
  const threshold = thresholdOf(facts);
  return `${from} -> ${to} validators, quorum ${quorum(from, threshold)} -> ${quorum(to, threshold)}`;
}

/** Surplus members in the order of removal: unresponsive ones first, then by descending ordinal. */
function surplusMembers(
  set: ValidatorSet,
  setNames: readonly string[],
  present: readonly ValidatorFacts[],
): readonly ValidatorFacts[] {
  const { name } = set.metadata;
  const { replicas } = set.spec;
  const ordinals = present.flatMap(({ validatorId }) => ordinalIn(name, validatorId) ?? []);
  const isComplete = ordinals.filter((ordinal) => ordinal < replicas).length >= replicas;
  const isSurplus = ({ validatorId }: ValidatorFacts): boolean => {
    const own = ordinalIn(name, validatorId);
    if (own !== undefined) return own >= replicas;
    // members of another set are removed once all members of the new set are added
    return isComplete && setNames.some((each) => ordinalIn(each, validatorId) !== undefined);
  };
  const order = ({ validatorId }: ValidatorFacts): number => Number(/\d+$/.exec(validatorId)?.[0] ?? 0);
  return present
    .filter(isSurplus)
    .toSorted(
      (left, right) => Number(left.operational) - Number(right.operational) || order(right) - order(left),
    );
}
