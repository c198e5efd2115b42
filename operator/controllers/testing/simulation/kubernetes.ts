import type { Timing } from '#kit/clock/timing.ts';
import { claimName, labels, podName } from '../../../api/names.ts';
import { hashOf } from '../../../kube/compare.ts';
import {
  configMaps,
  disruptionBudgets,
  ingresses,
  networkPolicies,
  pods,
  serviceAccounts,
  services,
  statefulSets,
  volumeClaims,
} from '../../../kube/kinds.ts';
import {
  apiVersionOf,
  controllerOf,
  isRecord,
  type KubeObject,
  type Resource,
} from '../../../kube/resource.ts';
import { type ClusterState, StatusError, type Target } from '../../../kube/testing/cluster-state.ts';
import { at, make } from '../../../kube/testing/fixtures.ts';
import { registers, tenants, validatorSets } from '../../reconciler/resources.ts';

/** Kinds that are garbage-collected with their owners. */
export const collected: readonly Resource[] = [
  configMaps,
  services,
  serviceAccounts,
  statefulSets,
  disruptionBudgets,
  networkPolicies,
  ingresses,
  pods,
];
const owners: readonly Resource[] = [validatorSets, registers, tenants, statefulSets];
const STARTUP_MS = 3_000;

function member(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((found, name) => (isRecord(found) ? found[name] : undefined), value);
}

/** Target of an object. */
export function targetOf(resource: Resource, object: KubeObject): Target {
  return at(resource, object.metadata.name);
}

/** Simulated Kubernetes controllers: StatefulSets, kubelets, volumes, garbage collection and evictions. */
export class Kubernetes {
  /** Unreachable pods. */
  readonly cut = new Set<string>();
  readonly #state: ClusterState;
  readonly #timing: Timing;
  #addresses = 0;

  constructor(state: ClusterState, timing: Timing) {
    this.#state = state;
    this.#timing = timing;
  }

  list(resource: Resource): readonly KubeObject[] {
    return this.#state.list(at(resource));
  }

  find(resource: Resource, name: string): KubeObject | undefined {
    return this.list(resource).find(({ metadata }) => metadata.name === name);
  }

  /** Whether a member runs and is reachable. */
  isUp(pod: string): boolean {
    return isReady(this.find(pods, pod)) && !this.cut.has(pod);
  }

  /** Deletes an object like kubectl delete. */
  delete(resource: Resource, name: string): void {
    const object = this.find(resource, name);
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return;
    const target = targetOf(resource, object);
    this.#state.delete(target, undefined);
    if (this.find(resource, name) === undefined) return;
    this.#state.merge(target, { metadata: { deletionTimestamp: this.#now() } });
  }

  /** Runs all controllers once. */
  tick(): void {
    for (const set of this.list(statefulSets)) this.#runStatefulSet(set);
    for (const pod of this.list(pods)) this.#runPod(pod);
    for (const claim of this.list(volumeClaims)) this.#growVolume(claim);
    this.#collect();
  }

  /**
   * Evicts a pod like the API server.
   * @throws StatusError NotFound, Conflict for another pod of that name, TooManyRequests by a disruption budget
   */
  evict(name: string, body: unknown): void {
    const pod = this.find(pods, name);
    if (pod === undefined) throw new StatusError(404, 'NotFound');
    const uid = member(body, 'deleteOptions', 'preconditions', 'uid');
    if (uid !== pod.metadata.uid) throw new StatusError(409, 'Conflict', 'uid precondition failed');
    if (!this.#isEvictable(pod)) throw new StatusError(429, 'TooManyRequests', 'disruption budget');
    this.delete(pods, name);
  }

  /**
   * Whether the disruption budget of a pod's set allows its eviction. As in the disruption controller, missing pods are
   * unavailable, and a budget whose pods have no StatefulSet allows nothing.
   */
  #isEvictable(pod: KubeObject): boolean {
    const set = pod.metadata.labels?.[labels.validatorSet] ?? '';
    const budget = this.find(disruptionBudgets, set);
    if (budget === undefined) return true;
    if (!isReady(pod) && member(budget, 'spec', 'unhealthyPodEvictionPolicy') === 'AlwaysAllow') return true;
    const replicas = member(this.find(statefulSets, set), 'spec', 'replicas');
    const desired = Number(replicas) - Number(member(budget, 'spec', 'maxUnavailable'));
    return this.#podsOf(set).filter(isReady).length > desired;
  }

  /** Orphans the pods of a deleted StatefulSet. */
  orphan(uid: string): void {
    for (const pod of this.list(pods)) {
      if (controllerOf(pod)?.uid !== uid) continue;
      this.#state.merge(targetOf(pods, pod), { metadata: { ownerReferences: null } });
    }
  }

  #now(): string {
    return new Date(this.#timing.nowMs()).toISOString();
  }

