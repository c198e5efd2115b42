import type { ConditionUpdate, Outcome } from '../../api/conditions.ts';
import { validatorId } from '../../api/names.ts';
import type { EventDetails } from '../../kube/events.ts';
import { ready, reconciling, stalled } from '../outcome.ts';
import { conditionsOf, describeLoss, silent } from './conditions.ts';
import type { ClaimFacts, MemberFacts, SetFacts } from './facts.ts';
import { type MemberStatus, memberStatuses } from './member-status.ts';
import {
  type Arithmetic,
  arithmetic,
  nodeFaultTolerance,
  sightings,
  surelyLost,
  type Tally,
  tallies,
} from './quorum.ts';
import { type LeftAct, planLeft } from './retained-claims.ts';
import { findFork, isFresh, planRoll, type Replacement, type Roll } from './rollout.ts';
import { planWalk, type Walk } from './scaling.ts';
import { type Growth, planGrowth } from './storage.ts';

/** One thing that is done besides rendering the children. */
export type Act =
  | { readonly kind: 'resize'; readonly claim: ClaimFacts; readonly size: string }
  | { readonly kind: 'recreate'; readonly uid: string }
  | { readonly kind: 'drain'; readonly member: MemberFacts }
  | { readonly kind: 'undrain'; readonly member: MemberFacts }
  | { readonly kind: 'replace'; readonly replacement: Replacement }
  | LeftAct;

/** What becomes of a set: everything that is decided about it, from facts alone. */
export interface SetPlan {
  readonly replicas: number;
  readonly numbers: Arithmetic;
  readonly acts: readonly Act[];
  readonly outcome: Outcome;
  readonly conditionUpdates: readonly ConditionUpdate[];
  readonly status: Readonly<Record<string, unknown>>;
  readonly members: readonly MemberStatus[];
  /** Pods are not of the wanted revision, and it is the operator who replaces them. */
  readonly isRolling: boolean;
  readonly requeueAfterMs?: number;
}

/** With registers, heights in the status are as old as this at most. */
const REFRESH_MS = 15_000;
const STEP_MS = 2_000;

interface Parts {
  readonly facts: SetFacts;
  readonly walk: Walk;
  readonly growth: Growth;
  readonly roll: Roll;
  readonly known: readonly Tally[];
  readonly numbers: Arithmetic;
  readonly members: readonly MemberStatus[];
}

/** Plans the next step of a set. */
export function planSet(facts: SetFacts): SetPlan {
  const walk = planWalk(facts);
  const growth = planGrowth(facts);
  const known = tallies(facts);
  const { spec } = facts.set;
  const numbers = arithmetic(spec.suspend ? spec.replicas : Math.max(walk.replicas, 1), known);
  const members = memberStatuses(facts, walk);
  // volumes and the number of pods first; a roll would wait for them anyway
  const isBusy = spec.suspend || walk.leaving !== undefined;
  const roll = isBusy ? { outdated: [] } : planRoll(facts);
  const parts = { facts, walk, growth, roll, known, numbers, members };
  return {
    replicas: walk.replicas,
    numbers,
    acts: actsOf(parts),
    outcome: outcomeOf(parts),
    conditionUpdates: conditionsOf(parts),
    status: statusOf(parts),
    members,
    isRolling: roll.outdated.length > 0 && spec.update.strategy === 'QuorumAware',
    ...requeue(parts),
  };
}

function actsOf({ facts, walk, growth, roll }: Parts): readonly Act[] {
  const { size } = facts.set.spec.storage;
  const resize = growth.resize.map((claim): Act => ({ kind: 'resize', claim, size }));
  const uid = growth.recreate ? facts.statefulSet?.uid : undefined;
  const drain = walk.drain;
  // who stays takes up its work again; who is on its way out does not
  const undrain = facts.members.filter(
    ({ ordinal, name, pod, report }) =>
      ordinal < walk.replicas &&
      name !== walk.leaving &&
      pod?.isTerminating === false &&
      report !== undefined &&
      report.drain.state !== 'None',
  );
  return [
    ...resize,
    ...(uid === undefined ? [] : [{ kind: 'recreate', uid } as const]),
    ...(drain === undefined || drain.report?.drain.state !== 'None'
      ? []
      : [{ kind: 'drain', member: drain } as const]),
    ...undrain.map((member): Act => ({ kind: 'undrain', member })),
    ...(roll.next === undefined ? [] : [{ kind: 'replace', replacement: roll.next } as const]),
    ...planLeft(facts),
  ];
}

