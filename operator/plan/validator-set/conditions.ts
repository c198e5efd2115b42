import { type ConditionUpdate, findCondition } from '../../api/conditions.ts';
import type { Reason } from '../../api/reasons.ts';
import type { MemberFacts, SetFacts } from './facts.ts';
import { equivocators, type MemberStatus } from './member-status.ts';
import {
  type Arithmetic,
  definitelyLost,
  describeTally,
  isImpaired,
  mayStillAnswer,
  nonVotingReason,
  type Tally,
  unreportedRegister,
  withoutProvenQuorum,
} from './quorum.ts';
import type { Growth } from './storage.ts';

/** Input of the conditions. */
interface ConditionInput {
  readonly facts: SetFacts;
  readonly tallied: readonly Tally[];
  readonly arithmetic: Arithmetic;
  readonly growth: Growth;
  readonly members: readonly MemberStatus[];
}

type ConditionState = Omit<ConditionUpdate, 'type'>;
type Rule = (of: ConditionInput) => ConditionState;

const holds = (message: string): ConditionState => ({ status: 'True', reason: 'Reconciled', message });
const fails = (reason: Reason, message: string): ConditionState => ({ status: 'False', reason, message });
const suspended = fails('Suspended', 'The set is suspended');

/** Names of members that do not answer. */
export function silentMembers(members: readonly MemberFacts[]): readonly string[] {
  return members.filter(({ report }) => report === undefined).map(({ name }) => name);
}

/** `register 0a1b2c3d: 2 of 4 answer and are caught up, 3 must agree; main-1, main-2 do not answer`. */
export function describeLoss(tally: Tally, members: readonly MemberFacts[]): string {
  const names = silentMembers(members);
  return `${describeTally(tally)}${names.length === 0 ? '' : `; ${names.join(', ')} do not answer`}`;
}

/** Keeps the previous state while it depends on members that are not queried yet or are catching up. */
function previousState({ set }: SetFacts, message: string): ConditionState {
  const before = findCondition(set.status.conditions, 'QuorumHealthy');
  if (before?.status === 'True') return holds(before.message);
  if (before?.reason === 'QuorumLost') return fails('QuorumLost', before.message);
  return { status: 'Unknown', reason: 'WaitingForPods', message };
}

const quorumHealthy: Rule = ({ facts, tallied, arithmetic }) => {
  const { members, registers, unreachable, set } = facts;
  if (set.spec.suspend) return suspended;
  if (unreachable !== undefined)
    return { status: 'Unknown', reason: 'DependencyNotReady', message: unreachable };
  const [gone] = definitelyLost(tallied);
  if (gone !== undefined) return fails('QuorumLost', describeLoss(gone, members));
  const [open] = withoutProvenQuorum(tallied);
  if (open !== undefined) return previousState(facts, describeLoss(open, members));
  const answering = members.length - silentMembers(members).length;
  const unseen = unreportedRegister(registers, members);
  if (answering < arithmetic.quorum) {
    const message = `${answering} of ${members.length} members answer, ${arithmetic.quorum} must agree`;
    if (answering + members.filter(mayStillAnswer).length >= arithmetic.quorum)
      return previousState(facts, message);
    return fails(unseen === undefined ? 'WaitingForPods' : 'QuorumLost', message);
  }
  if (unseen !== undefined) {
    const message = `No member reports Register ${unseen.name}`;
    return { status: 'Unknown', reason: 'DependencyNotReady', message };
  }
  return holds(`${answering} of ${members.length} members answer, ${arithmetic.quorum} must agree`);
};

const faultTolerant: Rule = ({ facts, tallied, arithmetic }) => {
  if (facts.set.spec.suspend) return suspended;
  if (arithmetic.faultTolerance < 1) {
    return fails('TooFewMembers', `${arithmetic.quorum} of ${arithmetic.size} must agree; none may fail`);
  }
  const tight = tallied.find(({ live, quorum }) => live.length <= quorum);
  if (tight !== undefined) return fails('QuorumAtRisk', describeTally(tight));
  return holds(`${arithmetic.faultTolerance} of ${arithmetic.size} may fail`);
};

/** Impairment of a member that has worked before; undefined for a working or a new member. */
function impairment({ name, pod, report }: MemberFacts, of: ConditionInput): string | undefined {
  const hasWorked = of.members.find((each) => each.name === name)?.publicKey !== undefined;
  if (!hasWorked) return undefined;
  if (pod === undefined || pod.isTerminating) return `${name} has no pod`;
  if (report === undefined) return `${name} does not answer`;
  if (!pod.isReady) return `${name} is not ready`;
  if (!isImpaired(report, of.facts.set.spec.update.maxBehindDockets)) return undefined;
  return `${name}: ${nonVotingReason(report) ?? 'not caught up'}`;
}

const degraded: Rule = (of) => {
  const { facts, tallied } = of;
  if (facts.set.spec.suspend) return suspended;
  if (facts.unreachable !== undefined)
    return { status: 'Unknown', reason: 'DependencyNotReady', message: facts.unreachable };
  const missing = facts.members.flatMap((each) => impairment(each, of) ?? []);
  if (missing.length === 0) return fails('Reconciled', 'All members that have joined are working');
  const isTight = tallied.some(({ live, quorum }) => live.length <= quorum);
  return { status: 'True', reason: isTight ? 'QuorumAtRisk' : 'WaitingForPods', message: missing.join('; ') };
};

const storageResizing: Rule = ({ growth }) => {
  const { resize, growing } = growth;
  const names = [...new Set([...resize.map(({ name }) => name), ...growing])];
  if (names.length === 0) return fails('Reconciled', 'All volumes have the desired size');
  return {
    status: 'True',
    reason: 'Progressing',
    message: `Volumes are being expanded: ${names.join(', ')}`,
  };
};

const equivocation: Rule = ({ facts }) => {
  const equivocating = [...equivocators(facts.members)].sort();
  if (equivocating.length === 0) return fails('Reconciled', 'There is no evidence of equivocation');
  const message = `Conflicting signatures for one position by ${equivocating.join(', ')}; remove them from the registers`;
  return { status: 'True', reason: 'QuorumAtRisk', message };
};

/** Every condition of a set besides Ready, Reconciling and Stalled. */
export function conditionsOf(input: ConditionInput): readonly ConditionUpdate[] {
  return [
    { type: 'Degraded', ...degraded(input) },
    { type: 'QuorumHealthy', ...quorumHealthy(input) },
    { type: 'FaultTolerant', ...faultTolerant(input) },
    { type: 'StorageResizing', ...storageResizing(input) },
    { type: 'EquivocationDetected', ...equivocation(input) },
  ];
}
