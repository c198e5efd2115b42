import { createVerifier, type Verifier } from '#core/crypto/verify.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import { authPlugin, type TenantSession, tenantSession } from '#kit/auth/auth.ts';
import { busOf, connectBus } from '#kit/bus/bus.ts';
import { loadEd25519 } from '#kit/crypto/ed25519.ts';
import { createVerifyPool } from '#kit/crypto/verify-pool.ts';
import { type Database, openDatabase } from '#kit/db/db.ts';
import { createHttpServer, createOpsServer, listenHttp, type ReadinessCheck } from '#kit/http/http.ts';
import { Cleanup, type Component, type Create, type Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRateLimiter } from '#kit/rate-limit/rate-limit.ts';
import { createRpcServer } from '#kit/rpc/rpc.ts';
import { connectWorkload, identityCheck, type Workload, workloadOf } from '#kit/workload/workload.ts';
import { connectValidators } from './clients/validators.ts';
import { connectWallets } from './clients/wallet.ts';
import type { RegisterConfig } from './config.ts';
import { migrations } from './database/list.ts';
import type { RegisterSchema } from './database/schema.ts';
import { addDirectoryService } from './directory/rpc.ts';
import { addLedgerService } from './dockets/rpc.ts';
import { addEventService } from './feed/rpc.ts';
import { startHousekeeping } from './housekeeping/jobs.ts';
import { type Deps, mountRoutes } from './http.ts';
import { assembleLedger, type Ledger } from './ledger.ts';

const clientId = 'service-register';

/** Builds the register service; resolves when it listens, its schema is there and tokens can be judged. */
export const createRegister: Create<RegisterConfig> = async (config, runtime) => {
  const cleanup = new Cleanup();
  try {
    return await open(config, runtime, cleanup);
  } catch (error) {
    await cleanup.run(runtime.log);
    throw error;
  }
};

interface Plumbing {
  readonly config: RegisterConfig;
  readonly runtime: Runtime;
  readonly workload: Workload;
  readonly session: TenantSession;
  readonly database: Database<RegisterSchema>;
  readonly verifier: Verifier;
}

async function open(config: RegisterConfig, runtime: Runtime, cleanup: Cleanup): Promise<Component> {
  const { log, clock, telemetry } = runtime;
  const workload = await connectWorkload({ ...workloadOf(config), log, clock });
  cleanup.add('workload', () => workload.stop());
  const bus = await connectBus({ ...busOf(config), name: clientId, log });
  cleanup.add('bus', () => bus.close());
  const database = await openDatabase<RegisterSchema>({
    url: config.DATABASE_URL,
    schema: 'register',
    log,
    telemetry,
    migrations,
    maxConnections: config.CHANCERY_DATABASE_CONNECTIONS,
  });
  cleanup.add('database', () => database.close());
  const session = tenantSession({ runtime, workload, bus, config, clientId });
  cleanup.add('tenant session', () => session.stop());
  await session.revocations.start();
  const peer = { runtime, workload, token: session.token };
  const wallets = connectWallets(config.CHANCERY_WALLET_GRPC, peer);
  cleanup.add('wallet client', () => wallets.close());
  const validators = connectValidators(peer);
  cleanup.add('validator clients', () => validators.close());
  const pool = createVerifyPool({ workers: config.CHANCERY_VERIFY_WORKERS });
  cleanup.add('verify pool', () => pool.close());
  const verifier = createVerifier(loadEd25519('auto').backend);
  const ledger = assembleLedger({
    database,
    wallets,
    validators,
    verifier,
    pool,
    runtime,
    bus,
    settings: config,
  });
  cleanup.add('ledger', () => ledger.stop());
  const stopHousekeeping = startHousekeeping({ database, clock, log });
  cleanup.add('housekeeping', stopHousekeeping);
  const unsubscribe = bus.subscribe(SUBJECTS.registerEvents, () => ledger.confirmations.recheck());
  cleanup.add('doorbell', unsubscribe);
  return listen(ledger, { config, runtime, workload, session, database, verifier }, cleanup);
}

async function listen(ledger: Ledger, plumbing: Plumbing, cleanup: Cleanup): Promise<Component> {
  const { config, runtime } = plumbing;
  const host = config.CHANCERY_LISTEN_HOST;
  const grpcPort = await listenRpc(ledger, plumbing, cleanup);
  const httpsPort = await listenRoutes(ledger.deps, plumbing, cleanup);
  const ops = await createOpsServer({
    runtime,
    host,
    port: config.CHANCERY_OPS_PORT,
    checks: readinessChecks(plumbing),
  });
  cleanup.add('operations', () => ops.stop());
  return {
    name: 'register',
    addresses: { ops: ops.address, https: `${host}:${httpsPort}`, grpc: `${host}:${grpcPort}` },
    stop: () => cleanup.run(runtime.log),
  };
}

async function listenRpc(ledger: Ledger, plumbing: Plumbing, cleanup: Cleanup): Promise<number> {
  const { config, runtime, workload, session, database, verifier } = plumbing;
  const server = createRpcServer({
    runtime,
    workload,
    host: config.CHANCERY_LISTEN_HOST,
    port: config.CHANCERY_GRPC_PORT,
    authenticate: session.authenticate,
  });
  const { clock } = runtime;
  const { writeDocket, segments } = ledger;
  addLedgerService(server, { database, verifier, clock, writeDocket, segments });
  addEventService(server, database.read);
  addDirectoryService(server, { database, clock, onAnnounced: ledger.onAnnounced });
  cleanup.add('gRPC', () => server.stop());
  return server.listen();
}

async function listenRoutes(deps: Deps, plumbing: Plumbing, cleanup: Cleanup): Promise<number> {
  const { config, runtime, workload, session } = plumbing;
  const app = createHttpServer({
    runtime,
    title: 'Chancery register service',
    https: workload,
    trustForwarded: true,
    checks: readinessChecks(plumbing),
  });
  authPlugin(app, session.authenticator);
  createRateLimiter({ profile: config.CHANCERY_RATE_LIMIT_PROFILE, clock: runtime.clock }).install(app);
  mountRoutes(app, deps);
  cleanup.add('HTTPS', () => app.close());
  return listenHttp(app, { host: config.CHANCERY_LISTEN_HOST, port: config.CHANCERY_HTTPS_PORT });
}

function readinessChecks(plumbing: Plumbing): ReadinessCheck[] {
  const { database, session, workload, runtime } = plumbing;
  return [
    identityCheck(workload, runtime),
    { name: 'database', check: () => database.ping() },
    { name: 'revocations', check: () => session.revocations.assertFresh() },
  ];
}
