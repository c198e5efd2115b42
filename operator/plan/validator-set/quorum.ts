import { faultTolerance, quorum } from '#core/ledger/consensus.ts';
import { validatorId } from '../../api/names.ts';
import type { BoundRegister, MemberFacts, MemberReport, RegisterReport, SetFacts } from './facts.ts';

/** Votes of one register, counted from the reports of its members. */
export interface Tally {
  readonly registerId: string;
  readonly size: number;
  /** Number of members that must agree. */
  readonly quorum: number;
  /** Validator ids of members that answer, vote and are caught up. */
  readonly live: readonly string[];
  /** Validator ids of members that may vote: newly ready and not queried yet, or catching up. */
  readonly undecided: readonly string[];
}

/** A member of another set counts if a member of this set received a message of it within this time. */
const heardMs = 15_000;
/** A member that is behind and whose height has not grown for this time is not catching up. */
const standstillMs = 5_000;
/** States of a register in which a member can vote. */
const working = new Set(['Running', 'Paused', 'Stopped', 'WaitingForValidators']);

/** The report of one member about one register. */
export interface RegisterSighting {
  readonly member: MemberFacts;
  readonly report: RegisterReport;
}

/** Reports of the answering members, by register id. */
export function reportsByRegister(
  members: readonly MemberFacts[],
): ReadonlyMap<string, readonly RegisterSighting[]> {
  const found = new Map<string, RegisterSighting[]>();
  for (const member of members) {
    for (const report of member.report?.registers ?? []) {
      const seen = found.get(report.registerId) ?? [];
      seen.push({ member, report });
      found.set(report.registerId, seen);
    }
  }
  return found;
}

/** A Register that depends on the set and that none of these members reports. */
export function unreportedRegister(
  registers: readonly BoundRegister[],
  members: readonly MemberFacts[],
): BoundRegister | undefined {
  const reported = reportsByRegister(members);
  return registers.find(
    ({ registerId, isDeleting }) => registerId !== undefined && !isDeleting && !reported.has(registerId),
  );
}

/** The report with the greatest height, which has the newest list of members. */
function newest(seen: readonly RegisterSighting[]): RegisterReport | undefined {
  return seen.map(({ report }) => report).toSorted((left, right) => right.height - left.height)[0];
}

/** Whether a member votes in a register and is not behind. */
export function isCaughtUp({ status, isMember, behind }: RegisterReport, maxBehind: number): boolean {
  return isMember && working.has(status) && behind <= maxBehind;
}

/** Conditions of a member that signs nothing: its volume is full, or its log or signer failed. */
const nonVotingConditions = new Set(['Paused', 'SealingStopped']);

/** Why an answering member does not vote; undefined for a voting member. */
export function nonVotingReason({ conditions }: MemberReport): string | undefined {
  return conditions.find(({ type }) => nonVotingConditions.has(type))?.message;
}

/** Whether an answering member is behind or does not vote in a register that depends on it. */
export function isImpaired(report: MemberReport, maxBehind: number): boolean {
  const counted = report.registers.filter(({ isMember, status }) => isMember && status !== 'Stopped');
  const isNonVoting = nonVotingReason(report) !== undefined;
  return counted.some((each) => isNonVoting || !isCaughtUp(each, maxBehind));
}

function recentlyHeard(seen: readonly RegisterSighting[], nowMs: number): ReadonlySet<string> {
  const heard = seen.flatMap(({ member }) => member.report?.heard ?? []);
  const recent = heard.filter(({ heardAt }) => nowMs - Date.parse(heardAt) <= heardMs);
  return new Set(recent.map((each) => each.validatorId));
}

function isLive({ member, report }: RegisterSighting, maxBehind: number): boolean {
  const isNonVoting = member.report !== undefined && nonVotingReason(member.report) !== undefined;
  return !isNonVoting && isCaughtUp(report, maxBehind);
}

/** Whether a member is behind but its height grows. */
function isCatchingUp({ member, report }: RegisterSighting, nowMs: number): boolean {
  const sinceMs = member.heightSinceMs?.get(report.registerId) ?? -Infinity;
  return isLive({ member, report }, Infinity) && nowMs - sinceMs < standstillMs;
}

/** Whether a member has no report only because it was not queried since it became ready. */
export function mayStillAnswer({ report, isUnqueried }: MemberFacts): boolean {
  return report === undefined && isUnqueried === true;
}

