import { podName, validatorId } from '../../api/names.ts';
import type { MemberFacts, SetFacts } from './facts.ts';
import {
  isStoppedEverywhere,
  type RegisterSighting,
  reportsByRegister,
  unreportedRegister,
} from './quorum.ts';

/** How many pods there are to be now, and what the next step waits for. */
export interface ScalingStep {
  readonly replicas: number;
  /** The member that is on its way out. */
  readonly leaving?: string;
  /** A member that is told to finish before its pod goes. */
  readonly drain?: MemberFacts;
  readonly waitingFor?: string;
  /** Nothing goes on until somebody acts. */
  readonly isStalled?: boolean;
}

/** A member that has left every register may take this long to hand on what it holds. */
const DRAIN_MS = 60_000;

/** Pods that are there or were there when the set was suspended: one more than the highest ordinal. */
function existingMembers({ set, members }: SetFacts): number {
  const pods = members.filter(({ pod }) => pod !== undefined).map(({ ordinal }) => ordinal);
  const known = (set.status.members ?? [])
    .filter(({ phase }) => phase !== 'Removed')
    .map(({ ordinal }) => ordinal ?? -1);
  return Math.max(-1, ...pods, ...known) + 1;
}

/**
 * One step towards spec.replicas. Up goes at once: nobody counts a new pod before registers list it. Down goes one
 * member at a time: registers strike it from their lists, it drains, then its pod goes (notes/ledger.md 5.2).
 */
export function planScaling(facts: SetFacts): ScalingStep {
  const { set, statefulSet } = facts;
  const { replicas: wanted, suspend } = set.spec;
  if (suspend) return { replicas: 0 };
  // made for the first time, made anew, or resumed: members that registers may still list come back first
  const from =
    statefulSet === undefined || statefulSet.replicas === 0 ? existingMembers(facts) : statefulSet.replicas;
  if (from <= wanted) return { replicas: wanted };
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
    return { waitingFor: `${name} stays: members cannot be asked: ${unreachable}` };
  const listing = listingReason(facts, name);
  const blocked = registers.find((each) => each.blocked !== undefined && !each.isDeleting);
  if (listing !== undefined) {
    if (blocked === undefined) return { waitingFor: `${name} leaves: ${listing}` };
    return { waitingFor: `${name} stays: Register ${blocked.name}: ${blocked.blocked}`, isStalled: true };
  }
  return member === undefined ? undefined : drainStep(member, facts.nowMs);
}

/** Registers that were deleted: nothing names them, and whoever knows them has stopped them, with nobody silent. */
function isDeletedRegister({ registers }: SetFacts, staying: readonly MemberFacts[]) {
  const named = new Set(registers.filter((each) => !each.isDeleting).map((each) => each.registerId));
  const allAnswer = staying.every(({ report }) => report !== undefined);
  return (registerId: string, seen: readonly RegisterSighting[]) =>
    allAnswer && !named.has(registerId) && isStoppedEverywhere(seen);
}

/** Why a member may still count in a register; undefined when it is certain that it does not. */
function listingReason(facts: SetFacts, name: string): string | undefined {
  const { set, members, registers } = facts;
  const id = validatorId(name);
  const staying = members.filter((each) => each.name !== name);
  const isDeleted = isDeletedRegister(facts, staying);
  const hasWorked = set.status.members?.some(({ publicKey }) => publicKey !== undefined) === true;
  if (hasWorked && staying.every(({ report }) => report === undefined)) return 'no member that stays answers';
  for (const [registerId, seen] of reportsByRegister(members)) {
    const lists = seen.some(({ report }) => report.members.includes(id));
    if (lists && !isDeleted(registerId, seen))
      return `register ${registerId.slice(0, 8)} strikes it from its list first`;
  }
  const unseen = unreportedRegister(registers, staying);
  return unseen === undefined ? undefined : `no member that stays tells about Register ${unseen.name}`;
}

function drainStep(
  member: MemberFacts,
  nowMs: number,
): Omit<ScalingStep, 'replicas' | 'leaving'> | undefined {
  const { report, name } = member;
  if (report === undefined || report.drain.state === 'Drained') return undefined;
  const since = Date.parse(report.drain.since ?? '');
  if (report.drain.state === 'Draining' && nowMs - since > DRAIN_MS) return undefined;
  return { waitingFor: `${name} hands on what it holds`, drain: member };
}
