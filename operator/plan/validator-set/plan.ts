import type { ConditionUpdate, Outcome } from '../../api/conditions.ts';
import { validatorId } from '../../api/names.ts';
import type { EventDetails } from '../../kube/events.ts';
import { ready, reconciling, stalled } from '../outcome.ts';
import { conditionsOf, describeLoss, silentMembers } from './conditions.ts';
import type { ClaimFacts, MemberFacts, SetFacts } from './facts.ts';
import { type MemberStatus, memberStatuses } from './member-status.ts';
import {
  type Arithmetic,
  definitelyLost,
  nodeFaultTolerance,
  quorumArithmetic,
  reportsByRegister,
  type Tally,
  tallies,
} from './quorum.ts';
import { type ClaimAction, planRetainedClaims } from './retained-claims.ts';
import { findFork, isFresh, planRepair, planRollout, type Replacement, type RolloutPlan } from './rollout.ts';
import { planScaling, type ScalingStep } from './scaling.ts';
import { type Growth, planGrowth } from './storage.ts';

/** An action besides the apply of the children. */
export type Action =
  | { readonly kind: 'resize'; readonly claim: ClaimFacts; readonly size: string }
  | { readonly kind: 'recreate'; readonly uid: string }
  | { readonly kind: 'drain'; readonly member: MemberFacts }
  | { readonly kind: 'undrain'; readonly member: MemberFacts }
  | { readonly kind: 'replace'; readonly replacement: Replacement }
  | ClaimAction;

/** All decisions about a set. */
export interface SetPlan {
  readonly replicas: number;
  readonly arithmetic: Arithmetic;
  readonly actions: readonly Action[];
  readonly outcome: Outcome;
  readonly conditionUpdates: readonly ConditionUpdate[];
  readonly status: Readonly<Record<string, unknown>>;
  readonly members: readonly MemberStatus[];
  /** Pods are outdated and the operator replaces them. */
  readonly isRollingOut: boolean;
  readonly requeueAfterMs?: number;
}

/** Maximum age of the heights in the status of a set with registers. */
const refreshMs = 15_000;
const stepMs = 2_000;

interface PlanState {
  readonly facts: SetFacts;
  readonly scaling: ScalingStep;
  readonly growth: Growth;
  readonly rollout: RolloutPlan;
  readonly tallied: readonly Tally[];
  readonly arithmetic: Arithmetic;
  readonly members: readonly MemberStatus[];
}

/** Plans the next step of a set. */
export function planSet(facts: SetFacts): SetPlan {
  const scaling = planScaling(facts);
  const growth = planGrowth(facts);
  const tallied = tallies(facts);
  const { spec } = facts.set;
  const arithmetic = quorumArithmetic(spec.suspend ? spec.replicas : Math.max(scaling.replicas, 1), tallied);
  const members = memberStatuses(facts, scaling);
  // volumes and scaling first; a rollout waits for them anyway
  const rollout = spec.suspend
    ? { outdated: [] }
    : scaling.leaving === undefined
      ? planRollout(facts)
      : planRepair(facts);
  const state = { facts, scaling, growth, rollout, tallied, arithmetic, members };
  return {
    replicas: scaling.replicas,
    arithmetic,
    actions: actsOf(state),
    outcome: outcomeOf(state),
    conditionUpdates: conditionsOf(state),
    status: statusOf(state),
    members,
    isRollingOut: rollout.outdated.length > 0 && spec.update.strategy === 'QuorumAware',
    ...requeue(state),
  };
}

function actsOf({ facts, scaling, growth, rollout }: PlanState): readonly Action[] {
  const { size } = facts.set.spec.storage;
  const resize = growth.resize.map((claim): Action => ({ kind: 'resize', claim, size }));
  const uid = growth.recreate ? facts.statefulSet?.uid : undefined;
  const drain = scaling.drain;
  // a member that is not removed resumes its work
  const undrain = facts.members.filter(
    ({ ordinal, name, pod, report }) =>
      ordinal < scaling.replicas &&
      name !== scaling.leaving &&
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
    ...undrain.map((member): Action => ({ kind: 'undrain', member })),
    ...(rollout.next === undefined ? [] : [{ kind: 'replace', replacement: rollout.next } as const]),
    ...planRetainedClaims(facts),
  ];
}

type Rule = (of: PlanState) => Outcome | undefined;

const isSuspended: Rule = ({ facts }) => {
  if (!facts.set.spec.suspend) return undefined;
  const left = facts.members.filter(({ pod }) => pod !== undefined).length;
  if (left > 0) return reconciling('Suspended', `${left} pods are stopping; volumes and keys are kept`);
  return { ...ready('Every member is stopped; volumes and keys are kept'), reason: 'Suspended' };
};

const hasFork: Rule = ({ facts }) => {
  const fork = findFork(facts);
  return fork === undefined ? undefined : stalled('QuorumAtRisk', fork);
};

const hasLostQuorum: Rule = ({ facts, tallied }) => {
  const [first] = facts.unreachable === undefined ? definitelyLost(tallied) : [];
  return first === undefined ? undefined : reconciling('QuorumLost', describeLoss(first, facts.members));
};

const isScaling: Rule = ({ scaling }) => {
  if (scaling.leaving === undefined) return undefined;
  const message = scaling.waitingFor ?? `${scaling.leaving} is being removed`;
  return scaling.isStalled === true
    ? stalled('RolloutBlocked', message)
    : reconciling('Progressing', message);
};

