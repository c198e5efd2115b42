import { labels, podName, validatorId } from '../../api/names.ts';
import { parseRegister } from '../../api/register.ts';
import { parseValidatorSet, type ValidatorSet } from '../../api/validator-set.ts';
import type { EventDetails } from '../../kube/events.ts';
import {
  configMaps,
  disruptionBudgets,
  networkPolicies,
  podMonitors,
  pods,
  serviceAccounts,
  services,
  statefulSets,
  volumeClaims,
} from '../../kube/kinds.ts';
import { controllerOf, type KubeObject, keyOf } from '../../kube/resource.ts';
import type { Change } from '../../kube/store.ts';
import type { SetFacts } from '../../plan/validator-set/facts.ts';
import { type Action, eventOf, planSet, type SetPlan } from '../../plan/validator-set/plan.ts';
import { renderValidatorSet } from '../../plan/validator-set/render/children.ts';
import { podMonitor } from '../../plan/validator-set/render/monitor.ts';
import type { Principals } from '../../platform/principals.ts';
import type { Members } from '../../platform/validators.ts';
import type { Dependencies } from '../reconciler/dependencies.ts';
import { outcomeOf } from '../reconciler/error-outcome.ts';
import type {
  FinalizeRequest,
  FinalizeResult,
  KindHandler,
  ReconcileRequest,
  ReconcileResult,
} from '../reconciler/kind.ts';
import { createReconciler, type Reconciler } from '../reconciler/reconciler.ts';
import { byReference, registers, setIndex, validatorSets } from '../reconciler/resources.ts';
import { MemberPoller } from './member-poller.ts';
import { boundRegister, memberCount, memberFacts, retainedClaims, statefulSetFacts } from './observe.ts';
import { perform } from './perform-action.ts';
import { Registration } from './registration.ts';

interface ValidatorSetOptions {
  readonly dependencies: Dependencies;
  readonly members: Members;
  readonly principals: Principals;
}

type ObjectRequest = ReconcileRequest<ValidatorSet>;

const registerAgainMs = 10_000;
/** Largest number of concurrent rollouts, so that an upgrade of the installation does not affect all sets at once. */
const maxConcurrentRollouts = 2;

/** The controller of ValidatorSets. */
export function createValidatorSetController({
  dependencies,
  members,
  principals,
}: ValidatorSetOptions): Reconciler {
  const { timing, runtime } = dependencies;
  const watch = new MemberPoller({
    members,
    timing,
    log: runtime.log,
    onChange: (key) => reconciler.controller.queue.add(key),
  });
  const sets = new SetReconciler(dependencies, members, {
    watch,
    principals,
    registration: new Registration(principals, timing),
  });
  const reconciler = createReconciler(dependencies, kindOf(sets));
  return {
    ...reconciler,
    stop: async (graceMs) => {
      watch.stop();
      await reconciler.stop(graceMs);
      members.stop();
      principals.stop();
    },
  };
}

function kindOf(sets: SetReconciler): KindHandler<ValidatorSet> {
  return {
    kind: 'ValidatorSet',
    resource: validatorSets,
    parse: parseValidatorSet,
    children: [
      serviceAccounts,
      configMaps,
      services,
      networkPolicies,
      disruptionBudgets,
      statefulSets,
      podMonitors,
    ],
    reads: [pods, volumeClaims, registers],
    relatedResources: [
      { resource: pods, keysOf: ({ object }) => sets.keysOfMember(object) },
      { resource: volumeClaims, keysOf: ({ object }) => sets.keysOfMember(object) },
      { resource: registers, keysOf: (change) => sets.keysOfRegister(change) },
    ],
    reconcile: (request) => sets.reconcile(request),
    finalize: (request) => sets.finalize(request),
    forget: (uid) => sets.forget(uid),
  };
}

/** Key of the set that a Register refers to. */
const setOf = byReference('validatorSetRef');

interface SetServices {
  readonly principals: Principals;
  readonly watch: MemberPoller;
  readonly registration: Registration;
}

interface ActionsResult {
  /** Events of the actions that were carried out. */
  readonly events: readonly EventDetails[];
  /** Set when an action failed; later ones were not carried out. */
  readonly failure?: Required<Pick<ReconcileResult, 'outcome' | 'failure'>>;
}

class SetReconciler {
  readonly #dependencies: Dependencies;
  readonly #members: Members;
  readonly #services: SetServices;
  /** Uid of the pod that was evicted last, by uid of the set. */
  readonly #evicted = new Map<string, string>();
  readonly #keys = new Map<string, string>();
  /** Uids of the sets with a rollout in progress. */
  readonly #rollingOut = new Set<string>();

