import { systemTiming } from '#kit/clock/timing.ts';
import { type ManualTiming, manualTiming } from '#kit/testing/manual-timing.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import type { ConditionType } from '../../api/conditions.ts';
import { labels } from '../../api/names.ts';
import type { Condition } from '../../api/object.ts';
import { EventRecorder } from '../../kube/events.ts';
import { HttpApi } from '../../kube/http.ts';
import { configMaps } from '../../kube/kinds.ts';
import { Leader, leases } from '../../kube/leader.ts';
import { isRecord, type KubeObject, type Resource } from '../../kube/resource.ts';
import { type ApiServer, startApiServer } from '../../kube/testing/api-server.ts';
import { advanceUntil, at, credentialsFor, make, put, testMetrics } from '../../kube/testing/fixtures.ts';
import { setOf } from '../../plan/testing/objects.ts';
import type { Clients, Platform } from '../../platform/clients.ts';
import { watchInstallations } from '../../platform/installations.ts';
import { type FakeOrganizations, fakeOrganizations } from '../../platform/testing/fake-organizations.ts';
import { type FakeRegisters, fakeRegisters } from '../../platform/testing/fake-registers.ts';
import { type Interrupting, withInterruptions } from '../../platform/testing/interrupted.ts';
import { createOrphanSweeper } from '../orphans/sweep.ts';
import { Caches } from '../reconciler/caches.ts';
import type { Dependencies } from '../reconciler/dependencies.ts';
import { createReconciler, type Reconciler, startAsLeader } from '../reconciler/reconciler.ts';
import { registers, tenants, validatorSets, watched } from '../reconciler/resources.ts';
import { registerKind } from '../register/register.ts';
import { tenantKind } from '../tenant/tenant.ts';

/** One process of the operator, with the controllers of tenants and registers. */
export interface Operator {
  readonly reconcilers: readonly Reconciler[];
  /** The process is no more: nothing of it reaches the cluster or the services again. */
  kill(): Promise<void>;
}

/** A cluster and its services, and as many operators as a test starts. */
export interface World {
  readonly server: ApiServer;
  readonly timing: ManualTiming;
  readonly organizations: FakeOrganizations;
  readonly ledgers: FakeRegisters;
  /** What becomes of each call of a service. */
  interrupt: (call: string) => Interrupting;
  /** Calls of services so far, by name. */
  readonly calls: string[];
  /** With further controllers, where a test has some. */
  start(identity: string, more?: (dependencies: Dependencies) => readonly Reconciler[]): Promise<Operator>;
  /** Advances the time in steps that let the network proceed. */
  pass(ms: number): Promise<void>;
  /** Advances the time until a condition holds; seals a docket at each step. */
  until(what: string, condition: () => boolean): Promise<void>;
  find(resource: Resource, name: string): KubeObject | undefined;
  condition(resource: Resource, name: string, type: ConditionType): Condition | undefined;
  isReady(resource: Resource, name: string): boolean;
  put(resource: Resource, name: string, spec: Readonly<Record<string, unknown>>): void;
  /** A set whose members all run. */
  putSet(name: string, replicas: number): void;
  close(): Promise<void>;
}

const INSTALLATION = 'test.chancery.local';
const description = {
  installation: INSTALLATION,
  version: '0.1.0',
  images: { validator: 'chancery.local/validator:0.1.0' },
  identity: { provider: 'serviceAccount', issuer: 'https://svid-issuer:8443' },
  endpoints: {
    tenant: { https: 'service-tenant:7443', grpc: 'service-tenant:7000', mtls: 'service-tenant:8443' },
    wallet: { https: 'service-wallet:7443', grpc: 'service-wallet:7000' },
    register: { https: 'service-register:7443', grpc: 'service-register:7000' },
    nats: { url: 'nats://nats:4222' },
  },
  baseDomain: 'chancery.example.org',
};

