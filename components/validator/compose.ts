import { hostname } from 'node:os';
import { VALIDATOR_FEATURES } from '#core/blueprint/pins.ts';
import { createVerifier } from '#core/crypto/verify.ts';
import { quorum } from '#core/ledger/consensus.ts';
import { activeMembers } from '#core/ledger/governance/rules.ts';
import { loadEd25519 } from '#kit/crypto/ed25519.ts';
import type { App, ReadinessCheck } from '#kit/http/http.ts';
import type { Cleanup, Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { RpcServer } from '#kit/rpc/rpc.ts';
import { createService, type ServiceBase, type ServiceParts } from '#kit/service/service.ts';
import { ValidatorAdminService } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import { ConsensusService } from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import {
  CheckpointService,
  HistoryService,
  MembershipService,
  SubmissionService,
} from '#protos/gen/chancery/validator/v1/validator_pb.js';
import { assertClock } from './chain/sealing/health.ts';
import { signerFor } from './chain/sealing/signer-key.ts';
import { buildState } from './chain/state/state.ts';
import type { ValidatorConfig } from './config.ts';
import { type Engine, openEngine } from './engine.ts';
import { mountRoutes } from './http.ts';
import { createSubscriptionCheck } from './intake/admission/subscriptions.ts';
import { assertQuorumConnected, type RegisterContact } from './network/peering/quorum-contact.ts';
import { keepAnnounced } from './network/peers/announce.ts';
import { type Connections, openConnections } from './network/peers/connections.ts';
import { OutboundStreams } from './network/transport/outbound-streams.ts';
import { consensusHandlers, consensusRules } from './network/transport/rpc.ts';
import { connectServices, type Services, verifyWorkers } from './services.ts';
import { createModeClient } from './surfaces/admin/clients.ts';
import { adminHandlers } from './surfaces/admin/rpc.ts';
import { createConfigurationClient } from './surfaces/configuration/clients.ts';
import { configure } from './surfaces/configuration/controls.ts';
import { createEvidenceClient } from './surfaces/evidence/clients.ts';
import type { MemberIdentity } from './surfaces/operator-api/consensus.ts';
import { createPreviewClient } from './surfaces/preview/clients.ts';
import { checkpointHandlers } from './surfaces/register-api/checkpoint-rpc.ts';
import { historyHandlers } from './surfaces/register-api/history-rpc.ts';
import { membershipHandlers } from './surfaces/register-api/possession-rpc.ts';
import { createReportClient } from './surfaces/reports/clients.ts';
import { createLocalValidator } from './surfaces/reports/local-validator.ts';
import { createSubmissionClient } from './surfaces/submissions/clients.ts';
import { createForward } from './surfaces/submissions/forward.ts';
import { submissionHandlers } from './surfaces/submissions/rpc.ts';

const version = '0.1.0';
/** Grace period in which a round in progress may end before the validator stops; unstored dockets remain in the log. */
const stopWithinMs = 2_500;
/** Fits a transaction of the largest size that a policy allows, with its envelope. */
const bodyLimitBytes = 10 * 1024 * 1024;

/** Builds and starts one validator: identity, signing stream, log, listeners. Then it announces its endpoint. */
export const createValidator = createService<ValidatorConfig, Parts>({
  service: 'validator',
  member: (config) => config.CHANCERY_VALIDATOR_ID,
  title: 'Validator',
  bodyLimitBytes,
  ownHealth: true,
  assemble,
  rpc: addServices,
  routes: addRoutes,
  listening: async (_base, parts, { grpc }) => {
    const { services, runtime, engine } = parts;
    const announcement = { ...identityOf(parts, grpc), version, features: [...VALIDATOR_FEATURES] };
    const running = { scheduler: engine.scheduler, log: runtime.log };
    await keepAnnounced((announced) => services.directoryClient.announce(announced), announcement, running);
  },
  stopping: ({ engine }) => engine.drain.stop(stopWithinMs),
});

async function assemble(base: ServiceBase<ValidatorConfig>): Promise<Parts> {
  const { config, runtime, workload, cleanup } = base;
  const services = await connectServices(base);
  const { signer } = services;
  cleanup.add('signer', () => signer.stop());
  await signer.start();
  const outboundStreams = createOutboundStreams({ ...services, runtime, workload });
  cleanup.add('outbound streams', () => outboundStreams.stop());
  const engine = await startEngine(config, runtime, { ...services, outboundStreams });
  outboundStreams.onConnected((peer) => engine.peering.connected(peer));
  cleanup.add('engine', () => engine.stop());
  const assembled = { ...services, config, runtime, workload, engine, outboundStreams };
  base.checks.push(...readinessChecks(assembled));
  return {
    ...assembled,
    ...assembleSetApi(assembled, cleanup),
    services,
    authenticator: services.session.authenticator,
    checks: base.checks,
    liveness: [{ name: 'identity held', check: () => signer.assertHeld() }],
  };
}

/** The identity that this validator announces: its name, its key and its endpoint. */
function identityOf({ config, signer }: Pick<Parts, 'config' | 'signer'>, grpc: string) {
  const port = grpc.slice(grpc.lastIndexOf(':') + 1);
  return {
    validatorId: config.CHANCERY_VALIDATOR_ID,
    publicKey: signer.key.publicKey,
    algorithm: 'ED25519',
    endpoint: config.CHANCERY_VALIDATOR_ENDPOINT ?? `${resolvableHost(config.CHANCERY_LISTEN_HOST)}:${port}`,
  } as const satisfies MemberIdentity;
}

/** A resolvable name for a listener on all addresses. */
function resolvableHost(host: string): string {
  return host === '0.0.0.0' || host === '::' ? hostname() : host;
}

/** The streams to the other validators. */
function createOutboundStreams({
  runtime,
  workload,
  session,
  directory,
}: Services & Pick<ServiceBase<ValidatorConfig>, 'runtime' | 'workload'>): OutboundStreams {
  return new OutboundStreams({
    runtime,
    workload,
    token: session.token,
    findEndpoint: async (validatorId) => (await directory.find(validatorId))?.endpoint,
  });
}

function startEngine(
  config: ValidatorConfig,
  runtime: Runtime,
  services: Services & { readonly outboundStreams: OutboundStreams },
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
    keyFilters: {
      mode: config.CHANCERY_KEY_FILTERS,
      maxBytes: config.CHANCERY_KEY_FILTERS_MAX_BYTES,
    },
    segmentBytes: config.CHANCERY_LOG_SEGMENT_BYTES,
    retainBytes: config.CHANCERY_LOG_RETAIN_BYTES,
    signer: services.signer,
    ledger: services.ledger,
    transport: services.outboundStreams,
    version,
    verifier: createVerifier(loadEd25519().backend),
    verify: (items) => services.pool.verifyBatch(items),
    systemKey: () => services.systemKey(),
  });
}