type Rule = (of: Parts) => Outcome | undefined;

const isSuspended: Rule = ({ facts }) => {
  if (!facts.set.spec.suspend) return undefined;
  const left = facts.members.filter(({ pod }) => pod !== undefined).length;
  if (left > 0) return reconciling('Suspended', `${left} pods stop; volumes and keys are kept`);
  return { ...ready('Every member is stopped; volumes and keys are kept'), reason: 'Suspended' };
};

const isForked: Rule = ({ facts }) => {
  const fork = findFork(facts);
  return fork === undefined ? undefined : stalled('QuorumAtRisk', fork);
};

const hasLostQuorum: Rule = ({ facts, known }) => {
  const [first] = facts.blind === undefined ? surelyLost(known) : [];
  return first === undefined ? undefined : reconciling('QuorumLost', describeLoss(first, facts.members));
};

const isWalking: Rule = ({ walk }) => {
  if (walk.leaving === undefined) return undefined;
  const message = walk.waits ?? `${walk.leaving} goes`;
  return walk.isStuck === true ? stalled('RolloutBlocked', message) : reconciling('Progressing', message);
};

const isReplacing: Rule = ({ roll }) => {
  if (roll.next !== undefined)
    return reconciling('Progressing', `Replaces ${roll.next.member.name}: ${roll.next.proof}`);
  if (roll.blocked !== undefined) return reconciling(roll.blocked.reason, roll.blocked.message);
  if (roll.outdated.length === 0) return undefined;
  const message = `update.strategy is OnDelete: delete ${roll.outdated.join(', ')} to replace them`;
  return reconciling('Progressing', message);
};

const isWaiting: Rule = ({ facts }) => {
  const missing = facts.members.filter(({ pod }) => pod === undefined || !pod.isReady || pod.isTerminating);
  const [first] = missing;
  if (first === undefined) return undefined;
  const names = missing.map(({ name, pod }) =>
    pod?.trouble === undefined ? name : `${name} (${pod.trouble})`,
  );
  return reconciling('WaitingForPods', `Not ready: ${names.join(', ')}`);
};

const isUnanswered: Rule = ({ facts }) => {
  if (facts.blind !== undefined) return reconciling('DependencyNotReady', facts.blind);
  const names = silent(facts.members);
  if (names.length === 0) return undefined;
  const isLasting = facts.members.some((each) => names.includes(each.name) && !isFresh(each, facts.nowMs));
  const reason = isLasting ? 'DependencyNotReady' : 'WaitingForPods';
  return reconciling(reason, `No answer from ${names.join(', ')}`);
};

const isGrowing: Rule = ({ growth }) => {
  const names = [...growth.resize.map(({ name }) => name), ...growth.growing];
  if (names.length === 0 && !growth.recreate) return undefined;
  return reconciling('Progressing', `Volumes grow: ${names.join(', ') || 'the template follows'}`);
};

/** A member that some register does not list yet, unless people approve members themselves. */
const isJoining: Rule = ({ facts, members }) => {
  if (!facts.set.spec.registration.autoApprove || facts.registers.length === 0) return undefined;
  const waiting = members.filter(
    ({ phase }) => phase === 'KeyReady' || phase === 'Registered' || phase === 'Syncing',
  );
  const [first] = waiting;
  if (first === undefined || sightings(facts.members).size === 0) return undefined;
  const names = waiting.map(({ name }) => name).join(', ');
  return reconciling('Progressing', `Not yet voting in every register: ${names}`);
};

/** A change of the template makes the pods outdated once its StatefulSet has a revision for it. */
const isUnseen: Rule = ({ facts }) => {
  if (facts.statefulSet === undefined && facts.isChanging !== true) return undefined;
  if (seenRevision(facts) !== undefined) return undefined;
  return reconciling('Progressing', 'The cluster has yet to see the last change');
};

/** The first that applies is what is said of the set. */
const rules: readonly Rule[] = [
  isSuspended,
  isForked,
  hasLostQuorum,
  isWalking,
  isReplacing,
  isWaiting,
  isUnanswered,
  isGrowing,
  isJoining,
  isUnseen,
];

