import { validatorId } from '../../api/names.ts';
import type { Reason } from '../../api/reasons.ts';
import type { MemberFacts, PodFacts, SetFacts } from './facts.ts';
import {
  definitelyLost,
  describeTally,
  isImpaired,
  losingQuorumWithout,
  reportsByRegister,
  type Tally,
  tallies,
  unreportedRegister,
  withoutProvenQuorum,
} from './quorum.ts';
import { isGrowing } from './storage.ts';

/** The next replacement of a pod. */
export interface Replacement {
  readonly member: MemberFacts;
  readonly uid: string;
  /** `evict` respects the disruption budget; `delete` is for broken and forced pods. */
  readonly how: 'evict' | 'delete';
  readonly isForced: boolean;
  /** Why it is safe, with the numbers. */
  readonly proof: string;
}

/** Why a gate refuses a replacement now. */
interface GateRefusal {
  readonly reason: Reason;
  readonly message: string;
  /** Set when only time is needed. */
  readonly retryAfterMs?: number;
}

export interface RolloutPlan {
  /** Pods of another revision. */
  readonly outdated: readonly string[];
  readonly next?: Replacement;
  readonly blocked?: GateRefusal;
}

interface Running extends MemberFacts {
  readonly pod: PodFacts;
}

/** A member that may be replaced, with the input of the gates. */
interface RolloutCandidate {
  readonly facts: SetFacts;
  readonly candidate: Running;
  readonly tallied: readonly Tally[];
  /** The candidate is broken and does not count in any quorum. */
  readonly isUnresponsive: boolean;
}

type Gate = (of: RolloutCandidate) => GateRefusal | undefined;

const refuse = (message: string, reason: Reason = 'WaitingForPods'): GateRefusal => ({ reason, message });

/** The cache shows the deletion of the pod that was evicted last. */
const evictionObserved: Gate = ({ facts: { evictedUid, members } }) => {
  const evicted = members.find(({ pod }) => evictedUid !== undefined && pod?.uid === evictedUid);
  return evicted === undefined ? undefined : refuse(`${evicted.name} is being replaced`);
};

const membersReachable: Gate = ({ facts: { unreachable } }) =>
  unreachable === undefined
    ? undefined
    : refuse(`members cannot be queried: ${unreachable}`, 'RolloutBlocked');

const otherPodsReady: Gate = ({ facts, candidate }) => {
  const absent = facts.members.find(
    ({ name, pod }) => name !== candidate.name && (pod === undefined || pod.isTerminating || !pod.isReady),
  );
  if (absent === undefined) return undefined;
  const { name, pod } = absent;
  if (pod?.trouble === undefined) return refuse(`${name} is not ready yet`);
  return refuse(`${name} is not ready: ${pod.trouble}`, 'RolloutBlocked');
};

/** A newly ready pod is queried within this time. */
const freshMs = 10_000;

/** Whether a pod became ready so recently that a missing report is expected. */
export function isFresh({ pod }: MemberFacts, nowMs: number): boolean {
  return pod?.isReady === true && nowMs - pod.readySinceMs < freshMs;
}

const othersAnswer: Gate = ({ facts, candidate }) => {
  const silent = facts.members.filter(({ name, report }) => name !== candidate.name && report === undefined);
  if (silent.length === 0) return undefined;
  const names = silent.map(({ name }) => name).join(', ');
  const isLasting = silent.some((each) => !isFresh(each, facts.nowMs));
  return refuse(`${names} did not answer within 5 s`, isLasting ? 'RolloutBlocked' : 'WaitingForPods');
};

const othersReadyLongEnough: Gate = ({ facts, candidate }) => {
  const { minReadySeconds } = facts.set.spec.update;
  const left = facts.members
    .filter(({ name }) => name !== candidate.name)
    .map(({ pod }) => (pod?.readySinceMs ?? facts.nowMs) + minReadySeconds * 1000 - facts.nowMs);
  const retryAfterMs = Math.max(0, ...left);
  if (retryAfterMs === 0) return undefined;
  return {
    reason: 'Progressing',
    message: `the last replaced member must be ready for ${minReadySeconds} s (update.minReadySeconds)`,
    retryAfterMs,
  };
};