function tallyOf(registerId: string, seen: readonly RegisterSighting[], facts: SetFacts): Tally | undefined {
  const view = newest(seen);
  if (view === undefined || view.members.length === 0) return undefined;
  const { maxBehindDockets } = facts.set.spec.update;
  const own = new Map(seen.map((each) => [validatorId(each.member.name), each]));
  const ours = new Set(facts.members.map(({ name }) => validatorId(name)));
  const heard = recentlyHeard(seen, facts.nowMs);
  const live = view.members.filter((id) => {
    const sighting = own.get(id);
    if (sighting !== undefined) return isLive(sighting, maxBehindDockets);
    return !ours.has(id) && heard.has(id);
  });
  const size = view.members.length;
  // the reported quorum may raise the computed one, but never lower it
  const needed = Math.min(size, Math.max(quorum(size), view.quorum));
  const waiting = new Set(facts.members.filter(mayStillAnswer).map(({ name }) => validatorId(name)));
  const undecided = view.members.filter((id) => {
    const sighting = own.get(id);
    if (sighting === undefined) return waiting.has(id);
    return !live.includes(id) && isCatchingUp(sighting, facts.nowMs);
  });
  return { registerId, size, quorum: needed, live, undecided };
}

/** Whether all reporting members have stopped a register, which is also the state of a deleted one. */
export function isStoppedEverywhere(seen: readonly RegisterSighting[]): boolean {
  return seen.every(({ report }) => report.status === 'Stopped');
}

/** Tallies of all registers with a member of this set. */
export function tallies(facts: SetFacts): readonly Tally[] {
  const ours = new Set(facts.members.map(({ name }) => validatorId(name)));
  return [...reportsByRegister(facts.members)].flatMap(([registerId, seen]) => {
    if (isStoppedEverywhere(seen)) return [];
    const tally = tallyOf(registerId, seen, facts);
    const isSealedHere = newest(seen)?.members.some((id) => ours.has(id)) === true;
    return tally === undefined || !isSealedHere ? [] : [tally];
  });
}

/** Numbers of a set for its status and its PodDisruptionBudget. */
export interface Arithmetic {
  readonly size: number;
  readonly quorum: number;
  readonly faultTolerance: number;
}

/**
 * Quorum and fault tolerance of a set of `size` members: by the formula, and as strict as the strictest register.
 * @param tallied tallies of the reported registers
 */
export function quorumArithmetic(
  size: number,
  tallied: readonly Pick<Tally, 'size' | 'quorum'>[],
): Arithmetic {
  if (tallied.length === 0)
    return { size, quorum: size === 0 ? 0 : quorum(size), faultTolerance: toleranceOf(size) };
  const widest = tallied.reduce((left, right) => (right.quorum > left.quorum ? right : left));
  const tolerances = tallied.map((each) => each.size - each.quorum);
  return {
    size: widest.size,
    quorum: widest.quorum,
    faultTolerance: Math.max(0, Math.min(toleranceOf(size), ...tolerances)),
  };
}

function toleranceOf(size: number): number {
  return size === 0 ? 0 : faultTolerance(size);
}

/** `register 0a1b2c3d: 3 of 4 answer and are caught up, 3 must agree`. */
export function describeTally({ registerId, size, quorum: needed, live }: Tally): string {
  return `register ${registerId.slice(0, 8)}: ${live.length} of ${size} answer and are caught up, ${needed} must agree`;
}

/** Registers that have a quorum and would lose it without one member. */
export function losingQuorumWithout(candidate: string, tallied: readonly Tally[]): readonly Tally[] {
  return tallied.filter((each) => each.live.includes(candidate) && each.live.length === each.quorum);
}

/** Registers without a quorum even if every undecided member votes. */
export function definitelyLost(tallied: readonly Tally[]): readonly Tally[] {
  return tallied.filter(({ live, undecided, quorum: needed }) => live.length + undecided.length < needed);
}

/** Registers without a proven quorum: undecided members do not count. */
export function withoutProvenQuorum(tallied: readonly Tally[]): readonly Tally[] {
  return tallied.filter((each) => each.live.length < each.quorum);
}

/** Number of node losses that every register survives; members on unknown nodes do not count. */
export function nodeFaultTolerance(members: readonly MemberFacts[], tallied: readonly Tally[]): number {
  const nodes = new Map(members.map(({ name, pod }) => [validatorId(name), pod?.node]));
  const each = tallied.map(({ live, quorum: needed }) =>
    tolerableNodeLosses(
      live.map((id) => nodes.get(id)),
      needed,
    ),
  );
  return each.length === 0 ? 0 : Math.min(...each);
}

/** Worst case: the nodes with most members fail first. */
function tolerableNodeLosses(places: readonly (string | undefined)[], needed: number): number {
  const counts = new Map<string, number>();
  for (const node of places) {
    if (node !== undefined) counts.set(node, (counts.get(node) ?? 0) + 1);
  }
  const unknown = places.filter((node) => node === undefined).length;
  let left = places.length - unknown;
  let losses = 0;
  for (const count of [...counts.values()].sort((a, b) => b - a)) {
    left -= count;
    if (left < needed) break;
    losses += 1;
  }
  return losses;
}
