import { availableParallelism, hostname } from 'node:os';
import { createVerifier } from '#core/crypto/verify.ts';
import { quorum } from '#core/ledger/consensus.ts';
import { activeMembers } from '#core/ledger/governance/rules.ts';
import { authPlugin, tenantSession } from '#kit/auth/auth.ts';
import { busOf, connectBus } from '#kit/bus/bus.ts';
import { loadEd25519 } from '#kit/crypto/ed25519.ts';
import { createVerifyPool } from '#kit/crypto/verify-pool.ts';
import { createHttpServer, createOpsServer, listenHttp, type ReadinessCheck } from '#kit/http/http.ts';
import { Cleanup, type Component, type Create, type Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRateLimiter } from '#kit/rate-limit/rate-limit.ts';
import { createRpcClient, createRpcServer, type RpcClient } from '#kit/rpc/rpc.ts';
import { connectWorkload, identityCheck, serviceSpiffeId, workloadOf } from '#kit/workload/workload.ts';
import { LedgerService, ValidatorDirectoryService } from '#protos/gen/chancery/register/v1/register_pb.js';
import { ValidatorAdminService } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import { ConsensusService } from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import {
  CheckpointService,
  MembershipService,
  SubmissionService,
} from '#protos/gen/chancery/validator/v1/validator_pb.js';
import { SystemSignerService } from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { adminHandlers } from './admin/rpc.ts';
import { createSelf } from './admin/self.ts';
import { createForward } from './admission/forward.ts';
import { submissionHandlers } from './admission/rpc.ts';
import { createSubscriptionCheck } from './admission/subscriptions.ts';
import { checkpointHandlers } from './checkpoints/rpc.ts';
import { createLedger } from './clients.ts';
import type { ValidatorConfig } from './config.ts';
import { type Engine, openEngine } from './engine.ts';
import { mountRoutes } from './http.ts';
import { keepAnnounced } from './membership/announce.ts';
import { connectColleagues } from './membership/clients.ts';
import { createDirectory } from './membership/directory.ts';
import { membershipHandlers } from './membership/rpc.ts';
import type { MemberIdentity } from './operating/consensus.ts';
import { Links } from './peering/links.ts';
import { consensusHandlers, consensusRules } from './peering/rpc.ts';
import { signerIn } from './sealing/own-key.ts';
import { SignerStream } from './sealing/signer-stream.ts';
import { keyName } from './sealing/state.ts';

const version = '0.1.0';
/** A round that this validator has begun gets so long to end before it stops; what is not stored then is in the log. */
const stopWithinMs = 2_500;
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
  let opened: Engine | undefined;
  const links = connectLinks(runtime, services, (peer) => opened?.peering.connected(peer));
  cleanup.add('links', () => links.stop());
  const engine = await startEngine(config, runtime, { ...services, links });
  opened = engine;
  cleanup.add('engine', () => engine.stop());
  const whole = { ...services, config, runtime, engine, links };
  const parts = { ...whole, ...answerForAll(whole, cleanup) };
  const grpcPort = await listenRpc(parts, cleanup);
  const host = config.CHANCERY_LISTEN_HOST;
  const identity = {
    validatorId: config.CHANCERY_VALIDATOR_ID,
    publicKey: signer.key.publicKey,
    algorithm: 'ED25519',
    endpoint: config.CHANCERY_VALIDATOR_ENDPOINT ?? `${reachable(host)}:${grpcPort}`,
  } as const;
  const httpsPort = await listenHttps({ ...parts, identity }, cleanup);
  await keepAnnounced(
    (announcement) => services.directory.announce(announcement),
    { ...identity, version },
    { scheduler: engine.scheduler, log: runtime.log },
  );
  const ops = await createOpsServer({
    runtime,
    host,
    port: config.CHANCERY_OPS_PORT,
    checks: readinessChecks(parts),
  });
  cleanup.add('ops', () => ops.stop());
  return {
    name: config.CHANCERY_VALIDATOR_ID,
    addresses: { ops: ops.address, https: `${host}:${httpsPort}`, grpc: `${host}:${grpcPort}` },
    async stop() {
      await engine.drain.stop(stopWithinMs);
      await cleanup.run(runtime.log);
    },
  };
}