const noVolumeGrows: Gate = ({ facts, candidate }) => {
  const { size } = facts.set.spec.storage;
  const growing = facts.members.find((each) => each.name !== candidate.name && isGrowing(each, size));
  return growing === undefined
    ? undefined
    : refuse(`the volume of ${growing.name} is being expanded`, 'RolloutBlocked');
};

const registersReported: Gate = ({ facts }) => {
  const unknown = unreportedRegister(facts.registers, facts.members);
  if (unknown === undefined) return undefined;
  return refuse(`no member reports Register ${unknown.name}`, 'RolloutBlocked');
};

const quorumExists: Gate = ({ tallied }) => {
  const [first] = withoutProvenQuorum(tallied);
  if (first === undefined) return undefined;
  const reason = definitelyLost([first]).length > 0 ? 'QuorumLost' : 'WaitingForPods';
  return { reason, message: describeTally(first) };
};

const quorumRemains: Gate = ({ facts, candidate, tallied }) => {
  const [broken] = losingQuorumWithout(validatorId(candidate.name), tallied);
  // a set of one member cannot be replaced without an interruption
  if (broken === undefined || (broken.size === 1 && facts.members.length === 1)) return undefined;
  const message = `${describeTally(broken)}; without ${candidate.name} ${broken.live.length - 1} remain`;
  return { reason: 'QuorumAtRisk', message };
};

const historiesAgree: Gate = ({ facts }) => {
  const fork = findFork(facts);
  return fork === undefined ? undefined : { reason: 'QuorumAtRisk', message: fork };
};

const rolloutSlotFree: Gate = ({ facts: { rolloutLimit } }) =>
  rolloutLimit === undefined ? undefined : refuse(rolloutLimit, 'Progressing');

/** Gates of the replacement of a working member. All must pass; the first refusal is reported. */
const gates: readonly Gate[] = [
  evictionObserved,
  membersReachable,
  historiesAgree,
  otherPodsReady,
  othersAnswer,
  registersReported,
  quorumExists,
  quorumRemains,
  noVolumeGrows,
  othersReadyLongEnough,
  rolloutSlotFree,
];

/** Gates of an unresponsive member. There are fewer, because it does not count in any quorum. */
const gatesForUnresponsive: readonly Gate[] = [
  evictionObserved,
  membersReachable,
  historiesAgree,
  quorumRemains,
];

/** Describes two members with different histories of one register; undefined when all reports agree. */
export function findFork({ members }: SetFacts): string | undefined {
  for (const [registerId, seen] of reportsByRegister(members)) {
    const roots = new Map<number, { readonly root: string; readonly name: string }>();
    for (const { member, report } of seen) {
      for (const { height, root } of report.roots) {
        const other = roots.get(height);
        if (other !== undefined && other.root !== root) {
          const where = `register ${registerId.slice(0, 8)}, docket ${height}`;
          return `${where}: ${other.name} and ${member.name} have different histories`;
        }
        roots.set(height, { root, name: member.name });
      }
    }
  }
  return undefined;
}

function isProposing({ report }: MemberFacts): boolean {
  return report?.registers.some(({ isProposer, status }) => isProposer && status !== 'Stopped') === true;
}

function rankOf(each: Running, maxBehind: number): number {
  if (each.pod.isBroken) return 0;
  if (each.report !== undefined && isImpaired(each.report, maxBehind)) return 1;
  return isProposing(each) ? 3 : 2;
}

/** Order of replacement: broken members, impaired members, others by descending ordinal, and proposers last. */
function replacementOrder(stale: readonly Running[], maxBehind: number): readonly Running[] {
  return stale.toSorted(
    (left, right) => rankOf(left, maxBehind) - rankOf(right, maxBehind) || right.ordinal - left.ordinal,
  );
}

