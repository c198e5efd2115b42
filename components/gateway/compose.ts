import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type App, createHttpServer, createOpsServer } from '#kit/http/http.ts';
import { Cleanup, type Component, type Create, type Runtime } from '#kit/lifecycle/lifecycle.ts';
import { connectWorkload, identityCheck, serviceSpiffeId, workloadOf } from '#kit/workload/workload.ts';
import { fetchFrom, probeWith } from './clients.ts';
import { endpointsOf, type GatewayConfig } from './config.ts';
import { createClientReader } from './forwarding/client-address.ts';
import type { ExpectPeer } from './forwarding/connector.ts';
import { createForward } from './forwarding/forward.ts';
import { startProbes } from './forwarding/jobs.ts';
import { securityHeaders } from './forwarding/response-headers.ts';
import { createSpanStepper, createTraceStepper } from './forwarding/trace.ts';
import { createTunnels, type Tunnels } from './forwarding/upgrade.ts';
import { createUpstreams, type IdentitySource, type Upstreams } from './forwarding/upstreams.ts';
import { createHealth } from './health/health.ts';
import { mountRoutes } from './http.ts';
import { createObserve } from './observe.ts';
import { createDocuments } from './openapi/documents.ts';
import { createReference, type Reference, referencePolicy } from './openapi/reference.ts';
import { createMatcher } from './routing/match.ts';
import { createIsRouted } from './routing/public.ts';
import { type RouteRule, routingTable, type ServiceName } from './routing/table.ts';
import { createListener } from './server.ts';

/** Largest request body. */
const bodyLimitBytes = 10 * 1024 * 1024;

const maxTunnels = 10_000;

/** Longest time a service has to answer a WebSocket handshake. */
const maxHandshakeMs = 10_000;

/** Grace period for requests in flight when the gateway stops. */
const drainMs = 3000;

/** Builds and starts the gateway: workload identity, upstream pools, own pages, public listener, operations listener. */
export const createGateway: Create<GatewayConfig> = async (config, runtime) => {
  const cleanup = new Cleanup();
  try {
    const { log, clock } = runtime;
    const workload = await connectWorkload({ ...workloadOf(config), log, clock });
    cleanup.add('workload', () => workload.stop());
    return await openGateway(config, runtime, { identity: workload }, cleanup);
  } catch (error) {
    await cleanup.run(runtime.log);
    throw error;
  }
};

export interface GatewayDependencies {
  readonly identity: IdentitySource;
  /** The routing table; that of the installation when absent. */
  readonly table?: readonly RouteRule[];
}

/** The same with a given identity, for tests. */
export async function openGateway(
  config: GatewayConfig,
  runtime: Runtime,
  { identity, table = routingTable }: GatewayDependencies,
  cleanup: Cleanup,
): Promise<Component> {
  const answerTimeoutMs = config.CHANCERY_GATEWAY_ANSWER_SECONDS * 1000;
  const upstreams = createUpstreams({
    endpoints: endpointsOf(config),
    identity,
    expect: (service) => expectedPeer(config.CHANCERY_INSTALLATION, service),
    connections: config.CHANCERY_GATEWAY_CONNECTIONS,
    answerTimeoutMs,
    log: runtime.log,
  });
  cleanup.add('upstreams', () => upstreams.close());
  cleanup.add('probes', startProbes(upstreams.all));
  const app = await openOwnPages(runtime, upstreams, cleanup);
  const reference = createReference();
  cleanup.add('reference', () => reference.close());
  const tunnels = createTunnels({
    log: runtime.log,
    nowMs: () => runtime.clock.nowMs(),
    maxTunnels,
    deadlineMs: Math.min(answerTimeoutMs, maxHandshakeMs),
  });
  const server = openListener(config, runtime, { upstreams, app, reference, tunnels, table });
  const port = await listen(server, config.CHANCERY_LISTEN_HOST, config.CHANCERY_GATEWAY_PORT);
  cleanup.add('listener', () => closeListener(server, tunnels));
  const ops = await createOpsServer({
    runtime,
    host: config.CHANCERY_LISTEN_HOST,
    port: config.CHANCERY_OPS_PORT,
    checks: [identityCheck(identity, runtime)],
  });
  cleanup.add('ops', () => ops.stop());
  return {
    name: 'gateway',
    addresses: { http: `${config.CHANCERY_LISTEN_HOST}:${port}`, ops: ops.address },
    stop: () => cleanup.run(runtime.log),
  };
}

