import { availableParallelism, hostname } from 'node:os';
import { createVerifier } from '#core/crypto/verify.ts';
import { authPlugin, tenantSession } from '#kit/auth/auth.ts';
import { connectBus } from '#kit/bus/bus.ts';
import { loadEd25519 } from '#kit/crypto/ed25519.ts';
import { createVerifyPool } from '#kit/crypto/verify-pool.ts';
import { createHttpServer, createOpsServer, listenHttp, type ReadinessCheck } from '#kit/http/http.ts';
import { Cleanup, type Component, type Create, type Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRateLimiter } from '#kit/rate-limit/rate-limit.ts';
import { createRpcClient, createRpcServer, type RpcClient } from '#kit/rpc/rpc.ts';
import { connectWorkload, serviceSpiffeId } from '#kit/workload/workload.ts';
import { LedgerService, ValidatorDirectoryService } from '#protos/gen/chancery/register/v1/register_pb.js';
import { MembershipService, SubmissionService } from '#protos/gen/chancery/validator/v1/validator_pb.js';
import { SystemSignerService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { submissionHandlers } from './admission/rpc.ts';
import { createLedger } from './clients.ts';
import type { ValidatorConfig } from './config.ts';
import { type Engine, openEngine } from './engine.ts';
import { mountRoutes } from './http.ts';
import { keepAnnounced } from './membership/announce.ts';
import { membershipHandlers } from './membership/rpc.ts';
import { noPeers } from './sealing/peers.ts';
import { SignerStream } from './sealing/signer-stream.ts';
import { keyName } from './sealing/state.ts';

const version = '0.1.0';
/** A transaction of the largest size that a policy allows, with room for its envelope. */
const bodyLimitBytes = 10 * 1024 * 1024;

/** Builds and starts one validator: identity, signing stream, log, listeners; then it tells where it is. */
export const createValidator: Create<ValidatorConfig> = async (config, runtime) => {
  const cleanup = new Cleanup();
  try {
    return await open(config, runtime, cleanup);
  } catch (error) {
    await cleanup.run(runtime.log);
    throw error;
  }
};

type Services = Awaited<ReturnType<typeof connectServices>>;

async function open(config: ValidatorConfig, runtime: Runtime, cleanup: Cleanup): Promise<Component> {
  const services = await connectServices(config, runtime, cleanup);
  const { signer } = services;
  cleanup.add('signer', () => signer.stop());
  await signer.start();
  const engine = await startEngine(config, runtime, services);
  cleanup.add('engine', () => engine.stop());
  const parts = { ...services, config, runtime, engine };
  const grpcPort = await listenRpc(parts, cleanup);
  const httpsPort = await listenHttps(parts, cleanup);
  const host = config.CHANCERY_LISTEN_HOST;
  await keepAnnounced(
    (announcement) => services.directory.announce(announcement),
    {
      validatorId: config.CHANCERY_VALIDATOR_ID,
      publicKey: signer.key.publicKey,
      algorithm: 'ED25519',
      endpoint: config.CHANCERY_VALIDATOR_ENDPOINT ?? `${reachable(host)}:${grpcPort}`,
      version,
    },
    { scheduler: engine.scheduler, log: runtime.log },
  );
  const ops = await createOpsServer({
    runtime,
    host,
    port: config.CHANCERY_OPS_PORT,
    checks: readinessChecks({ session: services.session, signer, engine }),
  });
  cleanup.add('ops', () => ops.stop());
  return {
    name: config.CHANCERY_VALIDATOR_ID,
    addresses: { ops: ops.address, https: `${host}:${httpsPort}`, grpc: `${host}:${grpcPort}` },
    stop: () => cleanup.run(runtime.log),
  };
}

/** A name for a listener on every address. */
function reachable(host: string): string {
  return host === '0.0.0.0' || host === '::' ? hostname() : host;
}

async function connectServices(config: ValidatorConfig, runtime: Runtime, cleanup: Cleanup) {
  const { log, clock } = runtime;
  const workload = await connectWorkload({ socket: config.SPIFFE_ENDPOINT_SOCKET, log, clock });
  cleanup.add('workload', () => workload.stop());
  const bus = await connectBus({ url: config.NATS_URL, name: config.CHANCERY_VALIDATOR_ID, log });
  cleanup.add('bus', () => bus.close());
  const session = tenantSession({ runtime, workload, bus, config, clientId: config.CHANCERY_VALIDATOR_ID });
  cleanup.add('tenant session', () => session.stop());
  await session.revocations.start();
  const { token } = session;
  const at = (address: { host: string; port: number }, name: string) => ({
    address,
    workload,
    token,
    runtime,
    expect: serviceSpiffeId(workload.trustDomain, name),
  });
  const wallet = createRpcClient(SystemSignerService, at(config.CHANCERY_WALLET_GRPC, 'service-wallet'));
  cleanup.add('wallet client', () => wallet.close());
  const ledger = createRpcClient(LedgerService, at(config.CHANCERY_REGISTER_GRPC, 'service-register'));
  cleanup.add('ledger client', () => ledger.close());
  const directory = createRpcClient(
    ValidatorDirectoryService,
    at(config.CHANCERY_REGISTER_GRPC, 'service-register'),
  );
  cleanup.add('directory client', () => directory.close());
  const pool = createVerifyPool({
    workers: Math.min(config.CHANCERY_VERIFY_WORKERS, availableParallelism()),
  });
  cleanup.add('verify pool', () => pool.close());
  const signer = new SignerStream({
    wallet,
    validatorId: config.CHANCERY_VALIDATOR_ID,
    log,
    onFenced: (error) =>
      log.error({ err: error }, 'another holder of this identity signs now; this one stops'),
  });
  let systemKey: Promise<string> | undefined;
  return {
    workload,
    session,
    signer,
    directory,
    pool,
    ledger: createLedger(ledger),
    systemKey: () => {
      systemKey ??= fetchSystemKey(wallet);
      systemKey.catch(() => {
        systemKey = undefined;
      });
      return systemKey;
    },
  };
}

async function fetchSystemKey(
  wallet: Pick<RpcClient<typeof SystemSignerService.method>, 'getSystemKey'>,
): Promise<string> {
  const { key } = await wallet.getSystemKey({ derivationPath: 'platform:register-control' });
  return key === undefined ? '' : keyName(key.algorithm, key.publicKey);
}

function startEngine(config: ValidatorConfig, runtime: Runtime, services: Services): Promise<Engine> {
  return openEngine({
    runtime,
    validatorId: config.CHANCERY_VALIDATOR_ID,
    directory: config.CHANCERY_DATA_DIR,
    bounds: {
      maxTransactions: config.CHANCERY_POOL_MAX_TRANSACTIONS,
      maxControlTransactions: config.CHANCERY_POOL_MAX_CONTROL_TRANSACTIONS,
      maxBytes: config.CHANCERY_POOL_MAX_BYTES,
    },
    segmentBytes: config.CHANCERY_LOG_SEGMENT_BYTES,
    retainBytes: config.CHANCERY_LOG_RETAIN_BYTES,
    signer: services.signer,
    ledger: services.ledger,
    peers: noPeers(),
    verifier: createVerifier(loadEd25519().backend),
    verify: (items) => services.pool.verifyBatch(items),
    systemKey: () => services.systemKey(),
  });
}

interface Listening extends Services {
  readonly config: ValidatorConfig;
  readonly runtime: Runtime;
  readonly engine: Engine;
}

function readinessChecks({
  session,
  signer,
  engine,
}: Pick<Listening, 'session' | 'signer' | 'engine'>): ReadinessCheck[] {
  return [
    { name: 'revocations', check: () => session.revocations.assertFresh() },
    { name: 'signer', check: () => signer.assertOpen() },
    { name: 'sealing', check: () => engine.assertWorking() },
  ];
}

async function listenRpc(parts: Listening, cleanup: Cleanup): Promise<number> {
  const { config, runtime, workload, session, engine, signer } = parts;
  const server = createRpcServer({
    runtime,
    workload,
    host: config.CHANCERY_LISTEN_HOST,
    port: config.CHANCERY_GRPC_PORT,
    authenticate: session.authenticate,
  });
  const nowMs = () => runtime.clock.nowMs();
  const { admission, registers } = engine;
  server.add(SubmissionService, submissionHandlers({ admission, registers, nowMs }), {
    allow: ({ clientId }) => clientId === 'service-register' || clientId.startsWith('validator-'),
  });
  server.add(MembershipService, membershipHandlers({ validatorId: config.CHANCERY_VALIDATOR_ID, signer }), {
    allow: ({ clientId }) => clientId === 'service-register',
  });
  cleanup.add('grpc', () => server.stop());
  return server.listen();
}

async function listenHttps(parts: Listening, cleanup: Cleanup): Promise<number> {
  const { config, runtime, workload, session, engine } = parts;
  const app = createHttpServer({
    runtime,
    title: 'Validator',
    bodyLimitBytes,
    https: workload,
    trustForwarded: true,
    checks: readinessChecks(parts),
  });
  authPlugin(app, session.authenticator);
  createRateLimiter({ profile: config.CHANCERY_RATE_LIMIT_PROFILE, clock: runtime.clock }).install(app);
  const { registers } = engine;
  mountRoutes(app, {
    validatorId: config.CHANCERY_VALIDATOR_ID,
    nowMs: () => runtime.clock.nowMs(),
    admission: engine.admission,
    findRegister: (registerId) => registers.find(registerId),
    allRegisters: () => registers.all(),
    setMode: (registerId, mode) => engine.setMode(registerId, mode),
  });
  cleanup.add('https', () => app.close());
  return listenHttp(app, { host: config.CHANCERY_LISTEN_HOST, port: config.CHANCERY_HTTPS_PORT });
}
