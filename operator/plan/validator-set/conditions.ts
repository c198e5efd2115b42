import { type ConditionUpdate, findCondition } from '../../api/conditions.ts';
import type { Reason } from '../../api/reasons.ts';
import type { MemberFacts, SetFacts } from './facts.ts';
import { equivocators, type MemberStatus } from './member-status.ts';
import {
  type Arithmetic,
  describe,
  fallsShort,
  lost,
  mayAnswer,
  surelyLost,
  type Tally,
  untold,
  whyMute,
} from './quorum.ts';
import type { Growth } from './storage.ts';

/** What conditions are judged by. */
export interface Judged {
  readonly facts: SetFacts;
  readonly known: readonly Tally[];
  readonly numbers: Arithmetic;
  readonly growth: Growth;
  readonly members: readonly MemberStatus[];
}

type Verdict = Omit<ConditionUpdate, 'type'>;
type Rule = (of: Judged) => Verdict;

const holds = (message: string): Verdict => ({ status: 'True', reason: 'Reconciled', message });
const fails = (reason: Reason, message: string): Verdict => ({ status: 'False', reason, message });
const suspended = fails('Suspended', 'The set is suspended');

/** Names of members that do not answer. */
export function silent(members: readonly MemberFacts[]): readonly string[] {
  return members.filter(({ report }) => report === undefined).map(({ name }) => name);
}

/** `register 0a1b2c3d: 2 of 4 answer and are caught up, 3 must agree; main-1, main-2 do not answer`. */
export function describeLoss(tally: Tally, members: readonly MemberFacts[]): string {
  const names = silent(members);
  return `${describe(tally)}${names.length === 0 ? '' : `; ${names.join(', ')} do not answer`}`;
}

/** While it depends on members that nobody has asked yet, or that catch up, what was known before stands; for moments. */
function asBefore({ set }: SetFacts, message: string): Verdict {
  const before = findCondition(set.status.conditions, 'QuorumHealthy');
  if (before?.status === 'True') return holds(before.message);
  if (before?.reason === 'QuorumLost') return fails('QuorumLost', before.message);
  return { status: 'Unknown', reason: 'WaitingForPods', message };
}

const quorumHealthy: Rule = ({ facts, known, numbers }) => {
  const { members, registers, blind, set } = facts;
  if (set.spec.suspend) return suspended;
  if (blind !== undefined) return { status: 'Unknown', reason: 'DependencyNotReady', message: blind };
  const [gone] = surelyLost(known);
  if (gone !== undefined) return fails('QuorumLost', describeLoss(gone, members));
  const [open] = lost(known);
  if (open !== undefined) return asBefore(facts, describeLoss(open, members));
  const answering = members.length - silent(members).length;
  const unseen = untold(registers, members);
  if (answering < numbers.quorum) {
    const message = `${answering} of ${members.length} answer, ${numbers.quorum} must agree`;
    if (answering + members.filter(mayAnswer).length >= numbers.quorum) return asBefore(facts, message);
    return fails(unseen === undefined ? 'WaitingForPods' : 'QuorumLost', message);
  }
  if (unseen !== undefined) {
    const message = `No member tells about Register ${unseen.name}`;
    return { status: 'Unknown', reason: 'DependencyNotReady', message };
  }
  return holds(`${answering} of ${members.length} answer, ${numbers.quorum} must agree`);
};

const faultTolerant: Rule = ({ facts, known, numbers }) => {
  if (facts.set.spec.suspend) return suspended;
  if (numbers.faultTolerance < 1) {
    return fails('TooFewMembers', `${numbers.quorum} of ${numbers.size} must agree; none may fail`);
  }
  const tight = known.find(({ live, quorum }) => live.length <= quorum);
  if (tight !== undefined) return fails('QuorumAtRisk', describe(tight));
  return holds(`${numbers.faultTolerance} of ${numbers.size} may fail`);
};

/** What is missing of a member that worked once; undefined of one that works, or has not yet. */
function lacks({ name, pod, report }: MemberFacts, of: Judged): string | undefined {
  const hasWorked = of.members.find((each) => each.name === name)?.publicKey !== undefined;
  if (!hasWorked) return undefined;
  if (pod === undefined || pod.isTerminating) return `${name} has no pod`;
  if (report === undefined) return `${name} does not answer`;
  if (!pod.isReady) return `${name} is not ready`;
  if (!fallsShort(report, of.facts.set.spec.update.maxBehindDockets)) return undefined;
  return `${name}: ${whyMute(report) ?? 'not caught up'}`;
}

const degraded: Rule = (of) => {
  const { facts, known } = of;
  if (facts.set.spec.suspend) return suspended;
  if (facts.blind !== undefined)
    return { status: 'Unknown', reason: 'DependencyNotReady', message: facts.blind };
  const missing = facts.members.flatMap((each) => lacks(each, of) ?? []);
  if (missing.length === 0) return fails('Reconciled', 'All members that have joined work');
  const isTight = known.some(({ live, quorum }) => live.length <= quorum);
  return { status: 'True', reason: isTight ? 'QuorumAtRisk' : 'WaitingForPods', message: missing.join('; ') };
};

const storageResizing: Rule = ({ growth }) => {
  const { resize, growing } = growth;
  const names = [...new Set([...resize.map(({ name }) => name), ...growing])];
  if (names.length === 0) return fails('Reconciled', 'Volumes have their size');
  return { status: 'True', reason: 'Progressing', message: `Volumes grow: ${names.join(', ')}` };
};

const equivocation: Rule = ({ facts }) => {
  const guilty = [...equivocators(facts.members)].sort();
  if (guilty.length === 0) return fails('Reconciled', 'No evidence is known');
  const message = `Two different signatures for one place by ${guilty.join(', ')}; remove them from the registers`;
  return { status: 'True', reason: 'QuorumAtRisk', message };
};

/** Every condition of a set besides Ready, Reconciling and Stalled. */
export function conditionsOf(judged: Judged): readonly ConditionUpdate[] {
  return [
    { type: 'Degraded', ...degraded(judged) },
    { type: 'QuorumHealthy', ...quorumHealthy(judged) },
    { type: 'FaultTolerant', ...faultTolerant(judged) },
    { type: 'StorageResizing', ...storageResizing(judged) },
    { type: 'EquivocationDetected', ...equivocation(judged) },
  ];
}