  #podsOf(set: string | undefined): readonly KubeObject[] {
    return this.list(pods).filter(({ metadata }) => metadata.labels?.[labels.validatorSet] === set);
  }

  #runStatefulSet(set: KubeObject): void {
    const { name, generation } = set.metadata;
    const replicas = Number(member(set, 'spec', 'replicas') ?? 0);
    const updateRevision = `${name}-${hashOf(member(set, 'spec', 'template')).slice(0, 10)}`;
    if (member(set, 'status', 'observedGeneration') !== generation) {
      const status = { observedGeneration: generation, updateRevision };
      this.#state.merge(targetOf(statefulSets, set), { status });
    }
    for (const pod of this.#podsOf(name)) {
      if (controllerOf(pod) === undefined) this.#adopt(set, pod);
      if (ordinalOf(name, pod) >= replicas) this.delete(pods, pod.metadata.name);
    }
    for (let ordinal = 0; ordinal < replicas; ordinal += 1) {
      if (this.find(pods, podName(name, ordinal)) === undefined) this.#makePod(set, ordinal, updateRevision);
    }
  }

  #adopt(set: KubeObject, pod: KubeObject): void {
    this.#state.merge(targetOf(pods, pod), { metadata: { ownerReferences: [referenceTo(set)] } });
  }

  #makePod(set: KubeObject, ordinal: number, revision: string): void {
    const { name } = set.metadata;
    const template = member(set, 'spec', 'template');
    const metadata = {
      labels: {
        ...(member(template, 'metadata', 'labels') as Readonly<Record<string, string>>),
        'controller-revision-hash': revision,
      },
      creationTimestamp: this.#now(),
      ownerReferences: [referenceTo(set)],
    };
    this.#addresses += 1;
    const podIP = `10.0.${this.#addresses >> 8}.${this.#addresses & 255}`;
    const [container] = member(template, 'spec', 'containers') as readonly unknown[];
    const status = { podIP, ...condition('False', this.#now()) };
    const pod = make(pods, podName(name, ordinal), { spec: { containers: [container] }, status }, metadata);
    this.#state.create(at(pods), pod);
    const claim = claimName(name, ordinal);
    if (this.find(volumeClaims, claim) !== undefined) return;
    const [desired] = member(set, 'spec', 'volumeClaimTemplates') as readonly KubeObject[];
    const storage = member(desired, 'spec', 'resources', 'requests', 'storage');
    const content = { spec: desired?.['spec'], status: { capacity: { storage } } };
    const own = { labels: desired?.metadata.labels ?? {} };
    this.#state.create(at(volumeClaims), make(volumeClaims, claim, content, own));
  }

  #runPod(pod: KubeObject): void {
    if (isReady(pod)) return;
    const [container] = member(pod, 'spec', 'containers') as readonly unknown[];
    const isBad = String(member(container, 'image')).includes('bad');
    const ageMs = this.#timing.nowMs() - Date.parse(pod.metadata.creationTimestamp ?? '');
    if (isBad || ageMs < STARTUP_MS) return;
    this.#state.merge(targetOf(pods, pod), { status: condition('True', this.#now()) });
  }

  #growVolume(claim: KubeObject): void {
    const storage = member(claim, 'spec', 'resources', 'requests', 'storage');
    if (member(claim, 'status', 'capacity', 'storage') === storage) return;
    this.#state.merge(targetOf(volumeClaims, claim), { status: { capacity: { storage } } });
  }

  #collect(): void {
    const alive = new Set(
      owners.flatMap((resource) => this.list(resource).map(({ metadata }) => metadata.uid)),
    );
    for (const resource of collected) {
      for (const object of this.list(resource)) {
        const owner = controllerOf(object);
        if (owner !== undefined && !alive.has(owner.uid)) this.delete(resource, object.metadata.name);
      }
    }
  }
}

function condition(status: 'True' | 'False', now: string) {
  const ready = status === 'True';
  const state = ready ? { running: {} } : { waiting: { reason: 'ContainerCreating' } };
  return {
    conditions: [{ type: 'Ready', status, lastTransitionTime: now }],
    containerStatuses: [{ name: 'validator', ready, state }],
  };
}

function isReady(pod: KubeObject | undefined): boolean {
  const conditions = member(pod, 'status', 'conditions');
  return Array.isArray(conditions) && member(conditions[0], 'status') === 'True';
}

/** The ordinal of a pod in the set of that name. */
export function ordinalOf(set: string, { metadata }: KubeObject): number {
  return Number(metadata.name.slice(set.length + 1));
}

function referenceTo({ metadata }: KubeObject) {
  const { name, uid = '' } = metadata;
  const { kind } = statefulSets;
  return { apiVersion: apiVersionOf(statefulSets), kind, name, uid, controller: true };
}
