import { quorum } from '#core/ledger/consensus.ts';
import { podName, validatorId } from '../../../api/names.ts';
import type { ValidatorSet } from '../../../api/validator-set.ts';
import type { ClaimFacts, MemberFacts, PodFacts, RetainedClaim, SetFacts } from '../facts.ts';
import type { Action, SetPlan } from '../plan.ts';
import { makeRegister, makeReport, makeSet, NOW_MS, REGISTER } from './sets.ts';

interface Pod {
  uid: string;
  revision: string;
  /** Rounds until it is ready; a pod of a bad revision never is. */
  startsIn: number;
  readonly createdMs: number;
}

/** Desired state of the set. */
export interface DesiredSet {
  replicas: number;
  revision: string;
  suspend: boolean;
  size: string;
}

/**
 * In-memory cluster with validators and their register. It carries out plans as Kubernetes does. One round is twenty
 * seconds.
 */
export class World {
  readonly desired: DesiredSet = { replicas: 4, revision: 'v1', suspend: false, size: '1Gi' };
  readonly pods = new Map<number, Pod>();
  readonly claims = new Map<number, { requested: string; capacity: string }>();
  /** Left-at annotations of claims, by ordinal. */
  readonly leftAtMs = new Map<number, number>();
  readonly drained = new Set<number>();
  /** Ordinals of unreachable pods. */
  readonly unreachable = new Set<number>();
  readonly bad = new Set<string>();
  /** Ordinals on the register's list. */
  listed: number[] = [];
  statefulSet: { replicas: number; claimSize: string; uid: string } | undefined;
  status: Readonly<Record<string, unknown>> = {};
  evictedUid: string | undefined;
  nowMs = NOW_MS;
  writes = 0;
  #uids = 0;

  /** The facts that the operator observes. */
  facts(): SetFacts {
    const count = Math.max(
      this.desired.suspend ? 0 : this.desired.replicas,
      this.statefulSet?.replicas ?? 0,
      ...this.#stopped(),
      ...[...this.pods.keys()].map((ordinal) => ordinal + 1),
    );
    const { statefulSet } = this;
    return {
      set: this.set(),
      installation: 'acme.chancery.local',
      nowMs: this.nowMs,
      statefulSet:
        statefulSet === undefined ? undefined : { ...statefulSet, updateRevision: this.desired.revision },
      members: Array.from({ length: count }, (_, ordinal) => this.#member(ordinal)),
      registers:
        this.listed.length === 0 ? [] : [{ name: 'ledger', registerId: REGISTER, isDeleting: false }],
      evictedUid: this.evictedUid,
      retainedClaims: [...this.claims.keys()]
        .filter((ordinal) => ordinal >= count || this.leftAtMs.has(ordinal))
        .map((ordinal) => this.#retainedClaim(ordinal)),
    };
  }

  set(): ValidatorSet {
    const { replicas, suspend, size } = this.desired;
    return makeSet({ replicas, suspend, storage: { size } }, { status: this.status });
  }

  /** Ordinals that vote. */
  voting(): readonly number[] {
    return this.listed.filter((each) => this.#isUp(each) && !this.unreachable.has(each));
  }

  hasQuorum(): boolean {
    return this.listed.length === 0 || this.voting().length >= quorum(this.listed.length);
  }

  /** Carries out the first `steps` calls of a plan, as an operator that is killed afterwards. */
  carryOut(plan: SetPlan, steps = Infinity): void {
    let left = steps;
    const step = (action: () => void) => {
      if (left > 0) action();
      left -= 1;
    };
    step(() => this.#apply(plan.replicas));
    for (const action of plan.actions) step(() => this.#perform(action));
    const members = plan.members.filter(({ phase }) => phase !== 'Removed');
    step(() => this.#write({ ...plan.status, members }));
  }

  /** Runs Kubernetes, validators and the register controller for one round. */
  pass(): void {
    this.nowMs += 20_000;
    const desired = this.statefulSet?.replicas ?? this.pods.size;
    for (const ordinal of this.pods.keys()) if (ordinal >= desired) this.pods.delete(ordinal);
    for (let ordinal = 0; ordinal < desired; ordinal += 1)
      if (!this.pods.has(ordinal)) this.#createPod(ordinal);
    for (const pod of this.pods.values())
      if (!this.bad.has(pod.revision)) pod.startsIn = Math.max(0, pod.startsIn - 1);
    for (const claim of this.claims.values()) claim.capacity = claim.requested;
    if (this.listed.length > 0 && this.hasQuorum() && !this.desired.suspend) this.#updateRegister();
  }

  #stopped(): readonly number[] {
    if (!this.desired.suspend && (this.statefulSet?.replicas ?? 0) > 0) return [];
    return (this.set().status.members ?? []).map(({ ordinal }) => (ordinal ?? -1) + 1);
  }

  #isUp(ordinal: number): boolean {
    return this.pods.get(ordinal)?.startsIn === 0;
  }

  #createPod(ordinal: number): void {
    this.#uids += 1;
    const { revision } = this.desired;
    this.pods.set(ordinal, { uid: `uid-${this.#uids}`, revision, startsIn: 1, createdMs: this.nowMs });
    const size = this.statefulSet?.claimSize ?? this.desired.size;
    if (!this.claims.has(ordinal)) this.claims.set(ordinal, { requested: size, capacity: size });
  }

  /** The register follows the set, one member per round. */
  #updateRegister(): void {
    const joining = [...this.pods.keys()].find(
      (each) => each < this.desired.replicas && this.#isUp(each) && !this.listed.includes(each),
    );
    if (joining !== undefined) this.listed = [...this.listed, joining].sort((a, b) => a - b);
    const leaving = this.listed.findLast((each) => each >= this.desired.replicas);
    const staying = this.listed.filter((each) => each !== leaving);
    const live = staying.filter((each) => this.voting().includes(each)).length;
    if (joining === undefined && leaving !== undefined && live >= quorum(staying.length))
      this.listed = staying;
  }

  #member(ordinal: number): MemberFacts {
    const pod = this.pods.get(ordinal);
    const name = podName('main', ordinal);
    const answers = pod !== undefined && this.#isUp(ordinal) && !this.unreachable.has(ordinal);
    const isMember = this.listed.includes(ordinal);
    const members = this.listed.map((each) => validatorId(podName('main', each)));
    const register = {
      ...makeRegister(this.listed.length),
      members,
      isMember,
      membership: isMember ? 'Active' : 'None',
    };
    const state = this.drained.has(ordinal) ? 'Drained' : 'None';
    const report = {
      ...makeReport(ordinal, this.listed.length === 0 ? [] : [register]),
      drain: { state } as const,
    };
    return {
      ordinal,
      name,
      pod: pod === undefined ? undefined : this.#pod(pod, ordinal),
      claim: this.#claim(ordinal),
      ...(answers ? { report, answeredAtMs: this.nowMs } : {}),
    };
  }

  #pod({ uid, revision, startsIn, createdMs }: Pod, ordinal: number): PodFacts {
    // the cluster gets no news from an unreachable node
    const isReady = startsIn === 0;
    return {
      uid,
      revision,
      isReady: isReady && !this.unreachable.has(ordinal),
      readySinceMs: createdMs,
      isTerminating: false,
      isBroken: !isReady,
      trouble: this.bad.has(revision) ? 'CrashLoopBackOff' : undefined,
      isForced: false,
    };
  }

