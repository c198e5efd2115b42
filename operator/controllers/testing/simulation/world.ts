import { AppError } from '#core/errors/errors.ts';
import { quorum } from '#core/ledger/consensus.ts';
import { type ManualTiming, manualTiming } from '#kit/testing/manual-timing.ts';
import { labels } from '../../../api/names.ts';
import type { ApiRequest } from '../../../kube/api.ts';
import { configMaps, pods, statefulSets } from '../../../kube/kinds.ts';
import { isRecord, type KubeObject, type Resource } from '../../../kube/resource.ts';
import { ClusterState, StatusError } from '../../../kube/testing/cluster-state.ts';
import { type Delivery, perform } from '../../../kube/testing/direct-api.ts';
import { make, put } from '../../../kube/testing/fixtures.ts';
import { validatorNumbers } from '../../../plan/register/apply-change.ts';
import { FakeMembers } from '../../../platform/testing/fake-members.ts';
import { fakeOrganizations } from '../../../platform/testing/fake-organizations.ts';
import { fakeRegisters } from '../../../platform/testing/fake-registers.ts';
import { installationMap, installationText } from '../../../platform/testing/installation.fixture.ts';
import type { MemberAddress, Members } from '../../../platform/validators.ts';
import { registers, tenants, validatorSets } from '../../reconciler/resources.ts';
import { InvariantChecker, sealing } from './invariants.ts';
import { Kubernetes, targetOf } from './kubernetes.ts';
import { type Mutation, noMutation } from './mutations.ts';
import { Process } from './process.ts';

const STEP_MS = 500;
const REPLICAS = 2;
/** Timeout of an unreachable member. */
const SILENT_MS = 5_000;
const CALL_MS = 4;

/** Current faults of calls. */
export interface FaultProfile {
  /** Random number in [0, 1) for each decision. */
  readonly draw: () => number;
  /** Share of calls for each kind of fault: 409, 429, 500, reset, timeout. */
  readonly share: number;
  /** Maximum delay of watch events. */
  readonly lagMs: number;
  /** Services do not answer. */
  readonly isAway: boolean;
}

const calm: FaultProfile = { draw: () => 0.5, share: 0, lagMs: 0, isAway: false };

interface Crash {
  left: number;
  readonly isBefore: boolean;
}

/** Simulated cluster, services and two operator processes, in memory and on virtual time. */
export class World {
  readonly timing: ManualTiming = manualTiming();
  readonly state = new ClusterState();
  readonly kubernetes = new Kubernetes(this.state, this.timing);
  readonly organizations = fakeOrganizations();
  readonly ledgers = fakeRegisters();
  readonly invariants: InvariantChecker;
  faults: FaultProfile = calm;
  processes: Process[] = [];
  /** Uids of all resources that were ever created. */
  readonly tenants = new Set<string>();
  readonly registers = new Set<string>();
  readonly #mutation: Mutation;
  readonly #members = new FakeMembers();
  #crash: Crash | undefined;
  #started = 0;

  constructor(mutation: Mutation = noMutation) {
    this.#mutation = mutation;
    const { state, kubernetes, organizations, ledgers, timing } = this;
    this.invariants = new InvariantChecker({
      state,
      kubernetes,
      organizations,
      ledgers,
      nowMs: () => timing.nowMs(),
    });
    const map = { ...installationText, baseDomain: 'chancery.example.org' };
    put(state, configMaps, installationMap(map));
    this.#keepProcesses();
  }

