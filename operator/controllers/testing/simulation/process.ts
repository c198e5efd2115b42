import { AppError } from '#core/errors/errors.ts';
import type { Timing } from '#kit/clock/timing.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { EventRecorder } from '../../../kube/events.ts';
import { configMaps } from '../../../kube/kinds.ts';
import { Leader } from '../../../kube/leader.ts';
import type { ClusterState } from '../../../kube/testing/cluster-state.ts';
import { type Delivery, type DirectApi, directApi } from '../../../kube/testing/direct-api.ts';
import { type TestMetrics, testMetrics } from '../../../kube/testing/fixtures.ts';
import { type ProcessTiming, processTiming } from '../../../kube/testing/process-timing.ts';
import type { Clients, Platform } from '../../../platform/clients.ts';
import { watchInstallations } from '../../../platform/installations.ts';
import type { Principals } from '../../../platform/principals.ts';
import type { Members } from '../../../platform/validators.ts';
import { createOrphanSweeper } from '../../orphans/sweep.ts';
import { Caches } from '../../reconciler/caches.ts';
import type { Dependencies } from '../../reconciler/dependencies.ts';
import { createReconciler, type Reconciler, startAsLeader } from '../../reconciler/reconciler.ts';
import { registers, tenants, validatorSets, watched } from '../../reconciler/resources.ts';
import { registerKind } from '../../register/register.ts';
import { tenantKind } from '../../tenant/tenant.ts';
import { createValidatorSetController } from '../../validator-set/controller.ts';
import type { Mutation } from './mutations.ts';

/** Services that a process calls. */
export interface Services {
  readonly clients: Clients;
  readonly members: Members;
  readonly principals: Principals;
}

export interface ProcessOptions {
  readonly identity: string;
  readonly state: ClusterState;
  /** Clock of the simulation. */
  readonly time: Timing;
  readonly services: Services;
  /** Network behaviour of each call. */
  readonly delivery: (process: Process, call: string, isWrite: boolean) => Delivery;
  /** Called when a call of a service arrives. */
  readonly arrives: (process: Process, call: string, isWrite: boolean) => void;
  readonly mutation: Mutation;
}

const changing = new Set([
  'upsert',
  'remove',
  'change',
  'setValidation',
  'ensure',
  'drain',
  'undrain',
  'revoke',
]);
/** Timeout of service calls. */
const SERVICE_MS = 10_000;

/** One process of the operator with all controllers, on virtual time. */
export class Process {
  readonly identity: string;
  readonly api: DirectApi;
  readonly metrics: TestMetrics = testMetrics();
  readonly leader: Leader;
  isDead = false;
  readonly #options: ProcessOptions;
  readonly #timing: ProcessTiming;
  readonly #caches: Caches;
  readonly #shells: readonly Reconciler[];