/** An API server, the fakes of the services, and the description of the installation of namespace acme. */
export async function startWorld(): Promise<World> {
  const server = await startApiServer();
  const timing = manualTiming();
  const organizations = fakeOrganizations();
  const ledgers = fakeRegisters();
  const operators = new Set<Operator>();
  const data = { 'installation.json': JSON.stringify(description) };
  const metadata = { labels: { [labels.installation]: INSTALLATION } };
  put(server.state, configMaps, make(configMaps, 'chancery-installation', { data }, metadata));
  const find = (resource: Resource, name: string) =>
    server.state.list(at(resource)).find((each) => each.metadata.name === name);
  const conditionsOf = (resource: Resource, name: string): readonly Condition[] => {
    const status = find(resource, name)?.['status'];
    return isRecord(status) && Array.isArray(status['conditions']) ? status['conditions'] : [];
  };
  const world: World = {
    server,
    timing,
    organizations,
    ledgers,
    interrupt: () => undefined,
    calls: [],
    start: async (identity, more = () => []) => {
      const operator = await startOperator(world, identity, more);
      operators.add(operator);
      return operator;
    },
    pass: async (ms) => {
      const fromMs = timing.monotonicMs();
      const isOver = () => {
        // watches are not idle in a living cluster
        for (const watch of server.watches) watch.bookmark();
        return timing.monotonicMs() - fromMs >= ms;
      };
      await advanceUntil(timing, `${ms} ms`, isOver, Math.min(ms, 1_000));
    },
    until: (what, condition) =>
      advanceUntil(timing, what, () => {
        ledgers.seal();
        return condition();
      }),
    find,
    condition: (resource, name, type) => conditionsOf(resource, name).find((each) => each.type === type),
    isReady: (resource, name) => {
      const ready = conditionsOf(resource, name).find((each) => each.type === 'Ready');
      return (
        ready?.status === 'True' && ready.observedGeneration === find(resource, name)?.metadata.generation
      );
    },
    put: (resource, name, spec) => {
      const before = find(resource, name);
      const object = { ...(before ?? make(resource, name)), spec };
      put(server.state, resource, object);
    },
    putSet: (name, replicas) => {
      const { spec, status } = setOf(replicas, { name });
      const before = find(validatorSets, name) ?? make(validatorSets, name);
      put(server.state, validatorSets, { ...before, spec: { replicas: spec.replicas }, status });
    },
    close: async () => {
      await Promise.all([...operators].map((each) => each.kill()));
      await server.close();
    },
  };
  return world;
}

async function startOperator(
  world: World,
  identity: string,
  more: (dependencies: Dependencies) => readonly Reconciler[],
): Promise<Operator> {
  const { server, timing } = world;
  const { metrics } = testMetrics();
  const runtime = testRuntime('operator', { level: 'silent', clock: timing });
  const { log } = runtime;
  // what waits for the network is on real time, what is planned on manual time
  const rate = { perSecond: 10_000, burst: 10_000 };
  const api = new HttpApi({ credentials: credentialsFor(server.url), timing: systemTiming(), metrics, rate });
  const caches = new Caches({ api, timing, metrics, log, namespaces: ['acme'], watched });
  const leader = new Leader({ api, timing, metrics, log, namespace: 'acme', name: 'operator', identity });
  const fenced = leader.fence(api);
  const controller = 'chancery.dev/operator';
  const recorder = new EventRecorder({ api: fenced, timing, metrics, log, controller, instance: identity });
  const installations = watchInstallations(caches.of(configMaps));
  const dependencies = { runtime, timing, metrics, api: fenced, caches, recorder, installations };
  let isKilled = false;
  const when = (call: string): Interrupting => {
    world.calls.push(call);
    return isKilled ? 'request' : world.interrupt(call);
  };
  const platform = platformOf(world, when);
  const reconcilers = [
    createReconciler(dependencies, tenantKind(dependencies, platform)),
    createReconciler(dependencies, registerKind(dependencies, platform)),
    createOrphanSweeper(dependencies, platform),
    ...more(dependencies),
  ];
  caches.start();
  await Promise.all([tenants, registers, validatorSets, configMaps].map((each) => caches.synced(each)));
  leader.start();
  void leader.elected.then(() => startAsLeader(caches, reconcilers));
  await advanceUntil(timing, `${identity} to lead`, () => leader.isLeading);
  return {
    reconcilers,
    kill: async () => {
      if (isKilled) return;
      isKilled = true;
      const stopped = Promise.all(reconcilers.map((each) => each.stop(0)));
      await timing.advance(1);
      await stopped;
      await Promise.all([leader.stop(), caches.stop(), recorder.stop()]);
      await api.close();
    },
  };
}

function platformOf(world: World, when: (call: string) => Interrupting): Platform {
  const ledgers = withInterruptions(world.ledgers, when);
  const clients: Clients = {
    organizations: withInterruptions(world.organizations, when),
    registers: ledgers,
    wallets: ledgers,
  };
  return { of: async () => clients, stop: () => undefined };
}

/** Writes of an operator, without its lease. */
export function writesTo({ requests }: ApiServer): readonly string[] {
  return requests
    .filter(({ method, target }) => method !== 'GET' && target.plural !== leases.plural)
    .map(
      ({ method, target }) => `${method} ${target.plural}/${target.name ?? ''}/${target.subresource ?? ''}`,
    );
}
