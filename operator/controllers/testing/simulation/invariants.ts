import { quorum } from '#core/ledger/consensus.ts';
import { FINALIZER, validatorId } from '../../../api/names.ts';
import type { ApiRequest } from '../../../kube/api.ts';
import { configMaps, pods, statefulSets, volumeClaims } from '../../../kube/kinds.ts';
import { leases } from '../../../kube/leader.ts';
import { isRecord, type KubeObject } from '../../../kube/resource.ts';
import type { ClusterState } from '../../../kube/testing/cluster-state.ts';
import { at } from '../../../kube/testing/fixtures.ts';
import type { RegisterFacts } from '../../../plan/register/facts.ts';
import type { FakeOrganizations } from '../../../platform/testing/fake-organizations.ts';
import type { FakeRegisters } from '../../../platform/testing/fake-registers.ts';
import { ORPHANS_CONFIG_MAP } from '../../orphans/record.ts';
import { registers, tenants } from '../../reconciler/resources.ts';
import { type Kubernetes, ordinalOf } from './kubernetes.ts';

export interface ObservedWorld {
  readonly state: ClusterState;
  readonly kubernetes: Kubernetes;
  readonly organizations: FakeOrganizations;
  readonly ledgers: FakeRegisters;
  readonly nowMs: () => number;
}

const writes = new Set(['create', 'update', 'patch', 'delete']);
/** Validity of a member's answer: 5 s for the round, and the calls after it. */
const FRESH_MS = 8_000;

/** Registers that depend on their validators. */
export function sealing(ledgers: FakeRegisters): readonly RegisterFacts[] {
  return ledgers
    .all()
    .filter(
      ({ phase, deletion }) => deletion === undefined && (phase === 'Online' || phase === 'GenesisSubmitted'),
    );
}

/** Checks the invariants at every call and records violations. */
export class InvariantChecker {
  readonly violations: string[] = [];
  /** Writes that reached the API server, without those of the lease. */
  readonly writes: string[] = [];
  readonly #world: ObservedWorld;
  readonly #answeredAt = new Map<string, number>();
  readonly #seen = new Map<string, number>();
  #memberLostAtMs = -Infinity;

  constructor(world: ObservedWorld) {
    this.#world = world;
  }

  /** A member has answered a query. */
  answered(pod: string): void {
    this.#answeredAt.set(pod, this.#world.nowMs());
  }

  /** The simulation has removed a member; earlier answers prove nothing about it. */
  lost(): void {
    this.#memberLostAtMs = this.#world.nowMs();
  }

  /** Checks a call of the API server before it is carried out. */
  call(identity: string, request: ApiRequest): void {
    if (!writes.has(request.verb) || request.resource === leases) return;
    const { verb, resource, subresource, name = '' } = request;
    const what = `${verb} ${resource.plural}${subresource === undefined ? '' : `/${subresource}`} ${name}`;
    this.writes.push(`${what} ${JSON.stringify(request.body ?? '').slice(0, 200)}`);
    this.#checkFence(identity, what);
    if (resource === volumeClaims && verb === 'delete')
      this.#violation(`a volume claim was deleted: ${name}`);
    if (resource === pods && (verb === 'delete' || subresource === 'eviction'))
      this.#checkQuorum([name], what);
    if (resource === statefulSets) this.#checkStatefulSet(request);
    if (subresource === 'status') this.#checkStatus(request);
    const { finalizers } = metadataOf(request.body);
    if (Array.isArray(finalizers) && !finalizers.includes(FINALIZER)) this.#checkFinalizer(request);
  }

  /** Checks a call of a service that changes something. */
  act(identity: string, what: string): void {
    this.#checkFence(identity, what);
  }

  /** Checks that not more objects exist than resources that may have one. */
  count(surplus: number, what: string): void {
    if (surplus > 0) this.#violation(`${surplus} ${what} more than resources`);
  }