  constructor(options: ProcessOptions) {
    const { identity, state, time, mutation } = options;
    this.#options = options;
    this.identity = identity;
    const timing = processTiming(time);
    this.#timing = timing;
    const { metrics } = this.metrics;
    const runtime = testRuntime('operator', { level: 'silent', clock: timing });
    const { log } = runtime;
    this.api = directApi(state, timing, time);
    this.api.delivery = ({ verb, resource, subresource = '' }) => {
      const isWrite = !['get', 'list', 'watch'].includes(verb);
      return options.delivery(this, `${verb} ${resource.plural}/${subresource}`, isWrite);
    };
    this.#caches = new Caches({ api: this.api, timing, metrics, log, namespaces: ['acme'], watched });
    this.leader = new Leader({
      api: this.api,
      timing,
      metrics,
      log,
      namespace: 'acme',
      name: 'operator',
      identity,
    });
    const behind = mutation.isUnfenced === true ? this.api : this.leader.fence(this.api);
    const fenced = mutation.api?.(behind) ?? behind;
    const reporting = { controller: 'chancery.dev/operator', instance: identity };
    const recorder = new EventRecorder({ api: fenced, timing, metrics, log, ...reporting });
    const installations = watchInstallations(this.#caches.of(configMaps));
    const dependencies = {
      runtime,
      timing,
      metrics,
      api: fenced,
      caches: this.#caches,
      recorder,
      installations,
    };
    this.#shells = this.#controllers(dependencies);
    this.#start();
  }

  /** Like SIGKILL: sent calls may still arrive. */
  kill(): void {
    this.isDead = true;
    this.#timing.kill();
    for (const watch of this.api.watches) watch.break();
  }

  freeze(): void {
    this.#timing.freeze();
  }

  thaw(): void {
    this.#timing.thaw();
  }

  /** Whether no key is queued. */
  get isIdle(): boolean {
    return this.#shells.every(({ controller }) => controller.queue.depth === 0);
  }

  #start(): void {
    this.#caches.start();
    const kinds = [tenants, registers, validatorSets, configMaps];
    void Promise.all(kinds.map((each) => this.#caches.synced(each))).then(() => this.leader.start());
    void this.leader.elected.then(() => startAsLeader(this.#caches, this.#shells));
    void this.leader.ended.then(() => this.kill());
  }

  #controllers(dependencies: Dependencies): readonly Reconciler[] {
    const { services, mutation } = this.#options;
    const { clients } = services;
    const reached: Clients = {
      organizations: this.#reach(clients.organizations),
      registers: this.#reach(clients.registers),
      wallets: this.#reach(clients.wallets),
    };
    const platform: Platform = { of: async () => reached, stop: () => undefined };
    const members = this.#reach(services.members);
    const principals = this.#reach(services.principals);
    const tenant = tenantKind(dependencies, platform);
    return [
      createValidatorSetController({ dependencies, members, principals }),
      createReconciler(dependencies, mutation.tenants?.(tenant, dependencies) ?? tenant),
      createReconciler(dependencies, registerKind(dependencies, platform)),
      createOrphanSweeper(dependencies, platform),
    ];
  }

  /** The same port behind a simulated network and the fence, like `platform/transport.ts`. */
  #reach<Port extends object>(port: Port): Port {
    return new Proxy(port, {
      get: (target, name, receiver) => {
        const member: unknown = Reflect.get(target, name, receiver);
        if (typeof member !== 'function' || typeof name !== 'string' || name === 'stop') return member;
        return async (...given: readonly unknown[]): Promise<unknown> => {
          const isWrite = changing.has(name);
          const isGuarded = isWrite && this.#options.mutation.isUnfenced !== true;
          const leftMs = isGuarded ? this.leader.guard() : SERVICE_MS;
          return this.#travel(name, { isWrite, leftMs }, () => Reflect.apply(member, target, given));
        };
      },
    });
  }

  #travel(
    call: string,
    { isWrite, leftMs }: { readonly isWrite: boolean; readonly leftMs: number },
    act: () => unknown,
  ): Promise<unknown> {
    const { time, delivery, arrives } = this.#options;
    const { requestMs = 0, responseMs = 0, lost, broken } = delivery(this, call, isWrite);
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const away = () => reject(new AppError('unavailable', 'SERVICE_UNREACHABLE', `no answer to ${call}`));
    const endWait = this.#timing.after(Math.min(SERVICE_MS, leftMs), away);
    const back = (respond: () => void) => time.after(responseMs, () => void this.#timing.after(0, respond));
    time.after(requestMs, () => {
      if (lost === 'request') return;
      if (broken === 'request') return void back(away);
      arrives(this, call, isWrite);
      const answer = Promise.resolve(act());
      const respond = () => (broken === 'response' ? away() : resolve(answer));
      // a lost rejection must not be unhandled
      answer.catch(() => undefined);
      if (lost !== 'response') back(respond);
    });
    return promise.finally(endWait);
  }
}