  #retainedClaim(ordinal: number): RetainedClaim {
    const leftAtMs = this.leftAtMs.get(ordinal);
    const name = `data-main-${ordinal}`;
    return { ordinal, name, uid: `claim-${ordinal}`, resourceVersion: '1', leftAtMs };
  }

  #claim(ordinal: number): ClaimFacts | undefined {
    const claim = this.claims.get(ordinal);
    if (claim === undefined) return undefined;
    return { name: `data-main-${ordinal}`, uid: `claim-${ordinal}`, ...claim, conditions: [] };
  }

  #apply(replicas: number): void {
    if (this.statefulSet?.replicas === replicas) return;
    this.writes += 1;
    this.#uids += 1;
    const { claimSize = this.desired.size, uid = `sts-${this.#uids}` } = this.statefulSet ?? {};
    this.statefulSet = { replicas, claimSize, uid };
  }

  #write(status: Readonly<Record<string, unknown>>): void {
    const next = JSON.parse(JSON.stringify(status)) as Readonly<Record<string, unknown>>;
    if (JSON.stringify(this.status) !== JSON.stringify(next)) this.writes += 1;
    this.status = next;
  }

  #perform(action: Action): void {
    this.writes += 1;
    switch (action.kind) {
      case 'resize': {
        const ordinal = Number(action.claim.name.split('-').at(-1));
        const claim = this.claims.get(ordinal);
        if (claim !== undefined) claim.requested = action.size;
        return;
      }
      case 'recreate':
        if (this.statefulSet?.uid === action.uid) this.statefulSet = undefined;
        return;
      case 'drain':
        return void this.drained.add(action.member.ordinal);
      case 'undrain':
        return void this.drained.delete(action.member.ordinal);
      case 'note':
        if (action.leftAtMs === undefined) this.leftAtMs.delete(action.claim.ordinal);
        else this.leftAtMs.set(action.claim.ordinal, action.leftAtMs);
        return;
      case 'discard':
        this.leftAtMs.delete(action.claim.ordinal);
        return void this.claims.delete(action.claim.ordinal);
      case 'replace': {
        const { member, uid } = action.replacement;
        this.evictedUid = uid;
        // the uid protects a pod that replaced the judged one
        if (this.pods.get(member.ordinal)?.uid === uid) this.pods.delete(member.ordinal);
      }
    }
  }
}
