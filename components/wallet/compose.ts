import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import { authPlugin, type TenantSession, tenantSession } from '#kit/auth/auth.ts';
import { busOf, connectBus } from '#kit/bus/bus.ts';
import { startRounds } from '#kit/clock/bell.ts';
import { type Database, openDatabase } from '#kit/db/db.ts';
import { createHttpServer, createOpsServer, listenHttp } from '#kit/http/http.ts';
import { Cleanup, type Component, type Create, type Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRateLimiter } from '#kit/rate-limit/rate-limit.ts';
import { createRpcServer } from '#kit/rpc/rpc.ts';
import { connectWorkload, identityCheck, type Workload, workloadOf } from '#kit/workload/workload.ts';
import {
  EventService,
  SystemSignerService,
  WalletService,
} from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { connectAudit } from './clients.ts';
import type { WalletConfig } from './config.ts';
import { fileKek } from './custody/kek.ts';
import { Keyring } from './custody/keyring.ts';
import { RsaGenerator } from './custody/rsa.ts';
import { migrations } from './database/migrations/list.ts';
import type { WalletDatabase } from './database/schema.ts';
import { eventHandlers, mayReadEvents } from './events/rpc.ts';
import { mountRoutes, type WalletHttpDeps } from './http.ts';
import { RefusalLog } from './refusals/log.ts';
import { walletHandlers } from './signing/rpc.ts';
import { createSignerEvents } from './system-signer/events.ts';
import { controlKey } from './system-signer/keys.ts';
import { systemSignerHandlers } from './system-signer/rpc.ts';
import type { SignControlDeps } from './system-signer/sign-control.ts';
import { createSignerStore } from './system-signer/store.ts';
import { findSecret } from './wallets/store.ts';

const CLIENT_ID = 'service-wallet';
const reportEveryMs = 1_000;
const BODY_LIMIT_BYTES = 2 * 1024 * 1024;

type Deps = WalletHttpDeps & SignControlDeps;

interface Plumbing {
  readonly config: WalletConfig;
  readonly runtime: Runtime;
  readonly workload: Workload;
  readonly session: TenantSession;
}

/** Builds the wallet service; resolves when it listens, its key for register control exists and tokens can be judged. */
export const createWallet: Create<WalletConfig> = async (config, runtime) => {
  const cleanup = new Cleanup();
  try {
    return await open(config, runtime, cleanup);
  } catch (error) {
    await cleanup.run(runtime.log);
    throw error;
  }
};

async function open(config: WalletConfig, runtime: Runtime, cleanup: Cleanup): Promise<Component> {
  const { log, clock, telemetry } = runtime;
  const kek = fileKek(config.CHANCERY_KEK_FILE.reveal());
  const workload = await connectWorkload({ ...workloadOf(config), log, clock });
  cleanup.add('workload', () => workload.stop());
  const bus = await connectBus({ ...busOf(config), name: CLIENT_ID, log });
  cleanup.add('bus', () => bus.close());
  const db = await openDatabase<WalletDatabase>({
    url: config.DATABASE_URL,
    schema: 'wallet',
    log,
    telemetry,
    migrations,
    maxConnections: config.CHANCERY_DATABASE_CONNECTIONS,
  });
  cleanup.add('database', () => db.close());
  const session = tenantSession({ runtime, workload, bus, config, clientId: CLIENT_ID });
  cleanup.add('tenant session', () => session.stop());
  await session.revocations.start();
  const audit = connectAudit(config.CHANCERY_TENANT_GRPC, { runtime, workload, token: session.token });
  cleanup.add('audit', () => audit.close());
  const refusals = new RefusalLog({ clock, log, report: audit.report });
  const reports = startRounds(async () => {
    await refusals.flush();
    return reportEveryMs;
  });
  cleanup.add('refusals', async () => {
    await reports.stop();
    await refusals.flush();
  });
  const keyring = new Keyring({ kek, clock, load: (walletId) => findSecret(db.read, walletId) });
  const deps: Deps = {
    db,
    kek,
    keyring,
    rsa: new RsaGenerator(),
    ring: () => bus.publish(SUBJECTS.walletEvents),
    clock,
    log,
    refusals,
    verifier: createVerifier(nodeEd25519()),
    store: createSignerStore(db.pool),
    events: createSignerEvents(runtime.telemetry),
    installation: runtime.installation,
    controlPerMinute: config.CHANCERY_CONTROL_SIGNATURES_PER_MINUTE,
    checkpointsPerMinute: config.CHANCERY_CHECKPOINT_SIGNATURES_PER_MINUTE,
  };
  await controlKey(deps);
  return listen(deps, { config, runtime, workload, session }, cleanup);
}

async function listen(deps: Deps, plumbing: Plumbing, cleanup: Cleanup): Promise<Component> {
  const { config, runtime } = plumbing;
  const host = config.CHANCERY_LISTEN_HOST;
  const grpcPort = await listenRpc(deps, plumbing, cleanup);
  const httpsPort = await listenRoutes(deps, plumbing, cleanup);
  // Readers of the log that found nobody here need not wait for their next look.
  deps.ring();
  const ops = await createOpsServer({
    runtime,
    host,
    port: config.CHANCERY_OPS_PORT,
    checks: readinessChecks(deps.db, plumbing),
  });
  cleanup.add('operations', () => ops.stop());
  return {
    name: 'wallet',
    addresses: { ops: ops.address, https: `${host}:${httpsPort}`, grpc: `${host}:${grpcPort}` },
    stop: () => cleanup.run(runtime.log),
  };
}

async function listenRpc(deps: Deps, plumbing: Plumbing, cleanup: Cleanup): Promise<number> {
  const { config, runtime, workload, session } = plumbing;
  const server = createRpcServer({
    runtime,
    workload,
    host: config.CHANCERY_LISTEN_HOST,
    port: config.CHANCERY_GRPC_PORT,
    authenticate: session.authenticate,
  });
  // Any service of the installation reaches the handlers; the signing component refuses inside, where it can audit.
  server.add(WalletService, walletHandlers(deps), { allow: () => true, requireToken: true });
  server.add(SystemSignerService, systemSignerHandlers(deps), { allow: () => true });
  server.add(EventService, eventHandlers(deps.db.read), { allow: mayReadEvents, requireToken: true });
  cleanup.add('gRPC', () => server.stop());
  return server.listen();
}

async function listenRoutes(deps: Deps, plumbing: Plumbing, cleanup: Cleanup): Promise<number> {
  const { config, runtime, workload, session } = plumbing;
  const app = createHttpServer({
    runtime,
    title: 'Chancery wallet service',
    bodyLimitBytes: BODY_LIMIT_BYTES,
    https: workload,
    trustForwarded: true,
    checks: readinessChecks(deps.db, plumbing),
  });
  authPlugin(app, session.authenticator);
  createRateLimiter({ profile: config.CHANCERY_RATE_LIMIT_PROFILE, clock: runtime.clock }).install(app);
  mountRoutes(app, deps);
  cleanup.add('HTTPS', () => app.close());
  return listenHttp(app, { host: config.CHANCERY_LISTEN_HOST, port: config.CHANCERY_HTTPS_PORT });
}

function readinessChecks(db: Database<WalletDatabase>, { session, workload, runtime }: Plumbing) {
  return [
    identityCheck(workload, runtime),
    { name: 'database', check: () => db.ping() },
    { name: 'revocations', check: () => session.revocations.assertFresh() },
  ];
}
