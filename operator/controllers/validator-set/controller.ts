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
import { type Act, eventOf, planSet, type SetPlan } from '../../plan/validator-set/plan.ts';
import { renderValidatorSet } from '../../plan/validator-set/render/children.ts';
import { podMonitor } from '../../plan/validator-set/render/monitor.ts';
import type { Principals } from '../../platform/principals.ts';
import type { Members } from '../../platform/validators.ts';
import type { Parts } from '../reconciler/dependencies.ts';
import type { Finalization, FinalizePass, Kind, ReconcilePass, Verdict } from '../reconciler/kind.ts';
import { createShell, type Shell } from '../reconciler/reconciler.ts';
import { outcomeOf } from '../reconciler/requeue-error.ts';
import { byReference, registers, setIndex, validatorSets } from '../reconciler/resources.ts';
import { MemberWatch } from './member-poller.ts';
import { boundRegister, leftClaims, memberCount, memberFacts, statefulSetFacts } from './observe.ts';
import { perform } from './perform-action.ts';
import { Registration } from './registration.ts';

export interface ValidatorSetOptions {
  readonly parts: Parts;
  readonly members: Members;
  readonly principals: Principals;
}

type Pass = ReconcilePass<ValidatorSet>;

const REGISTER_AGAIN_MS = 10_000;
/** Sets that are rolled at the same time: an upgrade of the installation does not touch all of them at once. */
const MAX_ROLLS = 2;

/** The controller of ValidatorSets. */
export function createValidatorSetController({ parts, members, principals }: ValidatorSetOptions): Shell {
  const { timing, runtime } = parts;
  const watch = new MemberWatch({
    members,
    timing,
    log: runtime.log,
    onNews: (key) => shell.controller.queue.add(key),
  });
  const work = new Work(parts, members, {
    watch,
    principals,
    registration: new Registration(principals, timing),
  });
  const shell = createShell(parts, kindOf(work));
  return {
    ...shell,
    stop: async (graceMs) => {
      watch.stop();
      await shell.stop(graceMs);
      members.stop();
      principals.stop();
    },
  };
}

function kindOf(work: Work): Kind<ValidatorSet> {
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
    wakes: [
      { resource: pods, keysOf: ({ object }) => work.keysOfMember(object) },
      { resource: volumeClaims, keysOf: ({ object }) => work.keysOfMember(object) },
      { resource: registers, keysOf: (change) => work.keysOfRegister(change) },
    ],
    reconcile: (pass) => work.reconcile(pass),
    finalize: (pass) => work.finalize(pass),
    forget: (uid) => work.forget(uid),
  };
}

/** Key of the set that a Register refers to. */
const setOf = byReference('validatorSetRef');

interface Helpers {
  readonly principals: Principals;
  readonly watch: MemberWatch;
  readonly registration: Registration;
}

class Work {
  readonly #parts: Parts;
  readonly #members: Members;
  readonly #helpers: Helpers;
  /** Uid of the pod that was evicted last, by uid of the set. */
  readonly #evicted = new Map<string, string>();
  readonly #keys = new Map<string, string>();
  /** Uids of the sets of which a roll has begun. */
  readonly #rolling = new Set<string>();

  constructor(parts: Parts, members: Members, helpers: Helpers) {
    this.#parts = parts;
    this.#members = members;
    this.#helpers = helpers;
  }

