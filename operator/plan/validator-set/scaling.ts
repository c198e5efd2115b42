import { podName, validatorId } from '../../api/names.ts';
import type { MemberFacts, SetFacts } from './facts.ts';
import { isAtRest, type Sighting, sightings, untold } from './quorum.ts';

/** How many pods there are to be now, and what the next step waits for. */
export interface Walk {
  readonly replicas: number;
  /** The member that is on its way out. */
  readonly leaving?: string;
  /** A member that is told to finish before its pod goes. */
  readonly drain?: MemberFacts;
  readonly waits?: string;
  /** Nothing goes on until somebody acts. */
  readonly isStuck?: boolean;
}

/** A member that has left every register may take this long to hand on what it holds. */
const DRAIN_MS = 60_000;

/** Pods that are there or were there when the set was suspended: one more than the highest ordinal. */
function there({ set, members }: SetFacts): number {
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
export function planWalk(facts: SetFacts): Walk {
  const { set, statefulSet } = facts;
  const { replicas: wanted, suspend } = set.spec;
  if (suspend) return { replicas: 0 };
  // made for the first time, made anew, or resumed: members that registers may still list come back first
  const from = statefulSet === undefined || statefulSet.replicas === 0 ? there(facts) : statefulSet.replicas;
  if (from <= wanted) return { replicas: wanted };
  const leaving = podName(set.metadata.name, from - 1);
  const waits = waitsFor(facts, from - 1);
  if (waits !== undefined) return { replicas: from, leaving, ...waits };
  return { replicas: from - 1, leaving };
}

function waitsFor(facts: SetFacts, ordinal: number): Omit<Walk, 'replicas' | 'leaving'> | undefined {
  const { blind, registers } = facts;
  const member = facts.members.find((each) => each.ordinal === ordinal);
  const name = podName(facts.set.metadata.name, ordinal);
  if (blind !== undefined) return { waits: `${name} stays: members cannot be asked: ${blind}` };
  const listing = listedIn(facts, name);
  const blocked = registers.find((each) => each.blocked !== undefined && !each.isDeleting);
  if (listing !== undefined) {
    if (blocked === undefined) return { waits: `${name} leaves: ${listing}` };
    return { waits: `${name} stays: Register ${blocked.name}: ${blocked.blocked}`, isStuck: true };
  }
  return member === undefined ? undefined : drains(member, facts.nowMs);
}

/** Registers that were deleted: nothing names them, and whoever knows them has stopped them, with nobody silent. */
function isGone({ registers }: SetFacts, staying: readonly MemberFacts[]) {
  const named = new Set(registers.filter((each) => !each.isDeleting).map((each) => each.registerId));
  const allAnswer = staying.every(({ report }) => report !== undefined);
  return (registerId: string, seen: readonly Sighting[]) =>
    allAnswer && !named.has(registerId) && isAtRest(seen);
}

/** Why a member may still count in a register; undefined when it is certain that it does not. */
function listedIn(facts: SetFacts, name: string): string | undefined {
  const { set, members, registers } = facts;
  const id = validatorId(name);
  const staying = members.filter((each) => each.name !== name);
  const gone = isGone(facts, staying);
  const hasWorked = set.status.members?.some(({ publicKey }) => publicKey !== undefined) === true;
  if (hasWorked && staying.every(({ report }) => report === undefined)) return 'no member that stays answers';
  for (const [registerId, seen] of sightings(members)) {
    const lists = seen.some(({ report }) => report.members.includes(id));
    if (lists && !gone(registerId, seen))
      return `register ${registerId.slice(0, 8)} strikes it from its list first`;
  }
  const unseen = untold(registers, staying);
  return unseen === undefined ? undefined : `no member that stays tells about Register ${unseen.name}`;
}

function drains(member: MemberFacts, nowMs: number): Omit<Walk, 'replicas' | 'leaving'> | undefined {
  const { report, name } = member;
  if (report === undefined || report.drain.state === 'Drained') return undefined;
  const since = Date.parse(report.drain.since ?? '');
  if (report.drain.state === 'Draining' && nowMs - since > DRAIN_MS) return undefined;
  return { waits: `${name} hands on what it holds`, drain: member };
}