  constructor(dependencies: Dependencies, members: Members, services: SetServices) {
    this.#dependencies = dependencies;
    this.#members = members;
    this.#services = services;
  }

  async reconcile(request: ObjectRequest): Promise<ReconcileResult> {
    const { resource: set, installation } = request;
    this.#keys.set(set.metadata.uid, keyOf(set.metadata));
    const { facts, plan } = await this.#plan(request);
    const { replicas, arithmetic } = plan;
    const { faultTolerance } = arithmetic;
    const claimSize = facts.statefulSet?.claimSize ?? set.spec.storage.size;
    const renderInput = { set, installation, replicas, faultTolerance, claimSize };
    const monitor = this.#dependencies.caches.isServed(podMonitors) ? podMonitor(renderInput) : [];
    const { isUncontested, written } = await request.applyChildren([
      ...renderValidatorSet(renderInput),
      ...monitor,
    ]);
    const now = written.has(statefulSets.kind) ? planSet({ ...facts, isChanging: true }) : plan;
    // no actions while another manager keeps changing the children
    const { events, failure } = await this.#act(request, isUncontested ? now.actions : []);
    if (!now.isRollingOut) this.#rollingOut.delete(set.metadata.uid);
    return { ...(await this.#register(request, now)), ...failure, events };
  }

  /**
   * Carries out actions in order until one fails. A failure does not stop the report of the members: a pod that may not be
   * evicted now may become evictable only after the Register controller has read in this report that it can join.
   * @throws errors that are not reported, such as a lost lease
   */
  async #act(request: ObjectRequest, actions: readonly Action[]): Promise<ActionsResult> {
    const { uid } = request.resource.metadata;
    const events: EventDetails[] = [];
    for (const action of actions) {
      try {
        if (!(await this.#isStillSafe(request, action))) continue;
        if (!(await perform(this.#actor(request), action))) continue;
      } catch (error) {
        const outcome = outcomeOf(error, request.failures);
        if (outcome === undefined || request.signal.aborted) throw error;
        return { events, failure: { outcome, failure: error } };
      }
      if (action.kind === 'replace') {
        this.#evicted.set(uid, action.replacement.uid);
        this.#rollingOut.add(uid);
      }
      events.push(...[eventOf(action)].filter((each) => each !== undefined));
    }
    return { events };
  }

  async #plan(request: ObjectRequest): Promise<{ readonly facts: SetFacts; readonly plan: SetPlan }> {
    const facts = await this.#observeAfterQuery(request);
    const plan = planSet(facts);
    const { suspend } = request.resource.spec;
    if (suspend || plan.replicas >= (facts.statefulSet?.replicas ?? 0)) return { facts, plan };
    // reports from some seconds ago do not prove that the removed member is in no register now
    await this.#services.watch.refresh(keyOf(request.resource.metadata));
    const fresh = this.#observe(request);
    return { facts: fresh, plan: planSet(fresh) };
  }

  /** Queries the members of a set that is new to this process, so that they do not count as silent. */
  async #observeAfterQuery(request: ObjectRequest): Promise<SetFacts> {
    const facts = this.#observe(request);
    if (!this.#poll(request, facts)) return facts;
    await this.#services.watch.refresh(keyOf(request.resource.metadata));
    return this.#observe(request);
  }

  /** A set stays while Registers refer to it; then its principals are revoked and its children are deleted. */
  async finalize(request: FinalizeRequest<ValidatorSet>): Promise<FinalizeResult> {
    const { resource: set, installation, signal } = request;
    const users = this.#boundTo(set).map(({ metadata }) => metadata.name);
    if (users.length === 0) {
      const ids = (set.status.members ?? []).map(({ name }) => validatorId(name));
      const { uid } = set.metadata;
      if (installation !== undefined)
        await this.#services.registration.retire(uid, installation, { ids, signal });
      return { done: true };
    }
    const named = users.slice(0, 5).join(', ');
    const more = users.length > 5 ? ` and ${users.length - 5} more` : '';
    const message = `Registers still refer to this set: ${named}${more}; delete them or change their validatorSetRef`;
    return { done: false, reason: 'InUse', message, retryAfterMs: 300_000 };
  }

  forget(uid: string): void {
    const key = this.#keys.get(uid);
    if (key !== undefined) this.#services.watch.forget(key);
    this.#services.registration.forget(uid);
    this.#keys.delete(uid);
    this.#rollingOut.delete(uid);
    this.#evicted.delete(uid);
  }

  keysOfMember(object: KubeObject): readonly string[] {
    const owner = controllerOf(object);
    const name = object.metadata.labels?.[labels.validatorSet];
    if (name !== undefined) return [keyOf({ ...object.metadata, name })];
    return owner?.kind === 'StatefulSet' ? [keyOf({ ...object.metadata, name: owner.name })] : [];
  }

  keysOfRegister({ object, before }: Change): readonly string[] {
    return [...setOf(object), ...(before === undefined ? [] : setOf(before))];
  }

  #boundTo({ metadata }: ValidatorSet): readonly KubeObject[] {
    return this.#dependencies.caches.of(registers).findBy('validatorSetRef', keyOf(metadata));
  }

  #observe({ resource: set, installation }: ObjectRequest): SetFacts {
    const { caches, timing } = this.#dependencies;
    const { watch } = this.#services;
    const key = keyOf(set.metadata);
    const live = caches.of(statefulSets).find(key);
    const statefulSet = live === undefined ? undefined : statefulSetFacts(live);
    const found = {
      pods: caches.of(pods).findBy(setIndex, key),
      claims: caches.of(volumeClaims).findBy(setIndex, key),
    };
    const replicas = memberCount(set, statefulSet?.replicas ?? 0);
    const members = memberFacts(set, replicas, found, (pod) => watch.pollResultOf(key, pod));
    return {
      set,
      installation: installation.installation,
      nowMs: timing.nowMs(),
      statefulSet,
      members,
      retainedClaims: retainedClaims(set, members, found.claims),
      registers: this.#boundTo(set).map((each) => boundRegister(parseRegister(each))),
      unreachable: watch.unreachableReason(key),
      evictedUid: this.#evicted.get(set.metadata.uid),
      rolloutLimit: this.#rollLimit(set.metadata.uid),
    };
  }

  #rollLimit(uid: string): string | undefined {
    const others = [...this.#rollingOut].filter((each) => each !== uid).length;
    return others < maxConcurrentRollouts
      ? undefined
      : `${others} other sets are being rolled out; this one follows`;
  }

  /** Updates the polled pods; returns whether the set is new to this process. */
  #poll({ resource: set, installation }: ObjectRequest, { members }: SetFacts): boolean {
    const polledPods = members.flatMap(({ name, pod }) =>
      pod?.address === undefined ? [] : { uid: pod.uid, name, address: pod.address, isReady: pod.isReady },
    );
    return this.#services.watch.poll(keyOf(set.metadata), installation, polledPods);
  }

  #actor({ resource: set, installation, signal, log }: ObjectRequest) {
    const { name: setName, namespace } = set.metadata;
    const { principals } = this.#services;
    const { api } = this.#dependencies;
    return { api, members: this.#members, principals, installation, namespace, setName, signal, log };
  }

  /** Queries every member again before a pod is deleted, because reports from some seconds ago prove nothing. */
  async #isStillSafe(request: ObjectRequest, action: Action): Promise<boolean> {
    if (action.kind !== 'replace' || action.replacement.isForced) return true;
    await this.#services.watch.refresh(keyOf(request.resource.metadata));
    request.signal.throwIfAborted();
    const again = planSet(this.#observe(request));
    return again.actions.some(
      (each) => each.kind === 'replace' && each.replacement.uid === action.replacement.uid,
    );
  }

  /** Registers principals of desired members and revokes those of removed ones. A failure here does not undo the other actions. */
  async #register(
    { resource: set, installation, signal, log }: ObjectRequest,
    plan: SetPlan,
  ): Promise<ReconcileResult> {
    const { uid } = set.metadata;
    const { registration } = this.#services;
    const gone = plan.members.filter(({ phase }) => phase === 'Removed');
    const ids = Array.from({ length: plan.replicas }, (_, each) =>
      validatorId(podName(set.metadata.name, each)),
    );
    try {
      await registration.ensure(uid, installation, { ids, signal });
      await registration.retire(uid, installation, {
        ids: gone.map(({ name }) => validatorId(name)),
        signal,
      });
      const members = plan.members.filter((each) => !gone.includes(each));
      return verdictOf(plan, members);
    } catch (error) {
      const failure = outcomeOf(error, 0);
      if (failure === undefined || signal.aborted) throw error;
      log.warn({ err: error }, 'Members could not be registered');
      // a lost quorum is more important than a new member that cannot be registered
      if (plan.outcome.reason === 'QuorumLost') return verdictOf(plan, plan.members);
      const outcome = { ...failure, message: `Members cannot be registered: ${failure.message}` };
      return { ...verdictOf(plan, plan.members), outcome, requeueAfterMs: registerAgainMs };
    }
  }
}

function verdictOf(plan: SetPlan, members: SetPlan['members']): ReconcileResult {
  const { outcome, conditionUpdates, status, requeueAfterMs } = plan;
  const again = requeueAfterMs === undefined ? {} : { requeueAfterMs };
  return { outcome, conditionUpdates, status: { ...status, members }, ...again };
}
