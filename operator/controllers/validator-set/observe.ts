import { findCondition } from '../../api/conditions.ts';
import { annotations, claimName, findOrdinal, labels, podName, validatorSetNames } from '../../api/names.ts';
import type { Register } from '../../api/register.ts';
import type { ValidatorSet } from '../../api/validator-set.ts';
import { isRecord, type KubeObject } from '../../kube/resource.ts';
import type {
  BoundRegister,
  ClaimFacts,
  MemberFacts,
  PodFacts,
  RetainedClaim,
  StatefulSetFacts,
} from '../../plan/validator-set/facts.ts';

/** Facts from raw objects; missing or malformed members count as unknown. */

type Tree = Readonly<Record<string, unknown>>;

function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((found, member) => (isRecord(found) ? found[member] : undefined), value);
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function records(value: unknown): readonly Tree[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function conditionOf(object: KubeObject, type: string): Tree | undefined {
  return records(at(object, 'status', 'conditions')).find((each) => each['type'] === type);
}

/** Reason why the container of a pod does not run. */
function containerProblem(pod: KubeObject): string | undefined {
  const [container] = records(at(pod, 'status', 'containerStatuses'));
  const waiting = text(at(container, 'state', 'waiting', 'reason'));
  if (waiting !== undefined && waiting !== 'ContainerCreating' && waiting !== 'PodInitializing')
    return waiting;
  const ended = text(at(container, 'state', 'terminated', 'reason'));
  if (ended !== undefined) return ended;
  const scheduled = conditionOf(pod, 'PodScheduled');
  return scheduled?.['status'] === 'False' ? text(scheduled['reason']) : undefined;
}

export function podFacts(pod: KubeObject): PodFacts {
  const { metadata } = pod;
  const ready = conditionOf(pod, 'Ready');
  const [container] = records(at(pod, 'status', 'containerStatuses'));
  const since = Date.parse(text(ready?.['lastTransitionTime']) ?? metadata.creationTimestamp ?? '');
  return {
    uid: metadata.uid ?? '',
    isReady: ready?.['status'] === 'True',
    readySinceMs: Number.isNaN(since) ? Infinity : since,
    isTerminating: metadata.deletionTimestamp !== undefined,
    isBroken: container === undefined ? ready?.['status'] !== 'True' : container['ready'] === false,
    revision: metadata.labels?.['controller-revision-hash'] ?? '',
    node: text(at(pod, 'spec', 'nodeName')),
    address: text(at(pod, 'status', 'podIP')),
    trouble: containerProblem(pod),
    isForced: metadata.annotations?.[annotations.forceRoll] === metadata.uid,
  };
}

function claimFacts(claim: KubeObject): ClaimFacts {
  const { name, uid = '' } = claim.metadata;
  const conditions = records(at(claim, 'status', 'conditions'))
    .filter((each) => each['status'] === 'True')
    .flatMap((each) => text(each['type']) ?? []);
  return {
    name,
    uid,
    requested: text(at(claim, 'spec', 'resources', 'requests', 'storage')) ?? '0',
    capacity: text(at(claim, 'status', 'capacity', 'storage')),
    conditions,
  };
}

export function statefulSetFacts(object: KubeObject): StatefulSetFacts {
  const { uid = '', generation } = object.metadata;
  const replicas = at(object, 'spec', 'replicas');
  const isSeen = at(object, 'status', 'observedGeneration') === generation;
  const [template] = records(at(object, 'spec', 'volumeClaimTemplates'));
  return {
    uid,
    replicas: typeof replicas === 'number' ? replicas : 0,
    // an unobserved change of the template has no revision yet
    updateRevision: isSeen ? text(at(object, 'status', 'updateRevision')) : undefined,
    claimSize: text(at(template, 'spec', 'resources', 'requests', 'storage')),
  };
}

export function boundRegister(register: Register): BoundRegister {
  const { metadata, status } = register;
  // the register was deleted outside Kubernetes while its resource exists
  const isDeleted = status.phase === 'Deleting';
  const stalled = findCondition(status.conditions, 'Stalled');
  return {
    name: metadata.name,
    registerId: status.registerId,
    isDeleting: metadata.deletionTimestamp !== undefined || isDeleted,
    blocked: stalled?.status === 'True' ? `${stalled.reason}: ${stalled.message}` : undefined,
  };
}

/** Looks up the last poll result of a pod. */
type PollResultOf = (
  pod: PodFacts,
) => Pick<MemberFacts, 'report' | 'answeredAtMs' | 'isUnqueried'> | undefined;

/** Number of members to consider: desired, existing, or stopped with the set. */
export function memberCount({ spec, status }: ValidatorSet, replicas: number): number {
  const existing = (status.members ?? []).filter(({ phase }) => phase !== 'Removed');
  const stopped = existing.map(({ ordinal }) => (ordinal ?? -1) + 1);
  const known = spec.suspend || replicas === 0 ? stopped : [];
  return Math.max(spec.suspend ? 0 : spec.replicas, replicas, ...known);
}

/** Members of a set: desired and existing ones. */
export function memberFacts(
  set: ValidatorSet,
  replicas: number,
  found: { readonly pods: readonly KubeObject[]; readonly claims: readonly KubeObject[] },
  pollResultOf: PollResultOf,
): readonly MemberFacts[] {
  const pods = new Map(found.pods.map((pod) => [pod.metadata.name, podFacts(pod)]));
  const claims = new Map(found.claims.map((claim) => [claim.metadata.name, claimFacts(claim)]));
  const { name: setName } = set.metadata;
  const ordinals = [...pods.keys()].flatMap((pod) => findOrdinal(setName, pod) ?? []);
  const length = Math.max(replicas, ...ordinals.map((each) => each + 1));
  return Array.from({ length }, (_, ordinal) => {
    const name = podName(setName, ordinal);
    const pod = pods.get(name);
    const claim = claims.get(claimName(setName, ordinal));
    return { ordinal, name, pod, claim, ...(pod === undefined ? {} : pollResultOf(pod)) };
  });
}

/** Claims of the set without a member, and claims that are annotated as left. */
export function retainedClaims(
  set: ValidatorSet,
  members: readonly MemberFacts[],
  claims: readonly KubeObject[],
): readonly RetainedClaim[] {
  const { name: setName } = set.metadata;
  const { claim: prefix } = validatorSetNames(setName);
  const taken = new Set(members.map(({ ordinal }) => ordinal));
  return claims.flatMap(({ metadata }) => {
    const { name, uid = '', resourceVersion = '', deletionTimestamp } = metadata;
    const pod = name.startsWith(`${prefix}-`) ? name.slice(prefix.length + 1) : '';
    const ordinal = findOrdinal(setName, pod);
    const noted = Date.parse(metadata.annotations?.[labels.leftAt] ?? '');
    const leftAtMs = Number.isNaN(noted) ? undefined : noted;
    const isOdd = ordinal === undefined || deletionTimestamp !== undefined;
    if (isOdd || (taken.has(ordinal) && leftAtMs === undefined)) return [];
    return [{ ordinal, name, uid, resourceVersion, leftAtMs }];
  });
}
