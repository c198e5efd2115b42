import { createHttpServer, listenHttp } from '#kit/http/http.ts';
import type { Create, Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRateLimiter, type RateLimiter } from '#kit/rate-limit/rate-limit.ts';
import { createProcess, type ProcessBase, type ProcessParts } from '#kit/service/process.ts';
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

const bodyLimitBytes = 16 * 1024;
const maxConnections = 2_048;
/** Other replicas may sign with the former root until their next poll. */
const slackMs = 60_000;

/** Builds the issuer; resolves when it has an authority and listens. */
export const createSvidIssuer = createSvidIssuerOf((config) => {
  const leastMs =
    Math.max(config.CHANCERY_AUTHORITY_OVERLAP_SECONDS, config.CHANCERY_SVID_TTL_SECONDS) * 1_000;
  return { pollMs: 15_000, staleMs: slackMs, overlapMs: leastMs + slackMs, startMs: 30_000 };
});

/** The same with other intervals, for tests. */
export function createSvidIssuerOf(
  timingOf: (config: SvidIssuerConfig) => KeeperTiming,
): Create<SvidIssuerConfig> {
  return createProcess<SvidIssuerConfig, Parts>({
    name: 'svid-issuer',
    assemble: (base) => assemble(base, timingOf(base.config)),
    listen: async (base, parts) => ({ https: await listenTls(base, parts) }),
  });
}

type IssuerBase = ProcessBase<SvidIssuerConfig>;

interface Parts extends ProcessParts {
  readonly cluster: HttpClusterApi;
  readonly keeper: AuthorityKeeper;
}

async function assemble(base: IssuerBase, timing: KeeperTiming): Promise<Parts> {
  const { config, cleanup, checks } = base;
  const cluster = new HttpClusterApi({
    host: config.KUBERNETES_SERVICE_HOST,
    port: config.KUBERNETES_SERVICE_PORT,
    credentialsDir: config.CHANCERY_KUBERNETES_CREDENTIALS_DIR,
    namespace: config.CHANCERY_NAMESPACE,
  });
  cleanup.add('API server', () => cluster.close());
  const keeper = await startKeeper(base, cluster, timing);
  checks.push({ name: 'authority', check: () => void keeper.current() });
  return { cluster, keeper };
}

async function startKeeper(
  { config, runtime, cleanup }: IssuerBase,
  cluster: HttpClusterApi,
  timing: KeeperTiming,
): Promise<AuthorityKeeper> {
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

/** Opens the listener for certificate requests; returns its address. */
async function listenTls(base: IssuerBase, { cluster, keeper }: Parts): Promise<string> {
  const { config, runtime, cleanup } = base;
  const { clock, log } = runtime;
  const installation = config.CHANCERY_INSTALLATION;
  const namespace = config.CHANCERY_NAMESPACE;
  const ttlMs = config.CHANCERY_SVID_TTL_SECONDS * 1_000;
  const own = await openOwnSvid({ installation, namespace, keeper, ttlMs, clock, log });
  cleanup.add('own SVID', () => own.stop());
  const app = createHttpServer({
    runtime,
    title: 'Chancery SVID issuer',
    bodyLimitBytes,
    https: own,
    // A caller has no certificate yet.
    clientCertificates: false,
  });
  app.server.maxConnections = maxConnections;
  const limiter = createLimiter(base.runtime);
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
  const host = config.CHANCERY_LISTEN_HOST;
  return `${host}:${await listenHttp(app, { host, port: config.CHANCERY_ISSUER_PORT })}`;
}

/**
 * Limits by address before the cluster is called, and by client id afterwards. A pod that restarts in a loop stays
 * below both.
 */
function createLimiter(runtime: Runtime): RateLimiter {
  return createRateLimiter({
    profile: 'production',
    clock: runtime.clock,
    rules: {
      Strict: { kind: 'bucket', limit: 60, refillPerSecond: 2, key: 'address' },
      Token: { kind: 'bucket', limit: 60, refillPerSecond: 1, key: 'client' },
    },
  });
}
