import { SUBJECTS } from '#core/events/subjects.ts';
import { listServices, type Service } from '#core/identity/services.ts';
import { authPlugin } from '#kit/auth/auth.ts';
import { startJobs } from '#kit/clock/jobs.ts';
import { createHttpServer, listenHttp } from '#kit/http/http.ts';
import { type Hub, openHub } from '#kit/hub/hub.ts';
import type { Cleanup, Create, Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { RpcServer } from '#kit/rpc/rpc.ts';
import { createService, openStore, type ServiceBase, type ServiceParts } from '#kit/service/service.ts';
import { createTelemetry } from '#kit/telemetry/telemetry.ts';
import type { Workload } from '#kit/workload/workload.ts';
import {
  AuditService,
  IssuerChainService,
  MembershipService,
  PrincipalService,
  RevocationService,
} from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { TrustListService } from '#protos/gen/chancery/tenant/v1/trust_lists_pb.js';
import { assembleTenant, type Parts, type Tenant } from './assemble.ts';
import { auditKeyUse } from './audit/key-uses.ts';
import { auditRpc } from './audit/rpc.ts';
import { auditWalletChange } from './audit/wallet-changes.ts';
import { connectWalletEvents } from './clients.ts';
import type { TenantConfig } from './config.ts';
import { migrations } from './database/migrations/list.ts';
import type { TenantDatabase } from './database/schema.ts';
import { mountInternalRoutes, mountRoutes } from './http.ts';
import { tenantHub } from './people/inbox/hub.ts';
import { mayFindMembers, membershipRpc } from './people/memberships/rpc.ts';
import { startWalletConsumer } from './people/wallets/consumer.ts';
import { mintDelegatedToken } from './platform/principals/delegate.ts';
import { mintServiceToken } from './platform/principals/mint.ts';
import { mayManagePrincipals, principalRpc } from './platform/principals/rpc.ts';
import { startTokenListener } from './platform/principals/token-listener.ts';
import { revocationRpc } from './tokens/revocations/rpc.ts';
import { enrolFirstWallets } from './trust/certificates/automatic/job.ts';
import { requestEnrolment } from './trust/certificates/automatic/store.ts';
import { issuerChainRpc, mayReadChains } from './trust/certificates/rpc.ts';
import { connectOrganizationKeys } from './trust/keys/clients.ts';
import { mayReadAnchors, trustListRpc } from './trust/lists/rpc.ts';
import { upkeepJobs } from './upkeep.ts';

interface Built extends ServiceParts {
  readonly config: TenantConfig;
  readonly runtime: Runtime;
  readonly tenant: Tenant;
  readonly workload: Workload;
  readonly parts: Parts;
  readonly cleanup: Cleanup;
  readonly hub: Hub;
}

/**
 * Builds the tenant service; resolves when it listens and is ready. It verifies tokens with local keys and revocations.
 */
export const createTenant = createTenantOf(listServices());

/** The same with principals of other services. */
export function createTenantOf(services: readonly Service[]): Create<TenantConfig> {
  return createService<TenantConfig, Built>({
    service: 'tenant',
    title: 'Tenant',
    assemble: (base) => assemble(base, services),
    rpc: addServices,
    routes: (app, { tenant, hub }) => mountRoutes(app, tenant.deps, () => hub),
    stopping: ({ hub }) => hub.stop(),
    listen: async (_base, built) => ({
      internal: await listenInternal(built),
      mtls: await listenTokens(built),
    }),
    listening: (_base, built) => followWallets(built),
  });
}

async function assemble(base: ServiceBase<TenantConfig>, services: readonly Service[]): Promise<Built> {
  const { config, runtime, workload, bus, cleanup } = base;
  const db = await openStore<TenantDatabase>(base, { schema: 'tenant', migrations });
  const parts = { config, runtime, db, bus, services, connectKeys: keysOf(base) };
  const tenant = await assembleTenant(parts);
  const { authenticator, limiter, principals, revocations, mintLog } = tenant;
  const unsubscribe = bus.subscribe(SUBJECTS.tenantEvents, () => principals.invalidate());
  cleanup.add('tenant events', unsubscribe);
  await revocations.start();
  cleanup.add('revocations', () => revocations.stop());
  base.checks.push({ name: 'revocations', check: () => revocations.assertFresh() });
  base.checks.push({ name: 'mail', degrades: true, check: () => tenant.messageSender.assertMail() });
  cleanup.add('mint log', () => mintLog.flush());
  const hub = await openHub(tenantHub(db.read), { runtime, bus, authenticator, workload });
  cleanup.add('hub', () => hub.stop());
  const { reader, door } = tenant.deps.trustLists;
  cleanup.add('trust lists', async () => {
    await reader.close();
    await door.close();
  });
  const enrolments = enrolFirstWallets({ ...tenant.deps.trust, log: runtime.log });
  const jobs = startJobs([...upkeepJobs(parts, tenant), enrolments], runtime);
  cleanup.add('jobs', () => jobs.stop());
  return { authenticator, limiter, config, runtime, tenant, workload, parts, cleanup, hub };
}

/** The wallet service starts after this one, so that nothing connects before the first call. */
function keysOf({ config, runtime, workload, cleanup }: ServiceBase<TenantConfig>): Parts['connectKeys'] {
  return (token) => {
    const [http, grpc] = [config.CHANCERY_WALLET_HTTPS, config.CHANCERY_WALLET_GRPC];
    const keys = connectOrganizationKeys({ runtime, workload, token, http, grpc });
    cleanup.add('keys of organisations', () => keys.close());
    return keys;
  };
}

/** Starts after the listeners and waits for no other service, because the wallet service needs this one to start. */
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
    auditUse: auditKeyUse,
    auditChange: auditWalletChange,
    onOrganizationWallet: (tx, wallet) => requestEnrolment(tx, wallet, new Date(runtime.clock.nowMs())),
    bus: parts.bus,
    log,
    onApplied: (count) => applied.inc(count),
    onFailed: () => failures.inc(),
  });
  cleanup.add('wallet consumer', () => consumer.stop());
}

