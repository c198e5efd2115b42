import { randomUUID } from 'node:crypto';
import { systemTiming } from '#kit/clock/timing.ts';
import { ConfigError } from '#kit/config/config.ts';
import { createOpsServer } from '#kit/http/http.ts';
import { Cleanup, type Component, type Create, type Runtime } from '#kit/lifecycle/lifecycle.ts';
import { connectWorkload, type Workload, workloadOf } from '#kit/workload/workload.ts';
import type { Installation } from './api/installation.ts';
import { OPERATOR_CLIENT_ID } from './api/names.ts';
import type { OperatorConfig } from './config.ts';
import { releaseOnNamespaceDeletion } from './controllers/namespace-deletion/namespace-deletion.ts';
import { Caches } from './controllers/reconciler/caches.ts';
import type { Dependencies } from './controllers/reconciler/dependencies.ts';
import { type Reconciler, startAsLeader } from './controllers/reconciler/reconciler.ts';
import { registers, tenants, validatorSets, watched } from './controllers/reconciler/resources.ts';
import { leaseCheck, watchLoop } from './health.ts';
import type { Api } from './kube/api.ts';
import type { ClusterCredentials } from './kube/credentials.ts';
import { EventRecorder } from './kube/events.ts';
import { HttpApi } from './kube/http.ts';
import { inClusterCredentials } from './kube/in-cluster.ts';
import { configMaps } from './kube/kinds.ts';
import { kubeconfigCredentials } from './kube/kubeconfig.ts';
import { Leader } from './kube/leader.ts';
import { createKubeMetrics } from './kube/metrics.ts';
import { foreignIssuer } from './platform/foreign-identity.ts';
import { watchInstallations } from './platform/installations.ts';
import { warmUpSessions } from './platform/session-warmup.ts';
import { createServiceSessions, type ServiceSessions } from './platform/sessions.ts';

/** Grace time of running reconciles; the whole process has 25 s to stop. */
const graceMs = 20_000;
/** After this time the election starts although a kind is not listed; conditions then report the fault. */
const syncWaitMs = 10_000;

/** Creates the controllers of the operator. */
export type ControllerFactory = (
  dependencies: Dependencies,
  sessions: ServiceSessions,
) => readonly Reconciler[];

/** Builds the operator. `onLost` is called when this process has lost the lease and must exit. */
export function createOperator(controllers: ControllerFactory, onLost: () => void): Create<OperatorConfig> {
  return async (config, runtime) => {
    const cleanup = new Cleanup();
    try {
      return await open({ config, runtime, cleanup, controllers, onLost });
    } catch (error) {
      await cleanup.run(runtime.log);
      throw error;
    }
  };
}

interface OperatorParts {
  readonly config: OperatorConfig;
  readonly runtime: Runtime;
  readonly cleanup: Cleanup;
  readonly controllers: ControllerFactory;
  readonly onLost: () => void;
}

async function open({ config, runtime, cleanup, controllers, onLost }: OperatorParts): Promise<Component> {
  const { log } = runtime;
  const timing = systemTiming();
  const metrics = createKubeMetrics(runtime.telemetry.registry);
  const api = new HttpApi({ credentials: await credentialsOf(config), timing, metrics });
  cleanup.add('cluster', () => api.close());
  const namespaces = namespacesOf(config);
  const caches = new Caches({ api, timing, metrics, log, namespaces, watched });
  cleanup.add('caches', () => caches.stop());
  const leader = new Leader({ api, timing, metrics, log, ...leaseOf(config) });
  cleanup.add('leader', () => leader.stop());
  const fenced = leader.fence(api);
  const recorder = new EventRecorder({
    api: fenced,
    timing,
    metrics,
    log,
    controller: 'chancery.dev/operator',
    instance: config.POD_NAME,
  });
  cleanup.add('events', () => recorder.stop());
  const sessions = createServiceSessions({
    runtime,
    guard: () => leader.guard(),
    connect: (installation) => connectIdentity({ config, runtime, api }, installation),
  });
  cleanup.add('identity', () => sessions.stop());
  const installations = watchInstallations(caches.of(configMaps), config.POD_NAMESPACE);
  cleanup.add('links', warmUpSessions({ sessions, installations, timing, log }));
  const dependencies = { runtime, timing, metrics, api: fenced, caches, recorder, installations };
  cleanup.add('namespace', async () => {
    const own = { api: fenced, timing, log, namespace: config.POD_NAMESPACE };
    if (leader.isLeading) await releaseOnNamespaceDeletion(own);
  });
  const reconcilers = controllers(dependencies, sessions);
  cleanup.add(
    'controllers',
    async () => void (await Promise.all(reconcilers.map((each) => each.stop(graceMs)))),
  );
  const ops = await listen(config, runtime, { caches, leader, cleanup });
  caches.start();
  void lead(caches, leader, { reconcilers, onLost });
  return { name: 'operator', addresses: { ops }, stop: () => cleanup.run(log) };
}