function outcomeOf(parts: Parts): Outcome {
  for (const rule of rules) {
    const outcome = rule(parts);
    if (outcome !== undefined) return outcome;
  }
  const { members, known, numbers } = parts;
  const what = known.length === 1 ? '1 register' : `${known.length} registers`;
  const working = members.filter(({ phase }) => phase !== 'Removed').length;
  return ready(`${working} validators work for ${what}; ${numbers.quorum} must agree`);
}

/** Revision of the template that is wanted now; undefined while the cluster has yet to see it. */
function seenRevision({ isChanging, statefulSet }: SetFacts): string | undefined {
  return isChanging === true ? undefined : statefulSet?.updateRevision;
}

/** Pods that are as the set is wanted now. As long as nobody knows which these are, none is said to be. */
function updated(facts: SetFacts): number {
  const revision = seenRevision(facts);
  if (revision === undefined) return 0;
  return facts.members.filter(({ pod }) => pod?.revision === revision).length;
}

function lowest(versions: readonly string[]): string | undefined {
  const rank = (version: string) => version.split('-')[0]?.split('.').map(Number) ?? [];
  return versions.toSorted((left, right) => {
    const [a, b] = [rank(left), rank(right)];
    const place = [0, 1, 2].find((each) => (a[each] ?? 0) !== (b[each] ?? 0)) ?? 0;
    return (a[place] ?? 0) - (b[place] ?? 0);
  })[0];
}

function statusOf({ facts, numbers, known }: Parts): Readonly<Record<string, unknown>> {
  const { set } = facts;
  const pods = facts.members.filter(({ pod }) => pod !== undefined);
  const reports = facts.members.flatMap(({ report }) => report ?? []);
  const heights = reports.flatMap(({ registers }) => registers.map(({ height }) => height));
  const protocols = reports.map(({ protocolVersion }) => protocolVersion);
  return {
    replicas: pods.length,
    readyReplicas: pods.filter(({ pod }) => pod?.isReady === true).length,
    updatedReplicas: updated(facts),
    selector: `chancery.dev/validator-set=${set.metadata.name}`,
    size: numbers.size,
    quorum: numbers.quorum,
    faultTolerance: numbers.faultTolerance,
    nodeFaultTolerance: nodeFaultTolerance(facts.members, known),
    height: heights.length === 0 ? set.status.height : Math.max(...heights),
    version: lowest(reports.map(({ version }) => version)) ?? set.status.version,
    protocolVersion: protocols.length === 0 ? set.status.protocolVersion : Math.min(...protocols),
  };
}

function requeue({ facts, walk, roll, growth, known }: Parts): { readonly requeueAfterMs?: number } {
  const times = [
    ...(walk.leaving === undefined ? [] : [STEP_MS]),
    ...(growth.growing.length + growth.resize.length === 0 ? [] : [STEP_MS]),
    ...(roll.blocked?.retryAfterMs === undefined ? [] : [roll.blocked.retryAfterMs + 100]),
    ...(roll.outdated.length === 0 ? [] : [STEP_MS]),
    ...(known.every(({ undecided }) => undecided.length === 0) ? [] : [STEP_MS]),
    ...(facts.registers.length === 0 ? [] : [REFRESH_MS]),
  ];
  return times.length === 0 ? {} : { requeueAfterMs: Math.min(...times) };
}

/** Events that acts are told by, before they are done. */
export function eventOf(act: Act): EventDetails | undefined {
  switch (act.kind) {
    case 'replace': {
      const { isForced, proof } = act.replacement;
      return { type: isForced ? 'Warning' : 'Normal', reason: 'Progressing', action: 'Roll', note: proof };
    }
    case 'drain':
      return {
        type: 'Normal',
        reason: 'Progressing',
        action: 'Drain',
        note: `${validatorId(act.member.name)} leaves`,
      };
    case 'recreate':
      return {
        type: 'Normal',
        reason: 'Progressing',
        action: 'Grow',
        note: 'The StatefulSet is made anew around its pods',
      };
    case 'resize':
      return {
        type: 'Normal',
        reason: 'Progressing',
        action: 'Grow',
        note: `${act.claim.name} grows to ${act.size}`,
      };
    case 'discard':
      return {
        type: 'Normal',
        reason: 'Progressing',
        action: 'Discard',
        note: `${act.claim.name} goes: its member left 7 days ago`,
      };
    case 'note':
    case 'undrain':
      return undefined;
  }
}