/** The listener without TLS for pods of the installation that have no identity yet; NetworkPolicies restrict it. */
async function listenInternal({ config, runtime, tenant, cleanup }: Built): Promise<string> {
  const { registry } = runtime.telemetry;
  // The process has one registry, so the metrics of this listener need a separate name.
  const telemetry = createTelemetry({ service: 'tenant-internal', registry });
  const app = createHttpServer({
    runtime: { ...runtime, telemetry },
    title: 'Tenant, internal',
    bodyLimitBytes: 16_384,
  });
  authPlugin(app, tenant.authenticator);
  mountInternalRoutes(app, tenant.deps);
  cleanup.add('internal HTTP', () => app.close());
  const address = { host: config.CHANCERY_LISTEN_HOST, port: config.CHANCERY_TENANT_INTERNAL_PORT };
  return `${address.host}:${await listenHttp(app, address)}`;
}

async function listenTokens({ config, runtime, tenant, workload, cleanup }: Built): Promise<string> {
  const host = config.CHANCERY_LISTEN_HOST;
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

function addServices(server: RpcServer, { runtime, tenant, parts }: Built): void {
  // Any service may read revocations with its SVID alone: reading them must not depend on a valid token.
  server.add(RevocationService, revocationRpc({ read: parts.db.read, clock: runtime.clock }), {
    allow: () => true,
  });
  server.add(AuditService, auditRpc({ db: parts.db, clock: runtime.clock }), {
    allow: () => true,
    requireToken: true,
  });
  server.add(MembershipService, membershipRpc(parts.db.read), {
    allow: mayFindMembers,
    requireToken: true,
  });
  server.add(TrustListService, trustListRpc(tenant.deps.trustLists), {
    allow: mayReadAnchors,
    requireToken: true,
  });
  server.add(PrincipalService, principalRpc(tenant.managePrincipals), {
    allow: mayManagePrincipals,
    requireToken: true,
  });
  server.add(IssuerChainService, issuerChainRpc(tenant.deps.trust), {
    allow: mayReadChains,
    requireToken: true,
  });
}