  async reconcile(pass: Pass): Promise<Verdict> {
    const { resource: set, installation } = pass;
    this.#keys.set(set.metadata.uid, keyOf(set.metadata));
    const { facts, plan } = await this.#plan(pass);
    const { replicas, numbers } = plan;
    const { faultTolerance } = numbers;
    const claimSize = facts.statefulSet?.claimSize ?? set.spec.storage.size;
    const wanted = { set, installation, replicas, faultTolerance, claimSize };
    const monitor = this.#parts.caches.isServed(podMonitors) ? podMonitor(wanted) : [];
    const { areOurs, written } = await pass.applyChildren([...renderValidatorSet(wanted), ...monitor]);
    const now = written.has(statefulSets.kind) ? planSet({ ...facts, isChanging: true }) : plan;
    const events: EventDetails[] = [];
    // what others make of the children is nothing to act by
    for (const act of areOurs ? now.acts : []) {
      if (!(await this.#isStillRight(pass, act))) continue;
      if (!(await perform(this.#actor(pass), act))) continue;
      if (act.kind === 'replace') {
        this.#evicted.set(set.metadata.uid, act.replacement.uid);
        this.#rolling.add(set.metadata.uid);
      }
      events.push(...[eventOf(act)].filter((each) => each !== undefined));
    }
    if (!now.isRolling) this.#rolling.delete(set.metadata.uid);
    return { ...(await this.#register(pass, now)), events };
  }

  async #plan(pass: Pass): Promise<{ readonly facts: SetFacts; readonly plan: SetPlan }> {
    const facts = await this.#hear(pass);
    const plan = planSet(facts);
    const { suspend } = pass.resource.spec;
    if (suspend || plan.replicas >= (facts.statefulSet?.replicas ?? 0)) return { facts, plan };
    // what members said some seconds ago does not prove that the one that goes is in no register now
    await this.#helpers.watch.refresh(keyOf(pass.resource.metadata));
    const fresh = this.#observe(pass);
    return { facts: fresh, plan: planSet(fresh) };
  }

  /** A process that has just begun hears the members first: that it has not asked them is no silence of theirs. */
  async #hear(pass: Pass): Promise<SetFacts> {
    const facts = this.#observe(pass);
    if (!this.#follow(pass, facts)) return facts;
    await this.#helpers.watch.refresh(keyOf(pass.resource.metadata));
    return this.#observe(pass);
  }

  /** While Registers refer to the set it stays; then its children go, and its principals with them. */
  async finalize(pass: FinalizePass<ValidatorSet>): Promise<Finalization> {
    const { resource: set, installation, signal } = pass;
    const users = this.#boundTo(set).map(({ metadata }) => metadata.name);
    if (users.length === 0) {
      const ids = (set.status.members ?? []).map(({ name }) => validatorId(name));
      const { uid } = set.metadata;
      if (installation !== undefined)
        await this.#helpers.registration.retire(uid, installation, { ids, signal });
      return { done: true };
    }
    const named = users.slice(0, 5).join(', ');
    const more = users.length > 5 ? ` and ${users.length - 5} more` : '';
    const message = `Registers still refer to it: ${named}${more}`;
    return { done: false, reason: 'InUse', message, retryAfterMs: 300_000 };
  }

  forget(uid: string): void {
    const key = this.#keys.get(uid);
    if (key !== undefined) this.#helpers.watch.forget(key);
    this.#helpers.registration.forget(uid);
    this.#keys.delete(uid);
    this.#rolling.delete(uid);
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
    return this.#parts.caches.of(registers).findBy('validatorSetRef', keyOf(metadata));
  }

  #observe({ resource: set, installation }: Pass): SetFacts {
    const { caches, timing } = this.#parts;
    const { watch } = this.#helpers;
    const key = keyOf(set.metadata);
    const live = caches.of(statefulSets).find(key);
    const statefulSet = live === undefined ? undefined : statefulSetFacts(live);
    const found = {
      pods: caches.of(pods).findBy(setIndex, key),
      claims: caches.of(volumeClaims).findBy(setIndex, key),
    };
    const replicas = memberCount(set, statefulSet?.replicas ?? 0);
    const members = memberFacts(set, replicas, found, (pod) => watch.answerOf(key, pod));
    return {
      set,
      installation: installation.installation,
      nowMs: timing.nowMs(),
      statefulSet,
      members,
      leftClaims: leftClaims(set, members, found.claims),
      registers: this.#boundTo(set).map((each) => boundRegister(parseRegister(each))),
      blind: watch.blindOf(key),
      evictedUid: this.#evicted.get(set.metadata.uid),
      rollLimit: this.#rollLimit(set.metadata.uid),
    };
  }

  #rollLimit(uid: string): string | undefined {
    const others = [...this.#rolling].filter((each) => each !== uid).length;
    return others < MAX_ROLLS ? undefined : `${others} other sets are rolled; this one comes after them`;
  }

  /** Whether the set is new to this process. */
  #follow({ resource: set, installation }: Pass, { members }: SetFacts): boolean {
    const asked = members.flatMap(({ name, pod }) =>
      pod?.address === undefined ? [] : { uid: pod.uid, name, address: pod.address, isReady: pod.isReady },
    );
    return this.#helpers.watch.follow(keyOf(set.metadata), installation, asked);
  }

  #actor({ resource: set, installation, signal, log }: Pass) {
    const { name: setName, namespace } = set.metadata;
    const { principals } = this.#helpers;
    const { api } = this.#parts;
    return { api, members: this.#members, principals, installation, namespace, setName, signal, log };
  }

  /** Before a pod goes every member is asked anew: what was true some seconds ago proves nothing. */
  async #isStillRight(pass: Pass, act: Act): Promise<boolean> {
    if (act.kind !== 'replace' || act.replacement.isForced) return true;
    await this.#helpers.watch.refresh(keyOf(pass.resource.metadata));
    pass.signal.throwIfAborted();
    const again = planSet(this.#observe(pass));
    return again.acts.some((each) => each.kind === 'replace' && each.replacement.uid === act.replacement.uid);
  }

  /** Principals of the members there are to be, and of none that is gone. Where that fails the rest has been done. */
  async #register({ resource: set, installation, signal, log }: Pass, plan: SetPlan): Promise<Verdict> {
    const { uid } = set.metadata;
    const { registration } = this.#helpers;
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
      const why = outcomeOf(error, 0);
      if (why === undefined || signal.aborted) throw error;
      log.warn({ err: error }, 'Members could not be registered');
      // what the members are worth counts for more than that a new one cannot come
      if (plan.outcome.reason === 'QuorumLost') return verdictOf(plan, plan.members);
      const outcome = { ...why, message: `Members cannot be registered: ${why.message}` };
      return { ...verdictOf(plan, plan.members), outcome, requeueAfterMs: REGISTER_AGAIN_MS };
    }
  }
}

function verdictOf(plan: SetPlan, members: SetPlan['members']): Verdict {
  const { outcome, conditionUpdates, status, requeueAfterMs } = plan;
  const again = requeueAfterMs === undefined ? {} : { requeueAfterMs };
  return { outcome, conditionUpdates, status: { ...status, members }, ...again };
}
