import { SUBJECTS } from '#core/events/subjects.ts';
import { authPlugin } from '#kit/auth/auth.ts';
import { busOf, connectBus } from '#kit/bus/bus.ts';
import { openDatabase } from '#kit/db/db.ts';
import {
  type App,
  createHttpServer,
  createOpsServer,
  listenHttp,
  type ReadinessCheck,
} from '#kit/http/http.ts';
import { Cleanup, type Component, type Create, type Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRpcServer } from '#kit/rpc/rpc.ts';
import { createTelemetry } from '#kit/telemetry/telemetry.ts';
import { connectWorkload, identityCheck, type Workload, workloadOf } from '#kit/workload/workload.ts';
import {
  AuditService,
  PrincipalService,
  RevocationService,
} from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { assembleTenant, type Parts, type Tenant } from './assemble.ts';
import { auditRpc } from './audit/rpc.ts';
import { connectWalletEvents } from './clients.ts';
import type { TenantConfig } from './config.ts';
import { migrations } from './database/migrations/list.ts';
import type { TenantDatabase } from './database/schema.ts';
import { mountInternalRoutes, mountRoutes } from './http.ts';
import { startJobs } from './jobs.ts';
import { mintDelegatedToken } from './principals/delegate.ts';
import { mintServiceToken } from './principals/mint.ts';
import { mayKeepPrincipals, principalRpc } from './principals/rpc.ts';
import { startTokenListener } from './principals/token-listener.ts';
import { revocationRpc } from './revocations/rpc.ts';
import { upkeepJobs } from './upkeep.ts';
import { startWalletConsumer } from './wallets/consumer.ts';

/** The tenant service: resolves when it listens and is ready. */
export const createTenant: Create<TenantConfig> = async (config, runtime) => {
  const cleanup = new Cleanup();
  try {
    return await compose(config, runtime, cleanup);
  } catch (error) {
    await cleanup.run(runtime.log);
    throw error;
  }
};

interface Built {
  readonly config: TenantConfig;
  readonly runtime: Runtime;
  readonly tenant: Tenant;
  readonly workload: Workload;
  readonly parts: Parts;
  readonly cleanup: Cleanup;
}

async function compose(config: TenantConfig, runtime: Runtime, cleanup: Cleanup): Promise<Component> {
  const { log, clock, telemetry } = runtime;
  const db = await openDatabase<TenantDatabase>({
    url: config.DATABASE_URL,
    schema: 'tenant',
    log,
    telemetry,
    migrations,
    maxConnections: config.CHANCERY_DATABASE_CONNECTIONS,
  });
  cleanup.add('database', () => db.close());
  const workload = await connectWorkload({ ...workloadOf(config), log, clock });
  cleanup.add('workload', () => workload.stop());
  const bus = await connectBus({ ...busOf(config), name: runtime.service, log });
  cleanup.add('bus', () => bus.close());
  const parts = { config, runtime, db, bus };
  const tenant = await assembleTenant(parts);
  cleanup.add(
    'doorbell',
    bus.subscribe(SUBJECTS.tenantEvents, () => tenant.principals.invalidate()),
  );
  await tenant.revocations.start();
  cleanup.add('revocations', () => tenant.revocations.stop());
  cleanup.add('mint log', () => tenant.mintLog.flush());
  const jobs = startJobs(upkeepJobs(parts, tenant), log);
  cleanup.add('jobs', () => jobs.stop());
  const built = { config, runtime, tenant, workload, parts, cleanup };
  const addresses = await listen(built);
  followWallets(built);
  return { name: 'tenant', addresses, stop: () => cleanup.run(log) };
}

/** Begins after the listeners and waits for nobody: the wallet service starts later and needs this one (decision D30). */
function followWallets({ config, runtime, tenant, workload, parts, cleanup }: Built): void {
  const { log, telemetry } = runtime;
  const token = tenant.ownToken;
  const source = connectWalletEvents(config.CHANCERY_WALLET_GRPC, { runtime, workload, token });
  cleanup.add('wallet events', () => source.close());
  const applied = telemetry.counter('wallet_events_total', 'Events of wallets applied');
  const failures = telemetry.counter('wallet_event_failures_total', 'Reads of wallet events that failed');
  const consumer = startWalletConsumer({
    db: parts.db,
    source,
    bus: parts.bus,
    log,
    onApplied: (count) => applied.inc(count),
    onFailed: () => failures.inc(),
  });
  cleanup.add('wallet consumer', () => consumer.stop());
}