  #violation(what: string): void {
    this.violations.push(`${this.#world.nowMs()}: ${what}`);
  }

  #checkFence(identity: string, what: string): void {
    const lease = this.#world.state.list(at(leases))[0]?.['spec'];
    const holder = isRecord(lease) ? lease['holderIdentity'] : undefined;
    if (holder !== identity)
      this.#violation(`${identity} wrote while ${String(holder)} held the lease: ${what}`);
  }

  /** Checks that every register keeps its quorum without the deleted pods, and that this was proven recently. */
  #checkQuorum(names: readonly string[], what: string): void {
    const { kubernetes, ledgers, nowMs } = this.#world;
    const gone = names.filter((name) => kubernetes.isUp(name)).map(validatorId);
    for (const { registerId, validators } of sealing(ledgers)) {
      const listed = validators.members.map((each) => each.validatorId);
      const live = listed.filter((id) => kubernetes.isUp(podOf(id)));
      const left = live.filter((id) => !gone.includes(id));
      const needed = quorum(listed.length);
      if (left.length === live.length || listed.length <= 1) continue;
      if (live.length < needed || left.length >= needed) continue;
      const provenMs = Math.min(...left.map((id) => this.#answeredAt.get(podOf(id)) ?? -Infinity));
      // the loss of a member after its answer is not an error of the operator
      const isProven = nowMs() - provenMs <= FRESH_MS && this.#memberLostAtMs >= provenMs;
      if (!isProven) this.#violation(`${what}: register ${registerId} keeps ${left.length} of ${needed}`);
    }
  }

  #checkStatefulSet(request: ApiRequest): void {
    if (request.verb === 'patch') this.#checkScale(request);
    if (request.verb === 'delete') this.#checkOrphaning(request);
  }

  #checkScale({ name = '', body }: ApiRequest): void {
    const { kubernetes, ledgers } = this.#world;
    const before = replicasOf(kubernetes.find(statefulSets, name));
    const after = replicasOf(body);
    if (before === undefined || after === undefined || after >= before) return;
    if (before - after > 1) this.#violation(`${name} loses ${before - after} members at once`);
    const listed = sealing(ledgers).flatMap(({ validators }) => validators.members);
    const going = kubernetes.list(pods).filter((pod) => ordinalOf(name, pod) >= after);
    for (const { metadata } of going) {
      const id = validatorId(metadata.name);
      if (listed.some((each) => each.validatorId === id))
        this.#violation(`${id} is removed while a register lists it`);
    }
  }

  #checkOrphaning({ name = '', body }: ApiRequest): void {
    const policy = isRecord(body) ? body['propagationPolicy'] : undefined;
    const owner = this.#world.kubernetes.find(statefulSets, name);
    if (owner !== undefined && policy !== 'Orphan')
      this.#violation(`StatefulSet ${name} was deleted with its pods`);
  }

  #checkStatus({ resource, name = '', body }: ApiRequest): void {
    const object = this.#world.kubernetes.find(resource, name);
    const status = isRecord(body) && isRecord(body['status']) ? body['status'] : {};
    const observed = status['observedGeneration'];
    if (object === undefined || typeof observed !== 'number') return;
    const { uid = '', generation = 0 } = object.metadata;
    if (metadataOf(body).uid !== uid) return;
    const last = this.#seen.get(uid) ?? 0;
    if (observed < last || observed > generation)
      this.#violation(
        `${resource.kind} ${name}: observedGeneration ${observed} after ${last} of ${generation}`,
      );
    this.#seen.set(uid, Math.max(last, observed));
  }

  #checkFinalizer({ resource, name = '', body }: ApiRequest): void {
    const object = this.#world.kubernetes.find(resource, name);
    const uid = object?.metadata.uid ?? '';
    if (object === undefined || metadataOf(body).uid !== uid) return;
    if (!this.#isCleanedUp(resource, object))
      this.#violation(`${resource.kind} ${name} was removed before its cleanup`);
  }

  #isCleanedUp(resource: ApiRequest['resource'], object: KubeObject): boolean {
    const { kubernetes, organizations, ledgers } = this.#world;
    const uid = object.metadata.uid ?? '';
    const orphans = kubernetes.find(configMaps, ORPHANS_CONFIG_MAP)?.['data'];
    if (isRecord(orphans) && orphans[uid] !== undefined) return true;
    if (resource === tenants) return organizations.stateOf(uid) !== 'bound';
    if (resource === registers) return ledgers.stateOf(uid) !== 'bound';
    const users = kubernetes.list(registers).filter(({ spec }) => {
      const reference = isRecord(spec) ? spec['validatorSetRef'] : undefined;
      return isRecord(reference) && reference['name'] === object.metadata.name;
    });
    return users.length === 0;
  }
}

function podOf(id: string): string {
  return id.replace(/^validator-/, '');
}

function metadataOf(body: unknown): { readonly uid?: unknown; readonly finalizers?: unknown } {
  return isRecord(body) && isRecord(body['metadata']) ? body['metadata'] : {};
}

function replicasOf(body: unknown): number | undefined {
  const spec = isRecord(body) ? body['spec'] : undefined;
  const replicas = isRecord(spec) ? spec['replicas'] : undefined;
  return typeof replicas === 'number' ? replicas : undefined;
}
