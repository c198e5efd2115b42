import { createVerifier, type Verifier } from '#core/crypto/verify.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import { authPlugin, type TenantSession, tenantSession } from '#kit/auth/auth.ts';
import { type Bus, busOf, connectBus } from '#kit/bus/bus.ts';
import { loadEd25519 } from '#kit/crypto/ed25519.ts';
import { createVerifyPool, type VerifyPool } from '#kit/crypto/verify-pool.ts';
import { type Database, openDatabase } from '#kit/db/db.ts';
import { createIdempotency } from '#kit/db/idempotency.ts';
import { createHttpServer, createOpsServer, listenHttp, type ReadinessCheck } from '#kit/http/http.ts';
import { Cleanup, type Component, type Create, type Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRateLimiter } from '#kit/rate-limit/rate-limit.ts';
import { createRpcServer } from '#kit/rpc/rpc.ts';
import { connectWorkload, identityCheck, type Workload, workloadOf } from '#kit/workload/workload.ts';
import { connectValidators } from './clients/validators.ts';
import { connectWallets } from './clients/wallet.ts';
import type { Validators, Wallets } from './clients.ts';
import type { RegisterConfig } from './config.ts';
import { migrations } from './database/list.ts';
import type { RegisterSchema } from './database/schema.ts';
import { createFindMembers, type FindMembers } from './directory/ask.ts';
import { createDefaultSet, createNamedSet } from './directory/default-set.ts';
import { createOutages } from './directory/outages.ts';
import { addDirectoryService } from './directory/rpc.ts';
import { addLedgerService } from './dockets/rpc.ts';
import { signaturesByPool } from './dockets/signatures.ts';
import { createDocketWriter } from './dockets/store.ts';
import { createWriteDocket, type WriteDocket } from './dockets/write.ts';
import { createExports } from './export/exports.ts';
import { type GenesisDispatcher, startGenesisDispatcher } from './genesis/jobs.ts';
import { startEnactments } from './governance/jobs.ts';
import { startHousekeeping } from './housekeeping/jobs.ts';
import { type Deps, mountRoutes } from './http.ts';
import { createChangeManaged } from './managed/changes.ts';
import { measureWrites } from './metrics.ts';
import { createCheckpoints } from './proofs/checkpoint.ts';
import { createCosigners } from './proofs/cosigners.ts';
import { createFarewells, type Farewells } from './registers/farewells.ts';
import { type Confirmations, createConfirmations } from './transactions/confirmations.ts';

const clientId = 'service-register';

/** What the ledger itself is made of: everything but listeners and connections. */
export interface LedgerParts {
  readonly database: Database<RegisterSchema>;
  readonly wallets: Wallets;
  readonly validators: Validators;
  readonly verifier: Verifier;
  readonly pool: Pick<VerifyPool, 'verifyBatch'>;
  readonly runtime: Runtime;
  readonly bus: Pick<Bus, 'publish'>;
  readonly settings: Pick<
    RegisterConfig,
    | 'CHANCERY_PENDING_TTL_SECONDS'
    | 'CHANCERY_VALIDATOR_FRESH_SECONDS'
    | 'CHANCERY_MAX_OPEN_REGISTRATIONS'
    | 'CHANCERY_SEAL_ADMINISTRATOR_ONLY'
  >;
}

export interface Ledger {
  readonly deps: Deps;
  readonly writeDocket: WriteDocket;
  readonly confirmations: Confirmations;
  /** A validator announced itself: genesis that found nobody may find it now. */
  readonly onAnnounced: () => void;
  stop(): Promise<void>;
}

interface Tools {
  readonly validators: Validators;
  readonly findMembers: FindMembers;
  readonly confirmations: Confirmations;
  readonly genesis: GenesisDispatcher;
  readonly farewells: Farewells;
  readonly writeDocket: WriteDocket;
}