const isReplacing: Rule = ({ rollout }) => {
  if (rollout.next !== undefined)
    return reconciling('Progressing', `Replacing ${rollout.next.member.name}: ${rollout.next.proof}`);
  if (rollout.blocked !== undefined) return reconciling(rollout.blocked.reason, rollout.blocked.message);
  if (rollout.outdated.length === 0) return undefined;
  const message = `update.strategy is OnDelete: delete ${rollout.outdated.join(', ')} to replace them`;
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
  if (facts.unreachable !== undefined) return reconciling('DependencyNotReady', facts.unreachable);
  const names = silentMembers(facts.members);
  if (names.length === 0) return undefined;
  const isLasting = facts.members.some((each) => names.includes(each.name) && !isFresh(each, facts.nowMs));
  const reason = isLasting ? 'DependencyNotReady' : 'WaitingForPods';
  return reconciling(reason, `No answer from ${names.join(', ')}`);
};

const isGrowing: Rule = ({ growth }) => {
  const names = [...growth.resize.map(({ name }) => name), ...growth.growing];
  if (names.length === 0 && !growth.recreate) return undefined;
  return reconciling(
    'Progressing',
    `Volumes are being expanded: ${names.join(', ') || 'the StatefulSet is recreated with the new size'}`,
  );
};

/** A member that is not yet listed by every register; not checked when people approve members themselves. */
const isJoining: Rule = ({ facts, members }) => {
  if (!facts.set.spec.registration.autoApprove || facts.registers.length === 0) return undefined;
  const waiting = members.filter(
    ({ phase }) => phase === 'KeyReady' || phase === 'Registered' || phase === 'Syncing',
  );
  const [first] = waiting;
  if (first === undefined || reportsByRegister(facts.members).size === 0) return undefined;
  const names = waiting.map(({ name }) => name).join(', ');
  return reconciling('Progressing', `Not yet voting in every register: ${names}`);
};

/** The StatefulSet controller has not observed the last change of the template. */
const isUnobserved: Rule = ({ facts }) => {
  if (facts.statefulSet === undefined && facts.isChanging !== true) return undefined;
  if (observedRevision(facts) !== undefined) return undefined;
  return reconciling('Progressing', 'Waiting for Kubernetes to observe the last change of the StatefulSet');
};

/** Rules for the outcome; the first that applies wins. */
const rules: readonly Rule[] = [
  isSuspended,
  hasFork,
  hasLostQuorum,
  isScaling,
  isReplacing,
  isWaiting,
  isUnanswered,
  isGrowing,
  isJoining,
  isUnobserved,
];

function outcomeOf(state: PlanState): Outcome {
  for (const rule of rules) {
    const outcome = rule(state);
    if (outcome !== undefined) return outcome;
  }
  const { members, tallied, arithmetic } = state;
  const what = tallied.length === 1 ? '1 register' : `${tallied.length} registers`;
  const working = members.filter(({ phase }) => phase !== 'Removed').length;
  return ready(`${working} validators serve ${what}; ${arithmetic.quorum} must agree`);
}

/** Revision of the current template; undefined until it is observed. */
function observedRevision({ isChanging, statefulSet }: SetFacts): string | undefined {
  return isChanging === true ? undefined : statefulSet?.updateRevision;
}

/** Number of up-to-date pods; 0 while the current revision is unknown. */
function updated(facts: SetFacts): number {
  const revision = observedRevision(facts);
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

function statusOf({ facts, arithmetic, tallied }: PlanState): Readonly<Record<string, unknown>> {
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
    size: arithmetic.size,
    quorum: arithmetic.quorum,
    faultTolerance: arithmetic.faultTolerance,
    nodeFaultTolerance: nodeFaultTolerance(facts.members, tallied),
    height: heights.length === 0 ? set.status.height : Math.max(...heights),
    version: lowest(reports.map(({ version }) => version)) ?? set.status.version,
    protocolVersion: protocols.length === 0 ? set.status.protocolVersion : Math.min(...protocols),
  };
}

function requeue({ facts, scaling, rollout, growth, tallied }: PlanState): {
  readonly requeueAfterMs?: number;
} {
  const times = [
    ...(scaling.leaving === undefined ? [] : [stepMs]),
    ...(growth.growing.length + growth.resize.length === 0 ? [] : [stepMs]),
    ...(rollout.blocked?.retryAfterMs === undefined ? [] : [rollout.blocked.retryAfterMs + 100]),
    ...(rollout.outdated.length === 0 ? [] : [stepMs]),
    ...(tallied.every(({ undecided }) => undecided.length === 0) ? [] : [stepMs]),
    ...(facts.registers.length === 0 ? [] : [refreshMs]),
  ];
  return times.length === 0 ? {} : { requeueAfterMs: Math.min(...times) };
}

/** The event of an action. */
export function eventOf(action: Action): EventDetails | undefined {
  switch (action.kind) {
    case 'replace': {
      const { isForced, proof } = action.replacement;
      return { type: isForced ? 'Warning' : 'Normal', reason: 'Progressing', action: 'Roll', note: proof };
    }
    case 'drain':
      return {
        type: 'Normal',
        reason: 'Progressing',
        action: 'Drain',
        note: `${validatorId(action.member.name)} is drained before its removal`,
      };
    case 'recreate':
      return {
        type: 'Normal',
        reason: 'Progressing',
        action: 'Grow',
        note: 'The StatefulSet is recreated around its pods, with a larger claim template',
      };
    case 'resize':
      return {
        type: 'Normal',
        reason: 'Progressing',
        action: 'Grow',
        note: `${action.claim.name} is expanded to ${action.size}`,
      };
    case 'discard':
      return {
        type: 'Normal',
        reason: 'Progressing',
        action: 'Discard',
        note: `${action.claim.name} is deleted: its member was removed 7 days ago`,
      };
    case 'note':
    case 'undrain':
      return undefined;
  }
}
