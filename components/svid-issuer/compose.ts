import { createHttpServer, createOpsServer, listenHttp } from '#kit/http/http.ts';
import { Cleanup, type Component, type Create, type Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRateLimiter, type RateLimiter } from '#kit/rate-limit/rate-limit.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import { AuthorityKeeper, type KeeperTiming } from './authority/keeper.ts';
import type { SvidIssuerConfig } from './config.ts';
import { createIssuerEvents } from './events.ts';
import { mountRoutes } from './http.ts';
import { HttpClusterApi } from './kubernetes/http-cluster-api.ts';
import { startIssuer } from './local/issuer.ts';
import { openOwnSvid } from './own-svid.ts';
import { SvidIssue } from './svids/issue.ts';

export { startIssuer };

const BODY_LIMIT_BYTES = 16 * 1024;
const CONNECTIONS_LIMIT = 2_048;
/** Other replicas may sign with the former root until their next poll. */
const SLACK_MS = 60_000;

/** Builds the issuer; resolves when it has an authority and listens. */
export const createSvidIssuer: Create<SvidIssuerConfig> = (config, runtime) => {
  const leastMs =
    Math.max(config.CHANCERY_AUTHORITY_OVERLAP_SECONDS, config.CHANCERY_SVID_TTL_SECONDS) * 1_000;
  return openSvidIssuer(config, runtime, {
    pollMs: 15_000,
    staleMs: SLACK_MS,
    overlapMs: leastMs + SLACK_MS,
    startMs: 30_000,
  });
};

/** The same with other intervals, for tests. */
export async function openSvidIssuer(
  config: SvidIssuerConfig,
  runtime: Runtime,
  timing: KeeperTiming,
): Promise<Component> {
  const cleanup = new Cleanup();
  try {
    return await open({ config, runtime, timing, cleanup });
  } catch (error) {
    await cleanup.run(runtime.log);
    throw error;
  }
}

interface Parts {
  readonly config: SvidIssuerConfig;
  readonly runtime: Runtime;
  readonly timing: KeeperTiming;
  readonly cleanup: Cleanup;
}

async function open(parts: Parts): Promise<Component> {
  const { config, runtime, cleanup } = parts;
  const cluster = new HttpClusterApi({
    host: config.KUBERNETES_SERVICE_HOST,
    port: config.KUBERNETES_SERVICE_PORT,
    credentialsDir: config.CHANCERY_KUBERNETES_CREDENTIALS_DIR,
    namespace: config.CHANCERY_NAMESPACE,
  });
  cleanup.add('API server', () => cluster.close());
  const keeper = await startKeeper(parts, cluster);
  const httpsPort = await listenTls(parts, cluster, keeper);
  const host = config.CHANCERY_LISTEN_HOST;
  const ops = await createOpsServer({
    runtime,
    host,
    port: config.CHANCERY_OPS_PORT,
    checks: [{ name: 'authority', check: () => void keeper.current() }],
  });
  cleanup.add('operations', () => ops.stop());
  return {
    name: 'svid-issuer',
    addresses: { ops: ops.address, https: `${host}:${httpsPort}` },
    stop: () => cleanup.run(runtime.log),
  };
}

async function startKeeper(parts: Parts, cluster: HttpClusterApi): Promise<AuthorityKeeper> {
  const { config, runtime, timing, cleanup } = parts;
  const keeper = new AuthorityKeeper({
    trustDomain: config.CHANCERY_INSTALLATION,
    secret: config.CHANCERY_AUTHORITY_SECRET,
    configMap: config.CHANCERY_AUTHORITY_CONFIG_MAP,
    cluster,
    clock: runtime.clock,
    log: runtime.log,
    timing,
  });
  cleanup.add('authority', () => keeper.stop());
  await keeper.start();
  return keeper;
}

async function listenTls(parts: Parts, cluster: HttpClusterApi, keeper: AuthorityKeeper): Promise<number> {
  const { config, runtime, cleanup } = parts;
  const { clock, log } = runtime;
  const installation = config.CHANCERY_INSTALLATION;
  const namespace = config.CHANCERY_NAMESPACE;
  const ttlMs = config.CHANCERY_SVID_TTL_SECONDS * 1_000;
  const own = await openOwnSvid({ installation, namespace, keeper, ttlMs, clock, log });
  cleanup.add('own SVID', () => own.stop());
  const app = createHttpServer({
    runtime,
    title: 'Chancery SVID issuer',
    bodyLimitBytes: BODY_LIMIT_BYTES,
    https: own,
    // A caller has no certificate yet.
    clientCertificates: false,
  });
  app.server.maxConnections = CONNECTIONS_LIMIT;
  const limiter = createLimiter(parts);
  limiter.install(app);
  const svids = new SvidIssue({
    installation,
    rules: {
      audience: serviceSpiffeId(installation, 'svid-issuer'),
      namespace,
      serviceAccounts: config.CHANCERY_SERVICE_ACCOUNTS,
    },
    ttlMs,
    cluster,
    authority: keeper,
    clock,
    limit: (clientId) => limiter.take('Token', clientId),
  });
  mountRoutes(app, { svids, events: createIssuerEvents(runtime) });
  cleanup.add('TLS listener', () => app.close());
  return listenHttp(app, { host: config.CHANCERY_LISTEN_HOST, port: config.CHANCERY_ISSUER_PORT });
}

/**
 * Limits by address before the cluster is called, and by client id afterwards. A pod that restarts in a loop stays
 * below both.
 */
function createLimiter({ runtime }: Parts): RateLimiter {
  return createRateLimiter({
    profile: 'production',
    clock: runtime.clock,
    rules: {
      Strict: { kind: 'bucket', limit: 60, refillPerSecond: 2, key: 'address' },
      Token: { kind: 'bucket', limit: 60, refillPerSecond: 1, key: 'client' },
    },
  });
}
