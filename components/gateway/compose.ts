import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { clientIdOf, listServices, type Service } from '#core/identity/services.ts';
import { type App, createHttpServer } from '#kit/http/http.ts';
import type { Create, Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createProcess, openIdentity, type ProcessBase, type ProcessParts } from '#kit/service/process.ts';
import { identityCheck, serviceSpiffeId } from '#kit/workload/workload.ts';
import { securityHeaders } from './answers/security-headers.ts';
import { fetchFrom, probeWith } from './clients.ts';
import { endpointsOf, type GatewayConfig } from './config.ts';
import { createClientReader } from './forwarding/client-address.ts';
import type { ExpectPeer } from './forwarding/connector.ts';
import { createForward } from './forwarding/forward.ts';
import { createHeldCalls, type HeldCalls } from './forwarding/held-calls.ts';
import { createHold } from './forwarding/hold.ts';
import { startProbes } from './forwarding/jobs.ts';
import { createPageUpstream } from './forwarding/page-upstream.ts';
import { createSpanStepper, createTraceStepper } from './forwarding/trace.ts';
import { createTunnels, type Tunnels } from './forwarding/upgrade.ts';
import {
  createUpstreams,
  type Forwarded,
  type IdentitySource,
  type Upstreams,
} from './forwarding/upstreams.ts';
import { createHealth } from './health/health.ts';
import { mountRoutes } from './http.ts';
import { createObserve } from './observe.ts';
import { createDocuments } from './openapi/documents.ts';
import { createReference, type Reference, referencePolicy } from './openapi/reference.ts';
import { createMatcher } from './routing/match.ts';
import { createIsRouted } from './routing/public.ts';
import { PAGES, type RouteRule, routingTableOf } from './routing/table.ts';
import { createListener } from './server.ts';

/** Largest request body. */
const bodyLimitBytes = 10 * 1024 * 1024;

/** Open WebSockets, event streams and polls of hubs. */
const maxHeldCalls = 10_000;

const maxStalledMs = 30_000;

/** Longest time a service has to answer a WebSocket handshake. */
const maxHandshakeMs = 10_000;

/** Grace period for requests in flight when the gateway stops. */
const drainMs = 3000;

type GatewayBase = ProcessBase<GatewayConfig>;

/** Dependencies of a gateway that a test replaces. */
interface GatewayDependencies {
  /** The services behind it; those of the installation when absent. */
  readonly services?: readonly Service[];
  /** Opens its identity; the configured one when absent. */
  readonly identify?: (base: GatewayBase) => Promise<IdentitySource>;
  /** Longest time a client of a hub may read nothing while data waits for it. */
  readonly stalledMs?: number;
}

/** Builds the gateway: identity, upstream pools, own pages, public listener. */
export const createGateway = createGatewayOf({});

/** The same with other services, or with the dependencies of a test. */
export function createGatewayOf({
  services = listServices(),
  identify = openIdentity,
  stalledMs = maxStalledMs,
}: GatewayDependencies): Create<GatewayConfig> {
  return createProcess<GatewayConfig, Parts>({
    name: 'gateway',
    assemble: async (base) => {
      const identity = await identify(base);
      base.checks.push(identityCheck(identity, base.runtime));
      return assemble(base, { services, identity, stalledMs });
    },
    listen: async (base, parts) => ({ http: await listenPublic(base, parts) }),
  });
}

interface Parts extends ProcessParts {
  readonly upstreams: Upstreams;
  readonly app: App;
  readonly reference: Reference;
  readonly tunnels: Tunnels;
  readonly heldCalls: HeldCalls;
  readonly stalledMs: number;
  readonly table: readonly RouteRule[];
  /** The server of pages, where one replaces the built-in ones. */
  readonly pages: Forwarded | undefined;
}

interface Surface {
  readonly services: readonly Service[];
  readonly identity: IdentitySource;
  readonly stalledMs: number;
}