interface AssembledParts
  extends Services,
    Pick<ServiceBase<ValidatorConfig>, 'config' | 'runtime' | 'workload'> {
  readonly engine: Engine;
  readonly outboundStreams: OutboundStreams;
}

type Parts = AssembledParts &
  ReturnType<typeof assembleSetApi> &
  ServiceParts & {
    readonly services: Services;
    /** All readiness checks. */
    readonly checks: readonly ReadinessCheck[];
  };

/** The parts that accept submissions and answer requests on behalf of all members of a set. */
function assembleSetApi(parts: AssembledParts, cleanup: Cleanup) {
  const { config, runtime, engine, ledger, workload, session, directory } = parts;
  const { clock } = runtime;
  const { registers } = engine;
  const validatorId = config.CHANCERY_VALIDATOR_ID;
  const connections = openConnections({
    directory,
    runtime,
    workload,
    token: session.token,
    onFault: (validatorId) => engine.peering.peerScore.reportFault(validatorId, 'answer'),
  });
  cleanup.add('connections to validators', () => connections.close());
  const peerClients = createPeerClients(connections);
  const findSet = async (registerId: string) => {
    const facts = await ledger.findRegister(registerId);
    if (facts === undefined) return undefined;
    const members = activeMembers(facts.ledger).map((member) => member.validatorId);
    const { signatureThresholdMin } = facts.ledger.policy.consensus;
    return { members, quorum: quorum(members.length, signatureThresholdMin) };
  };
  const self = createLocalValidator({
    validatorId,
    version,
    startedAtMs: clock.nowMs(),
    allRegisters: () => registers.all(),
    getRegister: (registerId) => registers.get(registerId),
    findRegister: (registerId) => registers.find(registerId),
    findSet,
    setMode: (registerId, mode) => engine.setMode(registerId, mode),
    heard: () => engine.peering.contacts.filter(({ heardAtMs }) => heardAtMs > 0),
    conditions: () => engine.conditions(),
    volumeGap: (registerId) => engine.volumeGap(registerId),
    evidence: (registerId) => engine.peering.evidence(registerId),
    findRules: async (registerId) => (await ledger.findRegister(registerId))?.ledger,
  });
  const isLimited = config.CHANCERY_RATE_LIMIT_PROFILE === 'production';
  const configuration = configure({
    ...parts,
    workers: verifyWorkers(config),
    limiter: isLimited ? parts.limiter : undefined,
    log: runtime.log,
  });
  const previewDeps = {
    validatorId,
    configuration,
    clock,
    isSubscribed: (organizationId: string, registerId: string) =>
      ledger.isSubscribed(organizationId, registerId),
    listSubscribed: (organizationId: string, registerIds: readonly string[]) =>
      ledger.listSubscribed(organizationId, registerIds),
  };
  const forward = createForward({
    validatorId,
    clock,
    peerClients,
    subscriptions: createSubscriptionCheck(ledger, clock),
    findMembers: async (registerId) => (await findSet(registerId))?.members,
  });
  const onFault = (error: unknown) =>
    runtime.log.error({ err: error }, 'a submission failed with an internal error');
  return { self, forward, onFault, peerClients, previewDeps };
}

