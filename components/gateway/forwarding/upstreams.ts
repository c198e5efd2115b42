import type { IncomingHttpHeaders } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { Pool } from 'undici';
import type { Endpoint } from '#kit/config/config.ts';
import type { Logger } from '#kit/log/log.ts';
import { type Connector, createConnector, type ExpectPeer, type Identity } from './connector.ts';
import { endpointGone } from './failure.ts';

export interface IdentitySource {
  current(): Identity;
  onRotate(callback: () => void): () => void;
}

/** One endpoint of a service: pools of keep-alive connections that follow the SVID. */
interface Target {
  /** The pool of the current SVID; must not be kept across awaits. */
  pool(): Pool;
  /** The same for streams and held polls of hubs: without a limit of connections, which `HeldCalls` bounds. */
  heldPool(): Pool;
  openSocket(): Promise<TLSSocket>;
  /** Whether requests are pending. */
  isBusy(): boolean;
  /** Status of `GET /health`, over a dedicated connection: it is not queued behind requests. */
  askHealth(signal: AbortSignal): Promise<number>;
  /** The endpoint no longer answers: its pending requests fail at once. */
  giveUp(): void;
}

/** What requests are forwarded to. */
export interface Forwarded {
  /** Number of endpoints. */
  readonly size: number;
  /** The endpoint for new requests. */
  current(): Pick<Target, 'pool'>;
  /** Directs later requests to the next endpoint, unless another caller did so already. */
  leave(target: Pick<Target, 'pool'>): void;
  /** Pending requests, limited by `maxInFlight`. */
  inFlight: number;
  /** Present where it is no service of the installation. */
  readonly outside?: Outside;
}

/** What a server outside of the installation is given, and what it may answer. */
interface Outside {
  requestHeaders(flat: readonly string[]): string[];
  answerHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders;
}

/** One service, as the gateway uses it. */
export interface Upstream extends Forwarded {
  readonly service: string;
  readonly targets: readonly Target[];
  current(): Target;
  leave(target: Target): void;
}

export interface Upstreams {
  find(service: string): Upstream | undefined;
  /** The configured services, in the order of configuration. */
  readonly all: readonly Upstream[];
  close(): Promise<void>;
}

interface UpstreamOptions {
  readonly endpoints: ReadonlyMap<string, readonly Endpoint[]>;
  readonly identity: IdentitySource;
  /** The SPIFFE id that a service must present. */
  readonly expect: (service: string) => ExpectPeer;
  readonly connections: number;
  /** Time for the start of an answer, and the longest pause within one. */
  readonly answerTimeoutMs: number;
  readonly log: Logger;
}

/** Maximum pending requests per service; more are refused with 503 instead of queued. */
export const maxInFlight = 4096;

/** Shortest time for the answer to a poll that a hub holds for 25 s, and for the next ping of a stream. */
const minHeldMs = 30_000;

/**
 * Builds the upstreams. After an SVID rotation new pools are used at once; old pools complete their requests and close.
 */
export function createUpstreams(options: UpstreamOptions): Upstreams {
  const upstreams = new Map<string, Upstream & { renew(): void; close(): Promise<void> }>();
  for (const [service, endpoints] of options.endpoints) {
    upstreams.set(service, createUpstream(service, endpoints, options));
  }
  const unsubscribe = options.identity.onRotate(() => {
    for (const upstream of upstreams.values()) upstream.renew();
  });
  return {
    find: (service) => upstreams.get(service),
    all: [...upstreams.values()],
    close: async () => {
      unsubscribe();
      await Promise.all([...upstreams.values()].map((upstream) => upstream.close()));
    },
  };
}

function createUpstream(service: string, endpoints: readonly Endpoint[], options: UpstreamOptions) {
  const targets = endpoints.map((endpoint) => createTarget(service, endpoint, options));
  let at = 0;
  const current = () => {
    const target = targets[at];
    if (target === undefined) throw new RangeError(`${service} has no endpoint`);
    return target;
  };
  return {
    service,
    targets,
    size: targets.length,
    inFlight: 0,
    current,
    leave: (target: Pick<Target, 'pool'>) => {
      // a caller that detects the failure late must not leave the next endpoint
      if (current() === target) at = (at + 1) % targets.length;
    },
    renew: () => {
      for (const target of targets) target.renew();
    },
    close: async () => {
      await Promise.all(targets.map((target) => target.close()));
    },
  };
}

/** One endpoint: its pools, replaced at each rotation and when it was given up. */
function createTarget(service: string, endpoint: Endpoint, options: UpstreamOptions) {
  const origin = `https://${endpoint.host.includes(':') ? `[${endpoint.host}]` : endpoint.host}:${endpoint.port}`;
  const { log } = options;
  let live = openPools(origin, service, options);
  const closing = new Set<Pool>();
  /** Ends when its pending requests have ended. */
  const retire = (pool: Pool) => {
    closing.add(pool);
    pool
      .close()
      .catch((error: unknown) => {
        log.warn({ err: error, peer: service }, 'closing the connection pool of a rotated SVID failed');
      })
      .finally(() => closing.delete(pool));
  };
  const destroy = (pool: Pool) =>
    pool.destroy(endpointGone()).catch((error: unknown) => {
      log.warn({ err: error, peer: service }, 'ending a connection pool failed');
    });
  return {
    pool: () => live.pool,
    heldPool: () => live.held,
    openSocket: () => live.connector.open(endpoint),
    isBusy: () => [live.pool, live.held, ...closing].some((pool) => pool.stats.size > 0),
    askHealth: async (signal: AbortSignal) => {
      const { statusCode, body } = await live.probing.request({ path: '/health', method: 'GET', signal });
      await body.dump();
      return statusCode;
    },
    giveUp: () => {
      log.warn({ peer: service, origin }, 'an endpoint does not answer; its pending requests are aborted');
      const { pool, held, probing } = live;
      live = openPools(origin, service, options);
      for (const each of [pool, held, probing, ...closing]) void destroy(each);
    },
    renew: () => {
      const { pool, held, probing } = live;
      live = openPools(origin, service, options);
      for (const each of [pool, held, probing]) retire(each);
    },
    close: async () => {
      await Promise.all([live.pool, live.held, live.probing].map((pool) => pool.destroy()));
    },
  };
}

interface Pools {
  readonly connector: Connector;
  readonly pool: Pool;
  readonly held: Pool;
  readonly probing: Pool;
}

function openPools(origin: string, service: string, options: UpstreamOptions): Pools {
  const connector = createConnector(options.identity.current(), options.expect(service));
  const open = (connections: number | null, timeoutMs = options.answerTimeoutMs) =>
    new Pool(origin, {
      connections,
      connect: connector.connect,
      pipelining: 1,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      keepAliveTimeout: 4000,
      keepAliveMaxTimeout: 60_000,
    });
  const held = open(null, Math.max(options.answerTimeoutMs, minHeldMs));
  return { connector, pool: open(options.connections), held, probing: open(1) };
}
