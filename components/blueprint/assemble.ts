import { randomUUID } from 'node:crypto';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import { startRefusalLog } from '#kit/audit/audit.ts';
import type { TenantSession } from '#kit/auth/auth.ts';
import type { Bus } from '#kit/bus/bus.ts';
import { startJob } from '#kit/clock/jobs.ts';
import type { Database } from '#kit/db/db.ts';
import { createIdempotency } from '#kit/db/idempotency.ts';
import { createDownloads } from '#kit/files/downloads.ts';
import { type Hub, openMethodHub } from '#kit/hub/hub.ts';
import type { Cleanup } from '#kit/lifecycle/lifecycle.ts';
import { createRateLimiter } from '#kit/rate-limit/rate-limit.ts';
import { openSession, openStore, type ServiceBase, type ServiceParts } from '#kit/service/service.ts';
import type { Telemetry } from '#kit/telemetry/telemetry.ts';
import { createPipeline, type PipelineDeps } from './actions/pipeline.ts';
import { connectLedger } from './clients/connect-ledger.ts';
import { connectDelegations } from './clients/delegations.ts';
import { connectOwnWallets } from './clients/own-wallets.ts';
import { connectRegisters } from './clients/registers.ts';
import { connectWallets } from './clients/wallets.ts';
import type { BlueprintConfig } from './config.ts';
import { migrations } from './database/migrations/list.ts';
import type { BlueprintDatabase } from './database/schema.ts';
import { type ChatDeps, chatHub } from './definitions/chat/hub.ts';
import { noProvider } from './definitions/chat/provider.ts';
import { createPublicationIndex } from './definitions/publications/follow.ts';
import { startPublicationReading } from './definitions/publications/jobs.ts';
import { createCanRead } from './definitions/publications/visibility.ts';
import { createDesignerMeter } from './definitions/publishing/metrics.ts';
import type { NextEvent } from './definitions/publishing/publish.ts';
import { refusal } from './errors.ts';
import { createDraftJudge } from './evaluation/pool.ts';
import { createCompiledDefinitions } from './execution/definitions.ts';
import { startUploadPurging } from './files/uploads/jobs.ts';
import { readChunk } from './files/uploads/store.ts';
import type { BlueprintHttpDeps } from './http.ts';
import { openInstances } from './instances/open.ts';
import { countOpenInstances } from './instances/store.ts';
import { OperationRunner } from './operations/runner.ts';
import { OperationSeal } from './operations/sealing.ts';
import { startTidyingRehearsals } from './rehearsals/jobs.ts';
import { eventRetention } from './upkeep.ts';

/** How long a submission on a register of development waits for its seal. */
const boundedWaitMs = 3_000;
/** How long a step of a rehearsal waits for its seal. */
const stepWaitMs = 10_000;

export interface Parts extends ServiceParts {
  readonly deps: BlueprintHttpDeps;
}

/** Opens the store, the session at the tenant service and the clients, and builds what the areas need. */
export async function assemble(base: ServiceBase<BlueprintConfig>): Promise<Parts> {
  const { config, runtime, bus, cleanup } = base;
  const { clock, log, telemetry } = runtime;
  const db = await openStore<BlueprintDatabase>(base, { schema: 'blueprint', migrations });
  const { authenticator, token } = await openSession(base);
  const { wallets, ownWallets, registers, ledger } = connectPeers(base, token);
  const refusalLog = startRefusalLog({ ...base, address: config.CHANCERY_TENANT_GRPC, token });
  const judge = createDraftJudge({
    workers: config.CHANCERY_DRAFT_WORKERS,
    log,
    // Steps neither require nor issue credentials yet.
    credentials: false,
  });
  cleanup.add('draft judge', () => judge.close());
  const index = createPublicationIndex({ db, ledger });
  cleanup.add('publications', startPublicationReading({ ...runtime, index }));
  const retention = startJob(eventRetention(db), runtime);
  cleanup.add('event retention', () => retention.stop());
  cleanup.add('unclaimed uploads', startUploadPurging({ ...runtime, db }));
  const instances = await openInstances(base, { db, ledger, index, authenticator, token });
  const operations = openOperations(base, { db, ledger, wallets, ...instances });
  const limiter = createRateLimiter({ profile: config.CHANCERY_RATE_LIMIT_PROFILE, clock });
  const chat = await openChat(base, { db, judge, authenticator, limiter });
  const deps: BlueprintHttpDeps = {
    ...operations,
    index,
    authenticator,
    db,
    clock,
    idempotency: createIdempotency({ database: db, clock, log }),
    judge,
    ledger,
    registers,
    wallets,
    ownWallets,
    stepWaitMs,
    log,
    self: async () => {
      const bearer = await token();
      return { caller: await authenticator.authenticate(bearer), bearer };
    },
    refusalLog,
    canRead: createCanRead({ registers, clock }),
    countOpenInstances: (publications) => countOpenInstances(db.read, publications, new Date(clock.nowMs())),
    meter: createDesignerMeter(telemetry),
    compiled: createCompiledDefinitions(),
    nextRegisterEvent: nextEventOf(
      bus,
      { subject: SUBJECTS.registerEvents, name: 'register events' },
      cleanup,
    ),
    ...instances,
    chatHub: chat,
    listOwn: (bearer) => wallets.listOwn(bearer),
    downloads: openDownloads(db, telemetry),
    verifier: createVerifier(nodeEd25519()),
    fileQuotaBytes: config.CHANCERY_FILE_QUOTA_BYTES,
  };
  cleanup.add('rehearsals', startTidyingRehearsals({ ...runtime, deps }));
  return { authenticator, deps, limiter };
}