/** The expected SPIFFE id: `service-{name}`, or any validator, since each validator can serve every request. */
function expectedPeer(installation: string, service: ServiceName): ExpectPeer {
  if (service === 'validator') {
    const prefix = serviceSpiffeId(installation, 'validator-');
    return (id) => id.startsWith(prefix) && id.length > prefix.length;
  }
  const expected = serviceSpiffeId(installation, `service-${service}`);
  return (id) => id === expected;
}

async function openOwnPages(runtime: Runtime, upstreams: Upstreams, cleanup: Cleanup): Promise<App> {
  const app = createHttpServer({ runtime, title: 'Gateway' });
  cleanup.add('own pages', () => app.close());
  const nowMs = () => runtime.clock.nowMs();
  const services = upstreams.all.map((upstream) => upstream.service);
  const documents = createDocuments({
    services: ['gateway', ...services],
    fetch: fetchFrom(upstreams, async () => {
      const own = await app.inject({ url: '/openapi.json' });
      return own.json();
    }),
    isRouted: createIsRouted(),
    nowMs,
    log: runtime.log,
  });
  const health = createHealth({ services, probe: probeWith(upstreams), nowMs });
  mountRoutes(app, { health, nowMs, documents });
  await app.ready();
  return app;
}

interface Parts {
  readonly upstreams: Upstreams;
  readonly app: App;
  readonly reference: Reference;
  readonly tunnels: Tunnels;
  readonly table: readonly RouteRule[];
}

function openListener(config: GatewayConfig, runtime: Runtime, parts: Parts): Server {
  const { clock, log, telemetry } = runtime;
  const forward = createForward({
    upstreams: parts.upstreams,
    bodyLimitBytes,
    log,
    nowMs: () => clock.nowMs(),
  });
  const traced = config.OTEL_EXPORTER_OTLP_ENDPOINT !== undefined;
  return createListener({
    match: createMatcher(parts.table),
    readClient: createClientReader(config.CHANCERY_TRUSTED_PROXIES),
    stepTrace: traced ? createSpanStepper(telemetry.tracer) : createTraceStepper(),
    observe: createObserve(runtime),
    clock,
    destinations: {
      forward,
      serve: (request, response, target) => servePage(parts, request, response, target),
      tunnel: (handshake) => parts.tunnels.open(handshake, parts.upstreams.find(handshake.service)),
    },
  });
}

function servePage(parts: Parts, request: IncomingMessage, response: ServerResponse, target: string): void {
  for (let i = 0; i + 1 < securityHeaders.length; i += 2) {
    response.setHeader(securityHeaders[i] ?? '', securityHeaders[i + 1] ?? '');
  }
  request.url = target;
  if (target === '/docs' || target.startsWith('/docs/') || target.startsWith('/docs?')) {
    response.setHeader('content-security-policy', referencePolicy);
    parts.reference.handle(request, response).catch(() => response.destroy());
  } else {
    parts.app.routing(request, response);
  }
}

async function listen(server: Server, host: string, port: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(port, host, resolve);
  await promise;
  server.off('error', reject);
  const bound = server.address() as AddressInfo;
  return bound.port;
}

/** Stops accepting connections, lets requests finish, then cuts the rest. */
async function closeListener(server: Server, tunnels: Tunnels): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  server.closeIdleConnections();
  tunnels.closeAll();
  const timer = setTimeout(() => server.closeAllConnections(), drainMs);
  await promise;
  clearTimeout(timer);
}
