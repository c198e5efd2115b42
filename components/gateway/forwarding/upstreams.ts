import type { TLSSocket } from 'node:tls';
import { Pool } from 'undici';
import type { Endpoint } from '#kit/config/config.ts';
import type { Logger } from '#kit/log/log.ts';
import type { ServiceName } from '../routing/table.ts';
import { createConnector, type ExpectPeer, type Identity } from './connector.ts';

export interface IdentitySource {
  current(): Identity;
  onRotate(callback: () => void): () => void;
}

/** One service as the gateway sees it: a pool of keep-alive connections that follows the SVID. */
export interface Upstream {
  readonly service: ServiceName;
  /** How many endpoints it has. */
  readonly size: number;
  /** The pool of the current endpoint and SVID; not to be kept across awaits. */
  pool(): Pool;
  /** No connection came about through this pool: from now on the next endpoint is used. */
  moveOn(from: Pool): void;
  openSocket(): Promise<TLSSocket>;
  /** Requests under way, against `maxInFlight`. */
  inFlight: number;
}

export interface Upstreams {
  find(service: ServiceName): Upstream | undefined;
  /** The configured services, in the order of configuration. */
  readonly all: readonly Upstream[];
  close(): Promise<void>;
}

export interface UpstreamOptions {
  readonly endpoints: ReadonlyMap<ServiceName, readonly Endpoint[]>;
  readonly identity: IdentitySource;
  /** Which SPIFFE id a service must show. */
  readonly expect: (service: ServiceName) => ExpectPeer;
  readonly connections: number;
  /** Time for the beginning of an answer, and the longest pause within one. */
  readonly answerTimeoutMs: number;
  readonly log: Logger;
}

/** Requests to one service at a time; more are refused with 503 rather than queued without end. */
export const maxInFlight = 4096;

/** Builds the upstreams. On rotation new pools take over at once, old ones finish what they carry and close. */
export function createUpstreams(options: UpstreamOptions): Upstreams {
  const upstreams = new Map<ServiceName, Upstream & { renew(): void; close(): Promise<void> }>();
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

function createUpstream(service: ServiceName, endpoints: readonly Endpoint[], options: UpstreamOptions) {
  const targets = endpoints.map((endpoint) => createTarget(service, endpoint, options));
  let at = 0;
  const current = () => {
    const target = targets[at];
    if (target === undefined) throw new RangeError(`${service} has no endpoint`);
    return target;
  };
  return {
    service,
    size: targets.length,
    inFlight: 0,
    pool: () => current().pool(),
    moveOn: (from: Pool) => {
      // whoever finds out later that it is gone must not leave the one that took over
      if (targets.length > 1 && current().pool() === from) at = (at + 1) % targets.length;
    },
    openSocket: () => current().openSocket(),
    renew: () => {
      for (const target of targets) target.renew();
    },
    close: async () => {
      await Promise.all(targets.map((target) => target.close()));
    },
  };
}

/** One endpoint: its pool, replaced at each rotation. */
function createTarget(service: ServiceName, endpoint: Endpoint, options: UpstreamOptions) {
  const origin = `https://${endpoint.host.includes(':') ? `[${endpoint.host}]` : endpoint.host}:${endpoint.port}`;
  const build = () => {
    const connector = createConnector(options.identity.current(), options.expect(service));
    const pool = new Pool(origin, {
      connections: options.connections,
      connect: connector.connect,
      pipelining: 1,
      headersTimeout: options.answerTimeoutMs,
      bodyTimeout: options.answerTimeoutMs,
      keepAliveTimeout: 4000,
      keepAliveMaxTimeout: 60_000,
    });
    return { connector, pool };
  };
  let live = build();
  const closing = new Set<Promise<void>>();
  return {
    pool: () => live.pool,
    openSocket: () => live.connector.open(endpoint),
    renew: () => {
      const old = live.pool;
      live = build();
      const closed = old.close().catch((error: unknown) => {
        options.log.warn({ err: error, peer: service }, 'closing a rotated connection pool failed');
      });
      closing.add(closed);
      void closed.finally(() => closing.delete(closed));
    },
    close: async () => {
      await live.pool.destroy();
      await Promise.race([Promise.all(closing), Promise.resolve()]);
    },
  };
}
