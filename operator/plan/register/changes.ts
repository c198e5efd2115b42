import type { Register } from '../../api/register.ts';
import type { ValidatorSet } from '../../api/validator-set.ts';
import type { Disruption } from '../outcome.ts';
import type { Aggregate, RegisterChange, RegisterFacts, RegisterWorld } from './facts.ts';
import { planMembership } from './membership.ts';
import { describeDifferences, needsTransition, policyDifferences, policyPatch } from './policy.ts';

/** Where one aggregate of a register stands. */
export interface AggregateStanding {
  readonly aggregate: Aggregate;
  /** What is not as wanted, for people; undefined when all is. */
  readonly differs?: string | undefined;
  /** What the ledger is asked for in this round. */
  readonly change?: RegisterChange | undefined;
  readonly disrupts: Disruption;
  /** Why nothing is asked for although something is not as wanted. */
  readonly waits?: string | undefined;
  /** Nothing goes on until somebody acts. */
  readonly isStuck: boolean;
}

type Wish =
  | { readonly differs: string; readonly change: RegisterChange; readonly disrupts?: Disruption }
  | { readonly differs: string; readonly stuck: string };

/** Identity of a change, to know one that was refused again. */
export function wishKey(change: RegisterChange): string {
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
export function aggregateOf(operationType: string): Aggregate | undefined {
  return operations[operationType];
}

/** Each aggregate of a register that exists: what is wanted of it and what is under way. */
export function standings(world: RegisterWorld, facts: RegisterFacts): readonly AggregateStanding[] {
  const { register, validatorSet, setNames } = world;
  return [
    standing(world, facts, 'metadata', metadataWish(register, facts)),
    standing(world, facts, 'policy', policyWish(register, facts)),
    standing(world, facts, 'devMode', devModeWish(register, facts)),
    standing(world, facts, 'members', memberWish(register, facts)),
    standing(world, facts, 'validators', validatorWish(validatorSet, setNames, facts)),
  ];
}

function standing(
  { refused }: RegisterWorld,
  facts: RegisterFacts,
  aggregate: Aggregate,
  wish: Wish | undefined,
): AggregateStanding {
  if (wish === undefined) return { aggregate, disrupts: 'none', isStuck: false };
  const { differs } = wish;
  const waits = whatIsUnderWay(facts, aggregate);
  if (waits !== undefined) return { aggregate, differs, waits, disrupts: 'none', isStuck: false };
  if ('stuck' in wish) return { aggregate, differs, waits: wish.stuck, disrupts: 'none', isStuck: true };
  const { change, disrupts = 'none' } = wish;
  const refusal = refused.get(aggregate);
  if (refusal?.wish === wishKey(change)) {
    return { aggregate, differs, waits: refusal.message, disrupts: 'none', isStuck: true };
  }
  return { aggregate, differs, change, disrupts, isStuck: false };
}

/** At most one transaction of an aggregate is outstanding, and at most one proposal of ours. */
function whatIsUnderWay(facts: RegisterFacts, aggregate: Aggregate): string | undefined {
  const transaction = facts.outstanding.find((each) => each.aggregate === aggregate);
  if (transaction !== undefined) return `Transaction ${transaction.txId} waits to be sealed`;
  const proposal = facts.proposals.find(
    (each) => each.votedByOperator && aggregateOf(each.operationType) === aggregate,
  );
  if (proposal === undefined) return undefined;
  const { proposalId, votesReceived, votesRequired } = proposal;
  return `Proposal ${proposalId} awaits its quorum: ${votesReceived} of ${votesRequired} votes`;
}

function metadataWish({ spec }: Register, facts: RegisterFacts): Wish | undefined {
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
    // the ledger takes it as a whole
    ...(entries.length === 0 ? {} : { metadata: { ...facts.metadata, ...spec.metadata } }),
  };
  return { differs: `Change ${changes.join(', ')}`, change };
}

function policyWish({ spec }: Register, { policy }: RegisterFacts): Wish | undefined {
  const differences = policyDifferences(spec.policy, policy);
  if (differences.length === 0) return undefined;
  const transitionMode = spec.transitionMode === 'Immediate' ? 'immediate' : 'grace-period';
  const change: RegisterChange = {
    change: 'policy',
    policy: policyPatch(differences),
    ...(needsTransition(differences) ? { transitionMode } : {}),
  };
  return { differs: `Change the policy: ${describeDifferences(differences)}`, change };
}

function devModeWish({ spec }: Register, facts: RegisterFacts): Wish | undefined {
  if (spec.devMode === facts.devMode) return undefined;
  if (!spec.devMode) return { differs: 'Switch development mode off', change: { change: 'devModeOff' } };
  const stuck = 'Development mode was switched off, for good; write devMode: false';
  return { differs: 'Development mode is off in the ledger', stuck };
}

/**
 * Admins who had not signed when the register began join through the roster. Once all of them are in, the roster
 * belongs to its members: nobody whom they remove is brought back.
 */
function memberWish({ spec, status }: Register, { roster }: RegisterFacts): Wish | undefined {
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
  return { differs: `Take ${walletAddress} into the roster as ${role}`, change };
}

function validatorWish(
  set: ValidatorSet | undefined,
  setNames: readonly string[],
  facts: RegisterFacts,
): Wish | undefined {
  if (set === undefined) return undefined;
  const { next, blocked } = planMembership(set, setNames, facts);
  if (blocked !== undefined) return { differs: blocked, stuck: blocked };
  if (next === undefined) return undefined;
  const { change, validatorId, says } = next;
  return { differs: says, change: { change, validatorId } };
}
