import type { Register } from '../../api/register.ts';
import type { ValidatorSet } from '../../api/validator-set.ts';
import type { Disruption } from '../outcome.ts';
import type { Aggregate, RegisterChange, RegisterFacts, RegisterPlanInput } from './facts.ts';
import { planMembership } from './membership.ts';
import { describeDifferences, needsTransition, policyDifferences, policyPatch } from './policy.ts';

/** State of one aggregate of a register. */
export interface AggregateState {
  readonly aggregate: Aggregate;
  /** Difference from the desired state, for people; undefined when there is none. */
  readonly difference?: string | undefined;
  /** Change that is requested in this round. */
  readonly change?: RegisterChange | undefined;
  readonly disruption: Disruption;
  /** Why no change is requested despite a difference. */
  readonly waitingFor?: string | undefined;
  /** A person must act. */
  readonly isStalled: boolean;
}

type DesiredChange =
  | { readonly difference: string; readonly change: RegisterChange; readonly disruption?: Disruption }
  | { readonly difference: string; readonly stalledBecause: string };

/** Identity of a change, to recognise a refused one. */
export function changeKey(change: RegisterChange): string {
  return JSON.stringify(change);
}

const operations: Readonly<Record<string, Aggregate>> = {
  'policy-update': 'policy',
  'crypto-policy-update': 'devMode',
  'add-validator': 'validators',
  'remove-validator': 'validators',
  'rotate-validator-key': 'validators',
  'suspend-validator': 'validators',
  'add-member': 'members',
  'remove-member': 'members',
  'change-role': 'members',
  'transfer-ownership': 'members',
};

/** The aggregate that a governance operation changes. */
function aggregateOf(operationType: string): Aggregate | undefined {
  return operations[operationType];
}

/** State of each aggregate of an existing register: difference and pending change. */
export function aggregateStates(input: RegisterPlanInput, facts: RegisterFacts): readonly AggregateState[] {
  const { register, validatorSet, setNames } = input;
  return [
    aggregateState(input, facts, 'metadata', metadataChange(register, facts)),
    aggregateState(input, facts, 'policy', policyChange(register, facts)),
    aggregateState(input, facts, 'devMode', devModeChange(register, facts)),
    aggregateState(input, facts, 'members', memberChange(register, facts)),
    aggregateState(input, facts, 'validators', validatorChange(validatorSet, setNames, facts)),
  ];
}

function aggregateState(
  { refused }: RegisterPlanInput,
  facts: RegisterFacts,
  aggregate: Aggregate,
  desired: DesiredChange | undefined,
): AggregateState {
  if (desired === undefined) return { aggregate, disruption: 'none', isStalled: false };
  const { difference } = desired;
  const waitingFor = pendingChange(facts, aggregate);
  if (waitingFor !== undefined)
    return { aggregate, difference, waitingFor, disruption: 'none', isStalled: false };
  if ('stalledBecause' in desired)
    return { aggregate, difference, waitingFor: desired.stalledBecause, disruption: 'none', isStalled: true };
  const { change, disruption = 'none' } = desired;
  const refusal = refused.get(aggregate);
  if (refusal?.key === changeKey(change)) {
    return { aggregate, difference, waitingFor: refusal.message, disruption: 'none', isStalled: true };
  }
  return { aggregate, difference, change, disruption, isStalled: false };
}

/** Describes the outstanding transaction or the operator's proposal of an aggregate; there is at most one of each. */
function pendingChange(facts: RegisterFacts, aggregate: Aggregate): string | undefined {
  const transaction = facts.outstanding.find((each) => each.aggregate === aggregate);
  if (transaction !== undefined) return `Transaction ${transaction.txId} waits to be sealed`;
  const proposal = facts.proposals.find(
    (each) => each.votedByOperator && aggregateOf(each.operationType) === aggregate,
  );
  if (proposal === undefined) return undefined;
  const { proposalId, votesReceived, votesRequired } = proposal;
  return `Proposal ${proposalId} awaits its quorum: ${votesReceived} of ${votesRequired} votes`;
}

function metadataChange({ spec }: Register, facts: RegisterFacts): DesiredChange | undefined {
  const entries = Object.entries(spec.metadata ?? {}).filter(([key, value]) => facts.metadata[key] !== value);
  const isTitled = spec.title === facts.title;
  const isDescribed = spec.description === undefined || spec.description === (facts.description ?? '');
  if (isTitled && isDescribed && entries.length === 0) return undefined;
  const changes = [
    ...(isTitled ? [] : ['title']),
    ...(isDescribed ? [] : ['description']),
    ...entries.map(([key]) => `metadata.${key}`),
  ];
  const change: RegisterChange = {
    change: 'metadata',
    ...(isTitled ? {} : { title: spec.title }),
    ...(isDescribed ? {} : { description: spec.description }),
    // the ledger replaces the metadata as a whole
    ...(entries.length === 0 ? {} : { metadata: { ...facts.metadata, ...spec.metadata } }),
  };
  return { difference: `Change ${changes.join(', ')}`, change };
}

function policyChange({ spec }: Register, { policy }: RegisterFacts): DesiredChange | undefined {
  const differences = policyDifferences(spec.policy, policy);
  if (differences.length === 0) return undefined;
  const transitionMode = spec.transitionMode === 'Immediate' ? 'immediate' : 'grace-period';
  const change: RegisterChange = {
    change: 'policy',
    policy: policyPatch(differences),
    ...(needsTransition(differences) ? { transitionMode } : {}),
  };
  return { difference: `Change the policy: ${describeDifferences(differences)}`, change };
}

function devModeChange({ spec }: Register, facts: RegisterFacts): DesiredChange | undefined {
  if (spec.devMode === facts.devMode) return undefined;
  if (!spec.devMode) return { difference: 'Switch development mode off', change: { change: 'devModeOff' } };
  const stalledBecause = 'Development mode cannot be switched on again; write devMode: false';
  return { difference: 'Development mode is off in the ledger', stalledBecause };
}

/**
 * Admins who had not signed at the genesis are added through governance. Once all of them are members, the roster belongs
 * to its members: an admin whom they remove is not added again.
 */
function memberChange({ spec, status }: Register, { roster }: RegisterFacts): DesiredChange | undefined {
  const isSettled = status.conditions?.some(
    ({ type, status: holds }) => type === 'AttestationsComplete' && holds === 'True',
  );
  if (isSettled === true) return undefined;
  const missing = spec.admins?.find(
    ({ walletAddress }) => !roster.some((entry) => entry.walletAddress === walletAddress),
  );
  if (missing === undefined) return undefined;
  const { walletAddress, role } = missing;
  const change: RegisterChange = { change: 'addMember', walletAddress, role };
  return { difference: `Add ${walletAddress} to the roster as ${role}`, change };
}

function validatorChange(
  set: ValidatorSet | undefined,
  setNames: readonly string[],
  facts: RegisterFacts,
): DesiredChange | undefined {
  if (set === undefined) return undefined;
  const { next, blocked } = planMembership(set, setNames, facts);
  if (blocked !== undefined) return { difference: blocked, stalledBecause: blocked };
  if (next === undefined) return undefined;
  const { change, validatorId, summary } = next;
  return { difference: summary, change: { change, validatorId } };
}
