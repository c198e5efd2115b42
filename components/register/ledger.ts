import type { Verifier } from '#core/crypto/verify.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import { systemRegisterId } from '#core/ledger/register-id.ts';
import type { Bus } from '#kit/bus/bus.ts';
import type { VerifyPool } from '#kit/crypto/verify-pool.ts';
import type { Database } from '#kit/db/db.ts';
import { createIdempotency } from '#kit/db/idempotency.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createLoadWorkflows } from './blueprints/publications/workflows.ts';
import type { Validators } from './clients/validators.ts';
import type { Wallets } from './clients/wallets.ts';
import type { RegisterConfig } from './config.ts';
import type { RegisterSchema } from './database/schema.ts';
import { startEnactments } from './governance/proposals/jobs.ts';
import type { Deps } from './http.ts';
import { type RecoveryJob, startRecovery } from './ledger/recovery/jobs.ts';
import { publishSyncState } from './ledger/recovery/store.ts';
import { validatorSources } from './ledger/recovery/validators.ts';
import { createSegments, type Segments } from './ledger/segments/segments.ts';
import { type Confirmations, createConfirmations } from './ledger/transactions/confirmations.ts';
import { signaturesByPool } from './ledger/writing/signatures.ts';
import { createDocketWriter } from './ledger/writing/store.ts';
import { createWriteDocket, type WriteDocket } from './ledger/writing/write.ts';
import { measureSystemRegister, measureWrites } from './metrics.ts';
import { createExports } from './queries/export/exports.ts';
import { createFreshness } from './queries/projection/freshness.ts';
import { type Projector, startProjector } from './queries/projection/jobs.ts';
import { createCheckpoints } from './queries/proofs/checkpoint.ts';
import { createCosigners } from './queries/proofs/cosigners.ts';
import type { BeginDeps } from './registers/creation/begin.ts';
import { createFindMembers, type FindMembers } from './registers/directory/ask.ts';
import { createDefaultSet, createNamedSet } from './registers/directory/default-set.ts';
import { createOutages } from './registers/directory/outages.ts';
import { type GenesisDispatcher, startGenesisDispatcher } from './registers/genesis/jobs.ts';
import { createStopNotifications, type StopNotifications } from './registers/lifecycle/stop-notifications.ts';
import { createChangeManaged } from './registers/managed/changes.ts';
import { type Bootstrap, startBootstrap } from './system/system-register/jobs.ts';

/** Dependencies of the ledger: everything except listeners and connections. */
interface LedgerParts {
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
    | 'CHANCERY_SYSTEM_REGISTER_NETWORK'
    | 'CHANCERY_SYSTEM_REGISTER_VALIDATORS'
    | 'CHANCERY_PUBLIC_SYNC_HEALTH'
  >;
  /** Transactions that fill a key segment; the constant of the schema when absent. */
  readonly segmentTransactions?: number | undefined;
}

export interface Ledger {
  readonly deps: Deps;
  readonly writeDocket: WriteDocket;
  readonly segments: Segments;
  readonly confirmations: Confirmations;
  readonly recovery: RecoveryJob;
  readonly projector: Projector;
  /** Called when a validator announced itself: genesis work that it has not accepted is retried. */
  readonly onAnnounced: (validatorId: string) => void;
  stop(): Promise<void>;
}

interface Tools {
  readonly validators: Validators;
  readonly findMembers: FindMembers;
  readonly segments: Segments;
  readonly confirmations: Confirmations;
  readonly beginning: Beginnings;
  readonly stopNotifications: StopNotifications;
  readonly writeDocket: WriteDocket;
  readonly recovery: RecoveryJob;
  readonly projector: Projector;
}

/** Common dependencies of the creation of registers. */
type Beginnings = Pick<BeginDeps, 'networkId' | 'onCreated'>;

function beginningsOf({ runtime, bus }: LedgerParts, genesis: GenesisDispatcher): Beginnings {
  return {
    networkId: runtime.installation,
    onCreated: () => {
      genesis.wake();
      bus.publish(SUBJECTS.registerEvents);
    },
  };
}

const freshMsOf = ({ settings }: LedgerParts): number => settings.CHANCERY_VALIDATOR_FRESH_SECONDS * 1000;
const systemIdOf = ({ settings }: LedgerParts) => systemRegisterId(settings.CHANCERY_SYSTEM_REGISTER_NETWORK);

type BootstrapTools = Pick<Tools, 'validators' | 'findMembers' | 'confirmations' | 'beginning'>;

function bootstrapOf(parts: LedgerParts, tools: BootstrapTools): Bootstrap {
  const { database, wallets, verifier, runtime, settings } = parts;
  const { clock, log, telemetry } = runtime;
  const { beginning, ...others } = tools;
  const named = { database, validators: tools.validators, verifier, clock, log };
  return startBootstrap({
    ...named,
    ...others,
    ...beginning,
    wallets,
    namedSet: createNamedSet(named),
    registerId: systemIdOf(parts),
    membersNeeded: settings.CHANCERY_SYSTEM_REGISTER_VALIDATORS,
    freshMs: freshMsOf(parts),
    onState: measureSystemRegister(telemetry),
  });
}