async function assemble(base: GatewayBase, { services, identity, stalledMs }: Surface): Promise<Parts> {
  const { config, runtime, cleanup } = base;
  const answerTimeoutMs = answerTimeoutOf(config);
  const members = new Set(services.filter((service) => service.members === true).map(({ name }) => name));
  const upstreams = createUpstreams({
    endpoints: endpointsOf(config, services),
    identity,
    expect: (name) => expectedPeer(config.CHANCERY_INSTALLATION, name, members.has(name)),
    connections: config.CHANCERY_GATEWAY_CONNECTIONS,
    answerTimeoutMs,
    log: runtime.log,
  });
  cleanup.add('upstreams', () => upstreams.close());
  cleanup.add('probes', startProbes(upstreams.all));
  const table = routingTableOf(services, config.CHANCERY_UI_UPSTREAM !== undefined);
  const app = await openOwnPages(base, upstreams, table);
  const reference = createReference();
  cleanup.add('reference', () => reference.close());
  const heldCalls = openHeldCalls(base);
  const tunnels = createTunnels({
    log: runtime.log,
    nowMs: () => runtime.clock.nowMs(),
    heldCalls,
    stalledMs,
    deadlineMs: Math.min(answerTimeoutMs, maxHandshakeMs),
  });
  const pages = openPageServer(base);
  return { upstreams, app, reference, tunnels, heldCalls, stalledMs, table, pages };
}

function openPageServer({ config, cleanup }: GatewayBase): Forwarded | undefined {
  const origin = config.CHANCERY_UI_UPSTREAM;
  if (origin === undefined) return undefined;
  const connections = config.CHANCERY_GATEWAY_CONNECTIONS;
  const server = createPageUpstream({ origin, connections, answerTimeoutMs: answerTimeoutOf(config) });
  cleanup.add('server of pages', () => server.close());
  return server.upstream;
}

function openHeldCalls({ config, runtime }: GatewayBase): HeldCalls {
  const heldCalls = createHeldCalls({
    most: maxHeldCalls,
    mostOfClient: config.CHANCERY_GATEWAY_HUB_CONNECTIONS,
  });
  const help = 'Open WebSockets, event streams and polls of hubs.';
  runtime.telemetry.gauge('hub_connections', help, () => heldCalls.count());
  return heldCalls;
}

const answerTimeoutOf = (config: GatewayConfig): number => config.CHANCERY_GATEWAY_ANSWER_SECONDS * 1000;

/** Opens the public listener; returns its address. */
async function listenPublic({ config, runtime, cleanup }: GatewayBase, parts: Parts): Promise<string> {
  const server = openListener(config, runtime, parts);
  const host = config.CHANCERY_LISTEN_HOST;
  const port = await listen(server, host, config.CHANCERY_GATEWAY_PORT);
  cleanup.add('listener', () => closeListener(server, parts.heldCalls));
  return `${host}:${port}`;
}

/** The expected SPIFFE id: `service-{name}`, or that of any member, since each member can serve every request. */
function expectedPeer(installation: string, service: string, hasMembers: boolean): ExpectPeer {
  if (hasMembers) {
    const prefix = serviceSpiffeId(installation, `${service}-`);
    return (id) => id.startsWith(prefix) && id.length > prefix.length;
  }
  const expected = serviceSpiffeId(installation, clientIdOf(service));
  return (id) => id === expected;
}

async function openOwnPages(
  { runtime, cleanup }: GatewayBase,
  upstreams: Upstreams,
  table: readonly RouteRule[],
): Promise<App> {
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
    isRouted: createIsRouted(table),
    nowMs,
    log: runtime.log,
  });
  const health = createHealth({ services, probe: probeWith(upstreams), nowMs });
  mountRoutes(app, { health, nowMs, documents });
  await app.ready();
  return app;
}

function openListener(config: GatewayConfig, runtime: Runtime, parts: Parts): Server {
  const { clock, log, telemetry } = runtime;
  const nowMs = () => clock.nowMs();
  const forward = createForward({
    find: (service) => (service === PAGES ? parts.pages : parts.upstreams.find(service)),
    bodyLimitBytes,
    log,
    nowMs,
  });
  const hold = createHold({
    upstreams: parts.upstreams,
    heldCalls: parts.heldCalls,
    stalledMs: parts.stalledMs,
    log,
    nowMs,
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
      hold,
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

/** Stops accepting connections, ends the calls of hubs, lets other requests finish, then cuts the rest. */
async function closeListener(server: Server, heldCalls: HeldCalls): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  server.closeIdleConnections();
  heldCalls.endAll();
  const timer = setTimeout(() => server.closeAllConnections(), drainMs);
  await promise;
  clearTimeout(timer);
}