/** The calls of the surfaces to other validators. */
function createPeerClients(connections: Connections) {
  return {
    ...createReportClient(connections),
    ...createModeClient(connections),
    ...createEvidenceClient(connections),
    ...createPreviewClient(connections),
    ...createConfigurationClient(connections),
    ...createSubmissionClient(connections),
  };
}

/** The registers in which this validator votes, with the contact times of their members. */
function registerContacts({ registers, peering }: Engine, validatorId: string): readonly RegisterContact[] {
  return [...registers.all()]
    .filter(({ isOpen, state }) => isOpen && state.members.some((each) => each.validatorId === validatorId))
    .map(({ id, facts }) => ({
      registerId: id,
      quorum: facts.quorum,
      // after a start no member has been heard yet
      members: peering.operational(id).map(({ heardAtMs }) => ({
        heardAtMs: Math.max(heardAtMs, facts.startedAtMs),
      })),
    }));
}

function readinessChecks({ config, runtime, signer, engine }: AssembledParts): ReadinessCheck[] {
  const contacts = () => registerContacts(engine, config.CHANCERY_VALIDATOR_ID);
  return [
    { name: 'signer', check: () => signer.assertOpen() },
    { name: 'sealing', check: () => engine.assertWorking() },
    { name: 'disk', degrades: true, check: () => engine.assertDiskSpace() },
    { name: 'clock', degrades: true, check: () => assertClock(engine.peering.clockAheadMs) },
    { name: 'quorum', degrades: true, check: () => assertQuorumConnected(contacts(), runtime.clock.nowMs()) },
  ];
}

function addServices(server: RpcServer, parts: Parts): void {
  const { config, runtime, engine, signer } = parts;
  const nowMs = () => runtime.clock.nowMs();
  const { admission, registers } = engine;
  server.add(
    SubmissionService,
    submissionHandlers({ admission, registers, forward: parts.forward, onFault: parts.onFault, nowMs }),
    {
      allow: ({ clientId }) => clientId === 'service-register' || clientId.startsWith('validator-'),
    },
  );
  server.add(ValidatorAdminService, adminHandlers({ ...parts.self, ...parts.previewDeps }), {
    allow: ({ clientId }) => clientId === 'service-register' || clientId.startsWith('validator-'),
  });
  server.add(MembershipService, membershipHandlers({ validatorId: config.CHANCERY_VALIDATOR_ID, signer }), {
    allow: ({ clientId }) => clientId === 'service-register',
  });
  const consensus = consensusHandlers({
    inbox: engine.peering,
    onStream: (from) => parts.outboundStreams.resetBackoff(from),
    peerScore: engine.peering.peerScore,
  });
  server.add(ConsensusService, consensus, consensusRules(engine.peering.peerScore));
  const history = historyHandlers({
    registers: () => registers.all(),
    readLoggedDockets: engine.readLoggedDockets,
  });
  server.add(HistoryService, history, { allow: ({ clientId }) => clientId === 'service-register' });
  const findLog = (registerId: string) => {
    const register = registers.get(registerId);
    if (register === undefined) return undefined;
    const { networkId, members } = register.state;
    const own = signerFor(members, config.CHANCERY_VALIDATOR_ID, signer);
    return { networkId, signer: own, rootAt: (size: number) => register.rootAt(size) };
  };
  server.add(CheckpointService, checkpointHandlers({ clock: runtime.clock, findLog }), {
    allow: ({ clientId }) => clientId === 'service-register',
  });
}

function addRoutes(app: App, parts: Parts, grpc: string): void {
  const { runtime, engine, self } = parts;
  const verifier = createVerifier(loadEd25519().backend);
  mountRoutes(app, {
    ...self,
    ...parts.previewDeps,
    checks: parts.checks,
    operatorApi: {
      ...self,
      identity: identityOf(parts, grpc),
      budget: engine.budget,
      drain: engine.drain,
      getRegister: (registerId) => engine.registers.get(registerId),
      operational: (registerId) => engine.peering.operational(registerId),
    },
    nowMs: () => runtime.clock.nowMs(),
    admission: engine.admission,
    forward: parts.forward,
    onFault: parts.onFault,
    directory: parts.directory,
    peerClients: parts.peerClients,
    verifier,
    verify: (items) => parts.pool.verifyBatch(items),
    findState: async (registerId) => {
      const facts = await parts.ledger.findRegister(registerId);
      return engine.registers.get(registerId)?.state ?? (facts && buildState(facts, verifier));
    },
  });
}