function proofOf({ facts, candidate, tallied, isUnresponsive }: RolloutCandidate): string {
  if (isUnresponsive) return `${candidate.name} does not answer; ${describeTallies(tallied)}`;
  const answered = facts.members.filter(({ report }) => report !== undefined).length;
  return `${answered} of ${facts.members.length} members answered; ${describeTallies(tallied)}; one is replaced`;
}

function describeTallies(tallied: readonly Tally[]): string {
  if (tallied.length === 0) return 'no register depends on the set';
  const named = tallied.slice(0, 5).map(describeTally).join('; ');
  return tallied.length > 5 ? `${named}; and ${tallied.length - 5} more` : named;
}

function checkGates(of: RolloutCandidate): GateRefusal | undefined {
  for (const gate of of.isUnresponsive ? gatesForUnresponsive : gates) {
    const refusal = gate(of);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function isRunning(member: MemberFacts): member is Running {
  return member.pod !== undefined && !member.pod.isTerminating;
}

/** The next replacement, or what it waits for. At most one pod is replaced at a time. */
export function planRollout(facts: SetFacts): RolloutPlan {
  const running = facts.members.filter(isRunning);
  const forced = running.find(({ pod }) => pod.isForced);
  const revision = facts.statefulSet?.updateRevision;
  const stale = running.filter(({ pod }) => pod.revision !== revision);
  const outdated = revision === undefined ? [] : stale.map(({ name }) => name);
  if (forced !== undefined) return { outdated, next: forcedReplacement(forced) };
  const { strategy, paused } = facts.set.spec.update;
  if (outdated.length === 0 || strategy === 'OnDelete') return { outdated };
  if (paused) {
    return {
      outdated,
      blocked: {
        reason: 'Paused',
        message: `update.paused is true; ${outdated.join(', ')} are not replaced`,
      },
    };
  }
  return { outdated, ...chooseReplacement(facts, stale) };
}

/**
 * What is replaced while a member is being removed: broken members that answer nothing, by the revision of now. Their
 * removal from lists needs a quorum, which may need them.
 */
export function planRepair(facts: SetFacts): RolloutPlan {
  const { strategy, paused } = facts.set.spec.update;
  const revision = facts.statefulSet?.updateRevision;
  if (revision === undefined || strategy === 'OnDelete' || paused) return { outdated: [] };
  const lost = definitelyLost(tallies(facts)).length > 0;
  const broken = facts.members
    .filter(isRunning)
    .filter(({ pod, report }) => pod.revision !== revision && pod.isBroken && (report === undefined || lost));
  const { next } = chooseReplacement(facts, broken);
  return { outdated: [], ...(next !== undefined && { next }) };
}

function forcedReplacement(member: Running): Replacement {
  const proof = `${member.name} is replaced because of its force-roll annotation; no gate was checked`;
  return { member, uid: member.pod.uid, how: 'delete', isForced: true, proof };
}

function chooseReplacement(
  facts: SetFacts,
  stale: readonly Running[],
): Pick<RolloutPlan, 'next' | 'blocked'> {
  const tallied = tallies(facts);
  const [candidate] = replacementOrder(stale, facts.set.spec.update.maxBehindDockets);
  if (candidate === undefined) return {};
  const isSilent = candidate.report === undefined;
  const isUnresponsive = candidate.pod.isBroken && (isSilent || definitelyLost(tallied).length > 0);
  const of = { facts, candidate, tallied, isUnresponsive };
  const blocked = checkGates(of);
  if (blocked !== undefined) return { blocked };
  const how = isUnresponsive ? 'delete' : 'evict';
  const next = {
    member: candidate,
    uid: candidate.pod.uid,
    how,
    isForced: false,
    proof: proofOf(of),
  } as const;
  return { next };
}