async function listen(built: Built): Promise<Component['addresses']> {
  const { config, runtime, tenant, workload, parts, cleanup } = built;
  const host = config.CHANCERY_LISTEN_HOST;
  const checks: readonly ReadinessCheck[] = [
    { name: 'database', check: () => parts.db.ping() },
    { name: 'revocations', check: () => tenant.revocations.assertFresh() },
    identityCheck(workload, runtime),
  ];
  const publicApp = createHttpServer({
    runtime,
    title: 'Tenant',
    https: workload,
    trustForwarded: true,
    checks,
  });
  authPlugin(publicApp, tenant.authenticator);
  tenant.limiter.install(publicApp);
  mountRoutes(publicApp, tenant.deps);
  const https = await listenApp(publicApp, { host, port: config.CHANCERY_HTTPS_PORT }, cleanup);
  const { registry } = runtime.telemetry;
  // Metrics of the two listeners have names of their own in the one registry of the process.
  const internalRuntime = {
    ...runtime,
    telemetry: createTelemetry({ service: 'tenant-internal', registry }),
  };
  const internalApp = createHttpServer({
    runtime: internalRuntime,
    title: 'Tenant, internal',
    bodyLimitBytes: 16_384,
  });
  authPlugin(internalApp, tenant.authenticator);
  mountInternalRoutes(internalApp, tenant.deps);
  const internal = await listenApp(
    internalApp,
    { host, port: config.CHANCERY_TENANT_INTERNAL_PORT },
    cleanup,
  );
  const mtls = await listenTokens(built, host);
  const grpc = await listenRpc(built, host);
  const ops = await createOpsServer({
    runtime,
    host,
    port: config.CHANCERY_OPS_PORT,
    checks,
  });
  cleanup.add('ops', () => ops.stop());
  return { ops: ops.address, https, grpc, mtls, internal };
}

async function listenApp(
  app: App,
  address: { readonly host: string; readonly port: number },
  cleanup: Cleanup,
): Promise<string> {
  cleanup.add('http', () => app.close());
  return `${address.host}:${await listenHttp(app, address)}`;
}

async function listenTokens(
  { config, runtime, tenant, workload, cleanup }: Built,
  host: string,
): Promise<string> {
  const listener = await startTokenListener({
    tls: workload,
    host,
    port: config.CHANCERY_TENANT_MTLS_PORT,
    clock: runtime.clock,
    log: runtime.log,
    mint: (request) => mintServiceToken(tenant.mint, request),
    mintDelegated: (request) => mintDelegatedToken(tenant.mint, request),
  });
  cleanup.add('token listener', () => listener.stop());
  return `${host}:${listener.port}`;
}

async function listenRpc(built: Built, host: string): Promise<string> {
  const { config, runtime, tenant, workload, parts, cleanup } = built;
  const server = createRpcServer({
    runtime,
    workload,
    host,
    port: config.CHANCERY_GRPC_PORT,
    authenticate: (token) => tenant.authenticator.authenticate(token),
  });
  // Revocations are public among services: the SVID is enough, so that nobody needs a token to learn of dead ones.
  server.add(RevocationService, revocationRpc({ read: parts.db.read, clock: runtime.clock }), {
    allow: () => true,
  });
  server.add(AuditService, auditRpc({ db: parts.db, clock: runtime.clock }), {
    allow: () => true,
    requireToken: true,
  });
  server.add(PrincipalService, principalRpc(tenant.keepPrincipals), {
    allow: mayKeepPrincipals,
    requireToken: true,
  });
  cleanup.add('rpc', () => server.stop());
  return `${host}:${await server.listen()}`;
}