/** Opens the hub in which drafts are designed. */
async function openChat(
  { runtime, workload, cleanup }: ServiceBase<BlueprintConfig>,
  {
    db,
    judge,
    authenticator,
    limiter,
  }: Pick<ChatDeps, 'db' | 'judge' | 'limiter'> & Pick<TenantSession, 'authenticator'>,
): Promise<Hub> {
  const { clock, log } = runtime;
  const chat = chatHub({ db, judge, clock, log, limiter, provider: noProvider });
  const hub = await openMethodHub(chat, { runtime, authenticator, workload });
  cleanup.add('chat hub', () => hub.stop());
  return hub;
}

/** Downloads of the files whose chunks are in the store of this service. */
function openDownloads(db: Database<BlueprintDatabase>, telemetry: Pick<Telemetry, 'counter'>) {
  const read = (registerId: string, chunkId: string) => readChunk(db.read, { registerId, chunkId });
  return createDownloads({ chunks: { read }, telemetry, refusal });
}

function connectPeers(
  { config, runtime, workload, cleanup }: ServiceBase<BlueprintConfig>,
  token: () => Promise<string>,
) {
  const peer = { runtime, workload, token };
  const wallets = connectWallets(config.CHANCERY_WALLET_GRPC, peer);
  cleanup.add('wallet client', () => wallets.close());
  const registers = connectRegisters(config.CHANCERY_REGISTER_HTTPS, peer);
  cleanup.add('register client', () => registers.close());
  const ledger = connectLedger(config.CHANCERY_REGISTER_GRPC, peer);
  cleanup.add('ledger client', () => ledger.close());
  const ownWallets = connectOwnWallets(config.CHANCERY_WALLET_GRPC, peer);
  cleanup.add('own wallets client', () => ownWallets.close());
  return { wallets, ownWallets, registers, ledger };
}

interface OperationParts extends Pick<PipelineDeps, 'ledger' | 'wallets' | 'definitions'> {
  readonly db: Database<BlueprintDatabase>;
}

/** Opens the runner of operations, which takes up those that an earlier process left. */
function openOperations(
  { config, runtime, workload, bus, clientId, cleanup }: ServiceBase<BlueprintConfig>,
  parts: OperationParts,
) {
  const { clock, log } = runtime;
  const seal = new OperationSeal(config.CHANCERY_OPERATIONS_KEY_FILE.reveal());
  const runner = new OperationRunner({
    db: parts.db,
    seal,
    clock,
    log,
    replica: randomUUID(),
    pipeline: createPipeline({ ...parts, clock }),
    nextStep: nextEventOf(bus, { subject: SUBJECTS.blueprintEvents, name: 'folded steps' }, cleanup),
    notify: () => bus.publish(SUBJECTS.blueprintEvents),
  });
  runner.begin();
  cleanup.add('operations', () => runner.stop());
  const delegations = connectDelegations(config.CHANCERY_TENANT_MTLS, { workload, clientId, clock });
  cleanup.add('delegations client', () => delegations.close());
  return { seal, runner, delegations, clientId, boundedWaitMs };
}

/** Waits for wake signals, by one subscription. */
function nextEventOf(
  bus: Bus,
  { subject, name }: { readonly subject: string; readonly name: string },
  cleanup: Cleanup,
): NextEvent {
  const waiting = new Set<() => void>();
  const unsubscribe = bus.subscribe(subject, () => {
    for (const wake of waiting) wake();
  });
  cleanup.add(name, unsubscribe);
  return (timeoutMs) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, timeoutMs).unref();
    waiting.add(resolve);
    return promise.finally(() => {
      clearTimeout(timer);
      waiting.delete(resolve);
    });
  };
}