async function listen(
  config: OperatorConfig,
  runtime: Runtime,
  of: { readonly caches: Caches; readonly leader: Leader; readonly cleanup: Cleanup },
): Promise<string> {
  const loop = watchLoop();
  of.cleanup.add('loop watch', () => loop.stop());
  const ops = await createOpsServer({
    runtime,
    host: config.CHANCERY_LISTEN_HOST,
    port: config.CHANCERY_OPS_PORT,
    checks: [of.caches.readiness],
    liveness: [loop.check, leaseCheck(of.leader)],
  });
  of.cleanup.add('ops', () => ops.stop());
  return ops.address;
}

/** Starts the leader election once the kinds are listed, and the controllers once this process leads. */
async function lead(
  caches: Caches,
  leader: Leader,
  { reconcilers, onLost }: { readonly reconcilers: readonly Reconciler[]; readonly onLost: () => void },
): Promise<void> {
  const kinds = [configMaps, validatorSets, registers, tenants];
  const listed = Promise.all(kinds.map((each) => caches.synced(each)));
  const patience = Promise.withResolvers<void>();
  const timer = setTimeout(patience.resolve, syncWaitMs);
  await Promise.race([listed, patience.promise]);
  clearTimeout(timer);
  leader.start();
  void leader.ended.then((end) => {
    if (end === 'lost') onLost();
  });
  await leader.elected;
  await startAsLeader(caches, reconcilers);
}

function credentialsOf(config: OperatorConfig): ClusterCredentials | Promise<ClusterCredentials> {
  if (config.KUBECONFIG !== undefined) return kubeconfigCredentials(config.KUBECONFIG);
  return inClusterCredentials({
    host: config.KUBERNETES_SERVICE_HOST,
    port: config.KUBERNETES_SERVICE_PORT,
  });
}

function namespacesOf(config: OperatorConfig): readonly string[] | undefined {
  const scope = config.CHANCERY_NAMESPACES;
  if (scope === 'all') return undefined;
  return scope === 'own' ? [config.POD_NAMESPACE] : scope;
}

function leaseOf(config: OperatorConfig) {
  if (config.CHANCERY_LEASE_RENEW_MS >= config.CHANCERY_LEASE_MS) {
    const message = 'expected less than CHANCERY_LEASE_MS';
    throw new ConfigError([{ name: 'CHANCERY_LEASE_RENEW_MS', message }]);
  }
  return {
    namespace: config.POD_NAMESPACE,
    name: config.CHANCERY_LEASE_NAME,
    identity: `${config.POD_NAME}_${randomUUID()}`,
    leaseMs: config.CHANCERY_LEASE_MS,
    renewMs: config.CHANCERY_LEASE_RENEW_MS,
    retryMs: config.CHANCERY_LEASE_RETRY_MS,
  };
}

interface IdentityOptions {
  readonly config: OperatorConfig;
  readonly runtime: Runtime;
  readonly api: Api;
}

/** The operator's identity in its own namespace, or one from the issuer of another namespace. */
async function connectIdentity(
  { config, runtime: { log, clock }, api }: IdentityOptions,
  installation: Installation,
): Promise<Workload> {
  const { identity, namespace } = installation;
  if (identity.provider === 'spire' || namespace === config.POD_NAMESPACE) {
    return connectWorkload({ ...workloadOf(config), log, clock });
  }
  const issuer = foreignIssuer(api, { ...installation, identity }, OPERATOR_CLIENT_ID);
  return connectWorkload({ issuer, log, clock });
}
