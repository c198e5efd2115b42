import { podName, validatorId } from '../../api/names.ts';
import type { MemberFacts, SetFacts } from './facts.ts';
import {
  isStoppedEverywhere,
  type RegisterSighting,
  reportsByRegister,
  unreportedRegister,
} from './quorum.ts';

/** Current target of pods, and what the next step waits for. */
export interface ScalingStep {
  readonly replicas: number;
  /** The member that is being removed. */
  readonly leaving?: string;
  /** A member to drain before its pod is deleted. */
  readonly drain?: MemberFacts;
  readonly waitingFor?: string;
  /** A person must act. */
  readonly isStalled?: boolean;
}

/** Time limit of a drain after the member is removed from every register. */
const drainMs = 60_000;

/** Highest ordinal plus one, of existing pods and of pods before a suspension. */
function existingMembers({ set, members }: SetFacts): number {
  const pods = members.filter(({ pod }) => pod !== undefined).map(({ ordinal }) => ordinal);
  const known = (set.status.members ?? [])
    .filter(({ phase }) => phase !== 'Removed')
    .map(({ ordinal }) => ordinal ?? -1);
  return Math.max(-1, ...pods, ...known) + 1;
}

/**
 * One step towards spec.replicas. Scaling up is immediate, because a new pod does not count before registers list it.
 * Scaling down removes one member at a time: registers remove it from their lists, it drains, then its pod is deleted.
 */
export function planScaling(facts: SetFacts): ScalingStep {
  const { set, statefulSet } = facts;
  const { replicas: desired, suspend } = set.spec;
  if (suspend) return { replicas: 0 };
  // created, recreated or resumed: members that registers may still list are started first
  const from =
    statefulSet === undefined || statefulSet.replicas === 0 ? existingMembers(facts) : statefulSet.replicas;
  if (from <= desired) return { replicas: desired };
  const leaving = podName(set.metadata.name, from - 1);
  const waitingFor = obstacle(facts, from - 1);
  if (waitingFor !== undefined) return { replicas: from, leaving, ...waitingFor };
  return { replicas: from - 1, leaving };
}

function obstacle(facts: SetFacts, ordinal: number): Omit<ScalingStep, 'replicas' | 'leaving'> | undefined {
  const { unreachable, registers } = facts;
  const member = facts.members.find((each) => each.ordinal === ordinal);
  const name = podName(facts.set.metadata.name, ordinal);
  if (unreachable !== undefined)
    return { waitingFor: `${name} is not removed: members cannot be queried: ${unreachable}` };
  const listing = listingReason(facts, name);
  const blocked = registers.find((each) => each.blocked !== undefined && !each.isDeleting);
  if (listing !== undefined) {
    if (blocked === undefined) return { waitingFor: `${name} is being removed: ${listing}` };
    return {
      waitingFor: `${name} is not removed: Register ${blocked.name}: ${blocked.blocked}`,
      isStalled: true,
    };
  }
  return member === undefined ? undefined : drainStep(member, facts.nowMs);
}

/** Whether a register was deleted: no Register names it, all other members answer, and all that report it have stopped it. */
function isDeletedRegister({ registers }: SetFacts, staying: readonly MemberFacts[]) {
  const named = new Set(registers.filter((each) => !each.isDeleting).map((each) => each.registerId));
  const allAnswer = staying.every(({ report }) => report !== undefined);
  return (registerId: string, seen: readonly RegisterSighting[]) =>
    allAnswer && !named.has(registerId) && isStoppedEverywhere(seen);
}

/** Why a member may still count in a register; undefined when it certainly does not. */
function listingReason(facts: SetFacts, name: string): string | undefined {
  const { set, members, registers } = facts;
  const id = validatorId(name);
  const staying = members.filter((each) => each.name !== name);
  const isDeleted = isDeletedRegister(facts, staying);
  const hasWorked = set.status.members?.some(({ publicKey }) => publicKey !== undefined) === true;
  if (hasWorked && staying.every(({ report }) => report === undefined)) return 'no remaining member answers';
  for (const [registerId, seen] of reportsByRegister(members)) {
    const lists = seen.some(({ report }) => report.members.includes(id));
    if (lists && !isDeleted(registerId, seen))
      return `register ${registerId.slice(0, 8)} must remove it from its list first`;
  }
  const unseen = unreportedRegister(registers, staying);
  return unseen === undefined ? undefined : `no remaining member reports Register ${unseen.name}`;
}

function drainStep(
  member: MemberFacts,
  nowMs: number,
): Omit<ScalingStep, 'replicas' | 'leaving'> | undefined {
  const { report, name } = member;
  if (report === undefined || report.drain.state === 'Drained') return undefined;
  const since = Date.parse(report.drain.since ?? '');
  if (report.drain.state === 'Draining' && nowMs - since > drainMs) return undefined;
  return { waitingFor: `${name} drains: it passes its transactions to the other members`, drain: member };
}