/** The dependencies of each area of routes. */
function routeDeps(parts: LedgerParts, tools: Tools): Deps {
  const { database, wallets, verifier, runtime, settings, bus } = parts;
  const {
    validators,
    findMembers,
    segments,
    confirmations,
    beginning,
    stopNotifications,
    writeDocket,
    recovery,
    projector,
  } = tools;
  const { clock, log } = runtime;
  const registerId = systemIdOf(parts);
  const reads = { db: database.read, validators, findMembers, segments };
  const idempotency = createIdempotency({ database, clock, log });
  const control = { database, wallets, validators, findMembers, verifier, clock };
  const notify = () => bus.publish(SUBJECTS.registerEvents);
  const cosign: Validators['cosign'] = (at, request) => validators.cosign(at, request);
  const named = { database, validators, verifier, clock, log };
  const defaultSet = createDefaultSet({ ...named, freshMs: freshMsOf(parts) });
  const cosigners = createCosigners({ db: database.read, findMembers, verifier, log, cosign });
  const checkpoints = createCheckpoints({ wallets, cosigners, clock });
  const freshness = createFreshness({ db: database.read, projector });
  return {
    idempotency,
    registers: {
      ...control,
      confirmations,
      ...beginning,
      pendingTtlMs: settings.CHANCERY_PENDING_TTL_SECONDS * 1000,
      maxOpenRegistrations: settings.CHANCERY_MAX_OPEN_REGISTRATIONS,
      defaultSet,
      stopNotifications,
      onUpdated: notify,
      onDeleted: notify,
    },
    transactions: { ...reads, database, wallets, clock, confirmations, freshness },
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
    conflicts: { database, clock, log, onStatusChanged: notify },
    projection: { database, log, projector },
    managed: {
      ...control,
      ...beginning,
      namedSet: createNamedSet(named),
      defaultSet,
      systemRegisterId: registerId,
      change: createChangeManaged(control),
      stopNotifications,
      onDeleted: notify,
    },
    odata: { database, clock, freshness },
    queries: { ...reads, database, freshness },
    participants: reads,
    blueprints: { ...control, confirmations },
    systemRegister: {
      db: database.read,
      registerId,
      networkId: settings.CHANCERY_SYSTEM_REGISTER_NETWORK,
    },
    recovery: { recovery, publicSyncHealth: settings.CHANCERY_PUBLIC_SYNC_HEALTH },
  };
}

/** Wires the areas together, in this one place. Starts the dispatchers of genesis and enactments. */
export function assembleLedger(parts: LedgerParts): Ledger {
  const { database, wallets, verifier, runtime, bus } = parts;
  const { clock, log, telemetry } = runtime;
  const outages = createOutages(clock);
  const validators = outages.watch(parts.validators);
  const findMembers = createFindMembers(database.read, outages);
  const confirmations = createConfirmations();
  const segments = createSegments({ database, clock, log });
  const projector = startProjector({ database, log, telemetry });
  const genesis = startGenesisDispatcher({ database, wallets, validators, clock, log, telemetry });
  const stopNotifications = createStopNotifications({ validators, log });
  const beginning = beginningsOf(parts, genesis);
  const systemId = systemIdOf(parts);
  const bootstrap = bootstrapOf(parts, { validators, findMembers, confirmations, beginning });
  const enacting = { database, wallets, validators, findMembers, verifier, clock };
  const enactments = startEnactments({ ...enacting, log, telemetry });
  const writeDocket = createWriteDocket({
    database,
    writer: createDocketWriter({ database, segments, segmentTransactions: parts.segmentTransactions }),
    segments,
    clock,
    judges: { verifier, verifySignatures: signaturesByPool(parts.pool) },
    loadWorkflows: createLoadWorkflows(database.read),
    onIndexable: (registerNo, docket) => projector.stored(registerNo, docket),
    onStored: (docket) => {
      confirmations.confirmed(docket);
      if (docket.registerId === systemId) bootstrap.wake();
      bus.publish(SUBJECTS.registerEvents);
    },
    onRulesChanged: () => enactments.wake(),
    onHalted: (registerId, docketNumber) => {
      log.error({ registerId, docketNumber }, 'two certificates for one height: the register is halted');
      bus.publish(SUBJECTS.registerEvents);
    },
    onResult: measureWrites(telemetry),
  });
  const recovery = recoverDockets(parts, { validators, writeDocket });
  const tools = {
    validators,
    findMembers,
    segments,
    confirmations,
    beginning,
    stopNotifications,
    writeDocket,
    recovery,
    projector,
  };
  return {
    projector,
    deps: routeDeps(parts, tools),
    segments,
    writeDocket,
    confirmations,
    recovery,
    onAnnounced: (validatorId) => {
      genesis.retryAt(validatorId);
      bootstrap.wake();
      recovery.wake();
      bus.publish(SUBJECTS.validatorDirectory);
    },
    stop: async () => {
      confirmations.close();
      await bootstrap.stop();
      await recovery.stop();
      await genesis.stop();
      await stopNotifications.stop();
      await enactments.stop();
      await segments.stop();
      await projector.stop();
    },
  };
}

/** Recovers dockets that this service lost, from the logs of validators. */
function recoverDockets(
  { database, runtime, bus }: LedgerParts,
  { validators, writeDocket }: Pick<Tools, 'validators' | 'writeDocket'>,
): RecoveryJob {
  const { clock, log } = runtime;
  return startRecovery({
    database,
    findSources: validatorSources(database.read, validators),
    writeDocket,
    clock,
    log,
    onChanged: async (registerId, status) => {
      await database.transact((tx) => publishSyncState(tx, registerId, status));
      bus.publish(SUBJECTS.registerEvents);
    },
  });
}