/** A name for a listener on every address. */
function reachable(host: string): string {
  return host === '0.0.0.0' || host === '::' ? hostname() : host;
}

async function connectServices(config: ValidatorConfig, runtime: Runtime, cleanup: Cleanup) {
  const { log, clock } = runtime;
  const workload = await connectWorkload({ ...workloadOf(config), log, clock });
  cleanup.add('workload', () => workload.stop());
  const bus = await connectBus({ ...busOf(config), name: config.CHANCERY_VALIDATOR_ID, log });
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
  const whereabouts = createDirectory(async () => {
    const { validators } = await directory.listValidators({});
    return validators.map((entry) => ({ ...entry, announcedAtMs: Number(entry.announcedAtMs) }));
  }, clock);
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
    whereabouts,
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

/** The streams to the other validators. */
function connectLinks(
  runtime: Runtime,
  { workload, session, whereabouts }: Services,
  onConnected: (validatorId: string) => void,
): Links {
  return new Links({
    runtime,
    workload,
    token: session.token,
    findEndpoint: async (validatorId) => (await whereabouts.find(validatorId))?.endpoint,
    onConnected,
  });
}

function startEngine(
  config: ValidatorConfig,
  runtime: Runtime,
  services: Services & { readonly links: Links },
): Promise<Engine> {
  return openEngine({
    runtime,
    validatorId: config.CHANCERY_VALIDATOR_ID,
    directory: config.CHANCERY_DATA_DIR,
    bounds: {
      maxTransactions: config.CHANCERY_POOL_MAX_TRANSACTIONS,
      maxControlTransactions: config.CHANCERY_POOL_MAX_CONTROL_TRANSACTIONS,
      maxBytes: config.CHANCERY_POOL_MAX_BYTES,
      maxBytesTotal: config.CHANCERY_POOL_MAX_BYTES_TOTAL,
    },
    segmentBytes: config.CHANCERY_LOG_SEGMENT_BYTES,
    retainBytes: config.CHANCERY_LOG_RETAIN_BYTES,
    signer: services.signer,
    ledger: services.ledger,
    transport: services.links,
    version,
    verifier: createVerifier(loadEd25519().backend),
    verify: (items) => services.pool.verifyBatch(items),
    systemKey: () => services.systemKey(),
  });
}

interface Whole extends Services {
  readonly config: ValidatorConfig;
  readonly runtime: Runtime;
  readonly engine: Engine;
  readonly links: Links;
}

type Listening = Whole & ReturnType<typeof answerForAll>;

/** What lets this validator take submissions and answer questions for the others too (D21). */
function answerForAll(parts: Whole, cleanup: Cleanup) {
  const { config, runtime, engine, ledger, workload, session, whereabouts: directory } = parts;
  const { clock } = runtime;
  const { registers } = engine;
  const validatorId = config.CHANCERY_VALIDATOR_ID;
  const colleagues = connectColleagues({
    directory,
    runtime,
    workload,
    token: session.token,
    onFault: (validatorId) => engine.peering.charges.charge(validatorId, 'answer'),
  });
  cleanup.add('colleagues', () => colleagues.close());
  const findSet = async (registerId: string) => {
    const facts = await ledger.findRegister(registerId);
    if (facts === undefined) return undefined;
    const members = activeMembers(facts.ledger).map((member) => member.validatorId);
    const { signatureThresholdMin } = facts.ledger.policy.consensus;
    return { members, quorum: quorum(members.length, signatureThresholdMin) };
  };
  const self = createSelf({
    validatorId,
    version,
    startedAtMs: clock.nowMs(),
    allRegisters: () => registers.all(),
    getRegister: (registerId) => registers.get(registerId),
    findRegister: (registerId) => registers.find(registerId),
    findSet,
    setMode: (registerId, mode) => engine.setMode(registerId, mode),
    heard: () => engine.peering.sightings.filter(({ heardAtMs }) => heardAtMs > 0),
    conditions: () => engine.conditions(),
    volumeGap: (registerId) => engine.volumeGap(registerId),
    evidence: (registerId) => engine.peering.evidence(registerId),
    findRules: async (registerId) => (await ledger.findRegister(registerId))?.ledger,
  });
  const forward = createForward({
    validatorId,
    clock,
    colleagues,
    subscriptions: createSubscriptionCheck(ledger, clock),
    findMembers: async (registerId) => (await findSet(registerId))?.members,
  });
  const onFault = (error: unknown) => runtime.log.error({ err: error }, 'a submission could not be judged');
  return { self, forward, onFault, colleagues };
}

/** A proposal of a clock that is ahead by more than the default precision of policies is late for everybody else. */
const largestClockErrorMs = 500;

function assertClock(aheadMs: number | undefined): void {
  if (aheadMs === undefined || Math.abs(aheadMs) <= largestClockErrorMs) return;
  const side = aheadMs > 0 ? 'ahead of' : 'behind';
  throw new Error(`the clock is ${Math.abs(Math.round(aheadMs))} ms ${side} the other validators`);
}

function readinessChecks({ workload, runtime, session, signer, engine }: Listening): ReadinessCheck[] {
  return [
    identityCheck(workload, runtime.clock),
    { name: 'revocations', check: () => session.revocations.assertFresh() },
    { name: 'signer', check: () => signer.assertOpen() },
    { name: 'sealing', check: () => engine.assertWorking() },
    { name: 'disk', degrades: true, check: () => engine.assertRoom() },
    { name: 'clock', degrades: true, check: () => assertClock(engine.peering.clockAheadMs) },
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
  server.add(
    SubmissionService,
    submissionHandlers({ admission, registers, forward: parts.forward, onFault: parts.onFault, nowMs }),
    {
      allow: ({ clientId }) => clientId === 'service-register' || clientId.startsWith('validator-'),
    },
  );
  server.add(ValidatorAdminService, adminHandlers(parts.self), {
    allow: ({ clientId }) => clientId === 'service-register' || clientId.startsWith('validator-'),
  });
  server.add(MembershipService, membershipHandlers({ validatorId: config.CHANCERY_VALIDATOR_ID, signer }), {
    allow: ({ clientId }) => clientId === 'service-register',
  });
  const consensus = consensusHandlers({
    inbox: engine.peering,
    onStream: (from) => parts.links.nudge(from),
    charges: engine.peering.charges,
  });
  server.add(ConsensusService, consensus, consensusRules(engine.peering.charges));
  const findLog = (registerId: string) => {
    const register = registers.get(registerId);
    if (register === undefined) return undefined;
    const { networkId, members } = register.state;
    const own = signerIn(members, config.CHANCERY_VALIDATOR_ID, signer);
    return { networkId, signer: own, rootAt: (size: number) => register.rootAt(size) };
  };
  server.add(CheckpointService, checkpointHandlers({ clock: runtime.clock, findLog }), {
    allow: ({ clientId }) => clientId === 'service-register',
  });
  cleanup.add('grpc', () => server.stop());
  return server.listen();
}

async function listenHttps(
  parts: Listening & { readonly identity: MemberIdentity },
  cleanup: Cleanup,
): Promise<number> {
  const { config, runtime, workload, session, engine, self, identity } = parts;
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
  mountRoutes(app, {
    ...self,
    operating: {
      ...self,
      identity,
      budget: engine.budget,
      drain: engine.drain,
      getRegister: (registerId) => engine.registers.get(registerId),
      operational: (registerId) => engine.peering.operational(registerId),
    },
    validatorId: config.CHANCERY_VALIDATOR_ID,
    nowMs: () => runtime.clock.nowMs(),
    admission: engine.admission,
    forward: parts.forward,
    onFault: parts.onFault,
    directory: parts.whereabouts,
    colleagues: parts.colleagues,
    verifier: createVerifier(loadEd25519().backend),
    isSubscribed: (organizationId, registerId) => parts.ledger.isSubscribed(organizationId, registerId),
  });
  cleanup.add('https', () => app.close());
  return listenHttp(app, { host: config.CHANCERY_LISTEN_HOST, port: config.CHANCERY_HTTPS_PORT });
}