  /** Advances the time of the whole simulation. */
  async pass(ms: number): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += STEP_MS) {
      await this.timing.advance(STEP_MS);
      this.kubernetes.tick();
      this.#advanceLedgers();
      this.invariants.count(this.organizations.all().length - this.tenants.size, 'organisations');
      this.invariants.count(this.ledgers.all().length - this.registers.size, 'registers');
      this.#keepProcesses();
    }
  }

  /**
   * Advances the time until a condition holds.
   * @returns milliseconds that it took; undefined when the limit is exceeded
   */
  async until(condition: () => boolean, mostMs: number): Promise<number | undefined> {
    const fromMs = this.timing.monotonicMs();
    while (!condition()) {
      if (this.timing.monotonicMs() - fromMs >= mostMs) return undefined;
      await this.pass(STEP_MS);
    }
    return this.timing.monotonicMs() - fromMs;
  }

  /** The process that leads. */
  get leader(): Process | undefined {
    return this.processes.find(({ leader, isDead }) => leader.isLeading && !isDead);
  }

  /** Writes an object as a user does; status and finalizers stay. */
  put(resource: Resource, name: string, spec: Readonly<Record<string, unknown>>): void {
    const before = this.kubernetes.find(resource, name);
    const created = new Date(this.timing.nowMs()).toISOString();
    const object = before ?? make(resource, name, {}, { creationTimestamp: created });
    const { metadata } = put(this.state, resource, { ...object, spec });
    if (resource === tenants) this.tenants.add(metadata.uid ?? '');
    if (resource === registers) this.registers.add(metadata.uid ?? '');
  }

  /** Deletes the pod of a member, or makes it unreachable. */
  lose(pod: string, how: 'lose' | 'cut'): void {
    if (how === 'cut') this.kubernetes.cut.add(pod);
    else this.kubernetes.delete(pods, pod);
    this.invariants.lost();
  }

  /** Kills the process that makes the nth call, before the call arrives or before its response arrives. */
  crashAt(call: number, isBefore: boolean): void {
    this.#crash = { left: call, isBefore };
  }

  /** kubectl delete --cascade=orphan of a StatefulSet. */
  orphanSet(name: string): void {
    const uid = this.kubernetes.find(statefulSets, name)?.metadata.uid;
    this.kubernetes.delete(statefulSets, name);
    if (uid !== undefined) this.kubernetes.orphan(uid);
  }

  /**
   * Every watch breaks, the history is compacted, or all become half open, everywhere or only at standby processes.
   */
  breakWatches(how: 'break' | 'compact' | 'mute' | 'deafen'): void {
    if (how === 'compact') this.state.compact();
    const { leader } = this;
    const concerned = this.processes.filter((each) => how !== 'deafen' || each !== leader);
    for (const watch of concerned.flatMap(({ api }) => [...api.watches])) {
      if (how === 'mute' || how === 'deafen') watch.mute();
      else watch.break();
    }
  }

  /** Ends all faults and restores the members. */
  calm(): void {
    this.faults = calm;
    this.#crash = undefined;
    this.kubernetes.cut.clear();
    for (const process of this.processes) process.thaw();
  }

  /** Kills all processes; new ones are started. */
  restart(): void {
    for (const process of this.processes) process.kill();
  }

  /** Number of changes at the services so far. */
  serviceWrites(): number {
    return this.organizations.writes() + this.ledgers.writes();
  }

  /** The custom resources, for the report of a failure. */
  describe(): string {
    const all = [tenants, registers, validatorSets].flatMap((resource) => this.kubernetes.list(resource));
    return all
      .map(({ metadata: { name, generation }, spec, status }) =>
        JSON.stringify({ name, generation, spec, status }),
      )
      .join('\n');
  }

  #keepProcesses(): void {
    this.processes = this.processes.filter(({ isDead }) => !isDead);
    while (this.processes.length < REPLICAS) this.#startProcess();
  }

  #startProcess(): void {
    this.#started += 1;
    const process = new Process({
      identity: `operator-${this.#started}`,
      state: this.state,
      time: this.timing,
      services: {
        clients: { organizations: this.organizations, registers: this.ledgers, wallets: this.ledgers },
        members: this.#reachable(),
        principals: this.#members,
      },
      delivery: (by, call, isWrite) => this.#weather(by, call, isWrite),
      arrives: (by, call, isWrite) => {
        if (isWrite) this.invariants.act(by.identity, call);
      },
      mutation: this.#mutation,
    });
    process.api.lagMs = () => CALL_MS + this.faults.draw() * this.faults.lagMs;
    process.api.serve = (request) => this.#serve(process, request);
    this.processes.push(process);
  }

  #weather(process: Process, call: string, isWrite: boolean): Delivery {
    const isLease = call.includes(' leases/');
    const way = { requestMs: CALL_MS, responseMs: CALL_MS };
    if (!isLease && this.#crash !== undefined) {
      this.#crash.left -= 1;
      if (this.#crash.left <= 0) return this.#crashProcess(process, way);
    }
    const { share, draw, isAway } = this.faults;
    const isService = !call.includes('/');
    if (isService && isAway) return { ...way, broken: 'request' };
    if (share === 0 || isLease) return way;
    const place = Math.floor(draw() / share);
    if (isService)
      return {
        ...way,
        ...[{ broken: 'request' }, { broken: 'response' }, { lost: 'response' }][place],
      } as Delivery;
    const faults: readonly Delivery[] = [
      { broken: 'response' },
      { broken: 'request' },
      { lost: 'response' },
      { refused: new StatusError(500, 'InternalError') },
      { refused: new StatusError(429, 'TooManyRequests'), retryAfterMs: 1_000 },
      ...(isWrite ? [{ refused: new StatusError(409, 'Conflict') }] : []),
    ];
    return { ...way, ...faults[place] };
  }

  #crashProcess(process: Process, way: Delivery): Delivery {
    const isBefore = this.#crash?.isBefore === true;
    this.#crash = undefined;
    // after the call was carried out and before its response arrives
    this.timing.after(isBefore ? 0 : CALL_MS + 0.5, () => process.kill());
    return { ...way, lost: isBefore ? 'request' : 'response' };
  }

  #serve({ identity }: Process, request: ApiRequest): unknown {
    const { verb, resource, subresource, name = '', body } = request;
    this.invariants.call(identity, request);
    if (resource === pods && subresource === 'eviction') return void this.kubernetes.evict(name, body);
    if (resource === statefulSets && verb === 'patch') this.#refuseTemplate(name, body);
    const doomed = verb === 'delete' ? this.kubernetes.find(resource, name) : undefined;
    const answer = perform(this.state, request);
    if (resource === statefulSets && doomed !== undefined) this.kubernetes.orphan(doomed.metadata.uid ?? '');
    return answer;
  }

  /** Refuses a change of the claim template of a StatefulSet, like the API server. */
  #refuseTemplate(name: string, body: unknown): void {
    const claims = (object: unknown) =>
      isRecord(object) && isRecord(object['spec'])
        ? JSON.stringify(object['spec']['volumeClaimTemplates'])
        : '';
    const live = this.kubernetes.find(statefulSets, name);
    if (live !== undefined && claims(live) !== claims(body)) throw new StatusError(422, 'Invalid');
  }

  #reachable(): Members {
    const { kubernetes, timing } = this;
    const members = this.#members;
    const listen = async ({ name }: MemberAddress) => {
      this.#refreshReports(name);
      if (this.#mutation.trustsEveryMember === true) return;
      if (kubernetes.isUp(name)) return this.invariants.answered(name);
      await new Promise<void>((resolve) => void timing.after(SILENT_MS, resolve));
      throw new AppError('timeout', 'MEMBER_SILENT', `${name} did not answer`);
    };
    return {
      ready: () => members.ready(),
      queryReport: async (installation, place) => {
        await listen(place);
        return members.queryReport(installation, place);
      },
      drain: async (installation, place) => {
        await listen(place);
        return members.drain(installation, place);
      },
      undrain: async (installation, place) => {
        await listen(place);
        return members.undrain(installation, place);
      },
      stop: () => undefined,
    };
  }

  /** Updates the registers that a member reports; all are of one set. */
  #refreshReports(name: string): void {
    this.#members.registers.clear();
    if (!name.startsWith('main-')) return;
    for (const { registerId, validators, height } of sealing(this.ledgers)) {
      const members = validators.members.map(({ validatorId }) => validatorId);
      this.#members.registers.set(registerId, { members, height });
    }
  }

  #advanceLedgers(): void {
    const isUp = (validatorId: string) => this.kubernetes.isUp(validatorId.replace(/^validator-/, ''));
    const names = Array.from({ length: 10 }, (_, ordinal) => `validator-main-${ordinal}`);
    this.ledgers.absent.clear();
    for (const name of names) if (!isUp(name)) this.ledgers.absent.add(name);
    for (const { registerId, validators } of this.ledgers.all()) {
      const members = validators.members.map((each) => ({ ...each, operational: isUp(each.validatorId) }));
      this.ledgers.edit(registerId, { validators: validatorNumbers(members) });
    }
    this.ledgers.seal(({ validators }) => {
      const live = validators.members.filter(({ operational }) => operational).length;
      return live >= quorum(validators.size);
    });
  }

  /** Changes an object as a person would. */
  editByHand(resource: Resource, pick: (objects: readonly KubeObject[]) => KubeObject | undefined): void {
    const object = pick(this.kubernetes.list(resource).filter(isOurs));
    if (object !== undefined)
      this.state.merge(targetOf(resource, object), { spec: { hand: 'made' }, data: null });
  }
}

function isOurs({ metadata }: KubeObject): boolean {
  return metadata.labels?.[labels.managedBy] !== undefined;
}