/** What each area of routes is given. */
function routeDeps(parts: LedgerParts, tools: Tools): Deps {
  const { database, wallets, verifier, runtime, settings, bus } = parts;
  const { validators, findMembers, confirmations, genesis, farewells, writeDocket } = tools;
  const { clock, log, installation } = runtime;
  const freshMs = settings.CHANCERY_VALIDATOR_FRESH_SECONDS * 1000;
  const reads = { db: database.read, validators, findMembers };
  const idempotency = createIdempotency({ database, clock, log });
  const control = { database, wallets, validators, findMembers, verifier, clock, idempotency };
  const ring = () => bus.publish(SUBJECTS.registerEvents);
  const cosign: Validators['cosign'] = (at, request) => validators.cosign(at, request);
  const beginning = {
    networkId: installation,
    onCreated: () => {
      genesis.kick();
      ring();
    },
  };
  const named = { database, validators, verifier, clock, log };
  const cosigners = createCosigners({ db: database.read, findMembers, verifier, log, cosign });
  const checkpoints = createCheckpoints({ wallets, cosigners, clock });
  return {
    registers: {
      ...control,
      confirmations,
      ...beginning,
      pendingTtlMs: settings.CHANCERY_PENDING_TTL_SECONDS * 1000,
      maxOpenRegistrations: settings.CHANCERY_MAX_OPEN_REGISTRATIONS,
      defaultSet: createDefaultSet({ ...named, freshMs }),
      farewells,
      onUpdated: ring,
      onDeleted: ring,
    },
    transactions: { ...reads, database, wallets, clock, idempotency, confirmations },
    dockets: {
      database,
      validators,
      findMembers,
      writeDocket,
      sealAdministratorOnly: settings.CHANCERY_SEAL_ADMINISTRATOR_ONLY,
    },
    proofs: { ...reads, checkpoints },
    export: { db: database.read, checkpoints, exports: createExports(database.read) },
    governance: control,
    policy: control,
    validators: control,
    conflicts: { database, clock, log, onStatusChanged: ring },
    managed: {
      ...control,
      ...beginning,
      namedSet: createNamedSet(named),
      change: createChangeManaged(control),
      farewells,
      onDeleted: ring,
    },
    odata: { database, clock },
    queries: { ...reads, database },
    participants: reads,
  };
}

/** Joins the areas: the one place that knows which needs which. Starts the dispatchers of genesis and enactments. */
export function assembleLedger(parts: LedgerParts): Ledger {
  const { database, wallets, verifier, runtime, bus } = parts;
  const { clock, log } = runtime;
  const outages = createOutages(clock);
  const validators = outages.watch(parts.validators);
  const findMembers = createFindMembers(database.read, outages);
  const confirmations = createConfirmations();
  const genesis = startGenesisDispatcher({ database, wallets, validators, clock, log });
  const farewells = createFarewells({ validators, log });
  const enactments = startEnactments({ database, wallets, validators, findMembers, verifier, clock, log });
  const writeDocket = createWriteDocket({
    database,
    writer: createDocketWriter(database),
    clock,
    judges: { verifier, verifySignatures: signaturesByPool(parts.pool) },
    onStored: (registerId, txIds) => {
      confirmations.confirmed(registerId, txIds);
      bus.publish(SUBJECTS.registerEvents);
    },
    onRulesChanged: () => enactments.kick(),
    onHalted: (registerId, docketNumber) => {
      log.error({ registerId, docketNumber }, 'two certificates for one height: the register is halted');
      bus.publish(SUBJECTS.registerEvents);
    },
    onResult: measureWrites(runtime.telemetry),
  });
  return {
    deps: routeDeps(parts, { validators, findMembers, confirmations, genesis, farewells, writeDocket }),
    writeDocket,
    confirmations,
    onAnnounced: () => {
      genesis.kick();
      bus.publish(SUBJECTS.validatorDirectory);
    },
    stop: async () => {
      confirmations.close();
      await genesis.stop();
      await farewells.stop();
      await enactments.stop();
    },
  };
}

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
  addLedgerService(server, { database, verifier, clock, writeDocket: ledger.writeDocket });
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
    identityCheck(workload, runtime.clock),
    { name: 'database', check: () => database.ping() },
    { name: 'revocations', check: () => session.revocations.assertFresh() },
  ];
}
