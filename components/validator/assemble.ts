import type { Verifier } from '#core/crypto/verify.ts';
import type { Scheduler, Timers } from '#kit/clock/timers.ts';
import type { VerifyItem } from '#kit/crypto/verify-pool.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { Consensus } from './chain/consensus/bft1.ts';
import { Drain } from './chain/draining/drain.ts';
import { DrainState } from './chain/draining/drain-state.ts';
import { Budget } from './chain/pool/budget.ts';
import type { PoolBounds } from './chain/pool/pool.ts';
import { decodeRecord, encodeRecord, type LogRecord } from './chain/records/entries.ts';
import {
  type LoggedDockets,
  type LoggedRange,
  readLoggedDockets as readLog,
} from './chain/records/recovery.ts';
import { RegisterTable } from './chain/registers/register-table.ts';
import { Registers } from './chain/registers/registers.ts';
import { VolumeGaps } from './chain/registers/volume-gaps.ts';
import { AdmissionEpochs } from './chain/sealing/admission-epochs.ts';
import { type BuildLimits, unlimitedBuild } from './chain/sealing/block-interval.ts';
import { Health } from './chain/sealing/health.ts';
import type { Ledger, Signer } from './chain/sealing/ports.ts';
import type { Journal } from './disk/log/journal.ts';
import type { Storage } from './disk/volume/storage.ts';
import type { Volume } from './disk/volume/volume.ts';
import { Admission } from './intake/admission/admission.ts';
import { createSubscriptionCheck } from './intake/admission/subscriptions.ts';
import { type KeyEvent, KeyLoader } from './intake/lookup/key-loader.ts';
import { Reach } from './intake/lookup/reach.ts';
import { type KeyFilterMode, SealedLookup } from './intake/lookup/sealed-lookup.ts';
import { ShadowCheck } from './intake/lookup/shadow-check.ts';
import { createMetrics, observeState } from './metrics.ts';
import { Peering } from './network/peering/peering.ts';
import { SuspensionProposer } from './network/suspension/suspension-proposer.ts';
import type { Transport } from './network/transport/transport.ts';

export interface EngineOptions {
  readonly runtime: Runtime;
  readonly validatorId: string;
  readonly directory: string;
  readonly bounds: Omit<PoolBounds, 'budget'> & { readonly maxBytesTotal: number };
  readonly keyFilters: KeyFilterOptions;
  readonly segmentBytes: number;
  readonly retainBytes: number;
  readonly signer: Signer;
  readonly ledger: Ledger;
  readonly transport: Transport;
  readonly version: string;
  readonly verifier: Verifier;
  verify(items: readonly VerifyItem[]): Promise<readonly boolean[]>;
  /** `algorithm:publicKey` of the installation's register-control key. */
  systemKey(): Promise<string>;
  /** Replacements of the simulator; the real environment when absent. */
  readonly environment?: EngineEnvironment | undefined;
}

interface KeyFilterOptions {
  readonly mode: KeyFilterMode;
  /** Bound of the memory of all keys. */
  readonly maxBytes: number;
  /** Questions about a register from which its keys are loaded; the default when absent. */
  readonly leastQuestions?: number;
}

/** The environment of the process, beside signer, ledger and peers. */
interface EngineEnvironment {
  readonly storage?: Storage | undefined;
  readonly timers?: Timers | undefined;
  /** Removes the gate that keeps incomplete keys from answering. */
  readonly areKeysGated?: boolean | undefined;
  /** Called when keys are loaded or dropped, and when they disagree with the register service. */
  readonly onKeys?: ((event: KeyEvent | 'disagreement') => void) | undefined;
  /** The consensus functions of one register. */
  readonly consensus?: ((registerId: string) => Consensus) | undefined;
}

/** What is opened before the parts are built. */
interface EngineResources {
  readonly journal: Journal;
  readonly volume: Volume;
  readonly scheduler: Scheduler;
  /** Start of a drain that the log recorded. */
  readonly drainingSinceMs: number | undefined;
}

export type EngineParts = ReturnType<typeof assemble>;

/** Builds the parts that share the log, lower layers first: peering, registers, admission, suspension, drain. */
export function assemble(given: EngineOptions, resources: EngineResources) {
  const base = assembleBase(given, resources);
  const { append, metrics, table, health, keyLoader, shadowCheck, lookup } = base;
  const options = { ...given, ledger: base.ledger };
  const { scheduler, volume } = resources;
  const { signer, validatorId: self, runtime } = options;
  const { clock, log } = runtime;
  const peering = createPeering(options, resources, base);
  const registers = createRegisters(options, resources, { ...base, peering });
  const admission = createAdmission(options, resources, { ...base, registers, peering });
  const suspensionProposer = new SuspensionProposer({
    self,
    signer,
    scheduler,
    clock,
    log,
    find: (registerId) => table.get(registerId),
    evidence: (registerId) => peering.evidence(registerId),
    submit: (text) => admission.submit(text, { isRegisterService: false }),
    opened: () => metrics.suspensionProposed(),
  });
  peering.attach({
    registers,
    admission,
    proposeSuspension: (registerId) => suspensionProposer.consider(registerId),
  });
  const drain = new Drain(
    {
      self,
      clock,
      scheduler,
      append,
      registers: () => table.all(),
      assertDiskSpace: () => volume.assertDiskSpace(),
      notifyPeers: () => peering.sendHeartbeats(),
      reannounce: (register) => peering.reannounce(register),
    },
    base.drainState,
  );
  observeState(runtime.telemetry, {
    registers: () => table.all(),
    clockAheadMs: () => peering.clockAheadMs,
    isFull: () => volume.isFull,
    evidenceHeld: () => peering.evidenceHeld,
    keyBytes: () => keyLoader.bytes,
    answered: () => lookup.answered,
    settleShadow: () => shadowCheck.settle(),
  });
  const { budget, gaps, bounds, buildLimits } = base;
  return {
    registers,
    admission,
    peering,
    drain,
    budget,
    append,
    health,
    gaps,
    bounds,
    buildLimits,
    keyLoader,
  };
}

/** The parts that depend on no other part. */
function assembleBase(options: EngineOptions, resources: EngineResources) {
  const { journal, volume, drainingSinceMs } = resources;
  const { clock, log, telemetry } = options.runtime;
  const metrics = createMetrics(telemetry);
  const nowMs = () => clock.nowMs();
  const budget = new Budget(options.bounds.maxBytesTotal);
  const bounds: PoolBounds = { ...options.bounds, budget };
  const buildLimits: BuildLimits = { ...unlimitedBuild };
  return {
    metrics,
    budget,
    bounds,
    buildLimits,
    epochs: new AdmissionEpochs(),
    table: new RegisterTable(),
    drainState: new DrainState(drainingSinceMs),
    append: (...records: LogRecord[]) => journal.append(...records.map(encodeRecord)),
    health: new Health({ clock, log, volume, logFailure: () => journal.failure }),
    gaps: new VolumeGaps({ log, nowMs, onGap: (dockets) => metrics.volumeBehind(dockets) }),
    ...createLookup(options, resources, metrics),
  };
}

/** The register service, observed, and the answers to questions about the sealed past. */
function createLookup(
  { runtime: { clock, log }, ledger, keyFilters: { mode, ...limits }, environment }: EngineOptions,
  { scheduler }: EngineResources,
  metrics: ReturnType<typeof createMetrics>,
) {
  const keyLoader = new KeyLoader({
    ledger,
    clock,
    scheduler,
    log,
    ...limits,
    onEvent: (event) => {
      metrics.keyEvent(event);
      environment?.onKeys?.(event);
    },
  });
  const reach = new Reach(clock);
  const observed = reach.watch(ledger, (facts, askedAtMs) => keyLoader.learned(facts, askedAtMs));
  const disagreed = () => {
    metrics.keysDisagreed();
    environment?.onKeys?.('disagreement');
  };
  const shadowCheck = new ShadowCheck({ ledger: observed, log, disagreed });
  const lookup = new SealedLookup({
    ledger: observed,
    mode,
    reach,
    loader: keyLoader,
    shadow: shadowCheck,
  });
  return { ledger: observed, keyLoader, shadowCheck, lookup };
}

type BaseParts = ReturnType<typeof assembleBase>;

function createPeering(
  {
    runtime: { clock, log },
    validatorId: self,
    transport,
    version,
    verifier,
    ledger,
    ...options
  }: EngineOptions,
  { scheduler }: EngineResources,
  { epochs, metrics, append, table, drainState, lookup }: BaseParts,
): Peering {
  return new Peering({
    lookup,
    self,
    version,
    transport,
    verifier,
    clock,
    scheduler,
    epochs,
    ledger,
    log,
    metrics,
    append,
    registers: table,
    verify: (items) => options.verify(items),
    isDraining: () => drainState.isDraining,
  });
}

function createRegisters(
  { runtime, validatorId: self, signer, ledger, verifier, environment }: EngineOptions,
  { scheduler, journal, volume }: EngineResources,
  { health, drainState, peering, ...base }: BaseParts & { readonly peering: Peering },
): Registers {
  const { epochs, metrics, bounds, buildLimits, append, gaps, table } = base;
  return new Registers({
    self,
    networkId: runtime.installation,
    clock: runtime.clock,
    log: runtime.log,
    signer,
    ledger,
    peers: peering,
    verifier,
    scheduler,
    epochs,
    bounds,
    buildLimits,
    metrics,
    append,
    gaps,
    table,
    areKeysGated: environment?.areKeysGated,
    consensusOf: environment?.consensus,
    onFailed: (error) => health.failed(error),
    readLoggedDockets: (registerId, from) => readLoggedDockets(journal, registerId, { from }),
    isFull: () => volume.isFull,
    isDraining: () => drainState.isDraining,
  });
}

function createAdmission(
  { runtime: { clock }, ledger, ...options }: EngineOptions,
  { scheduler, volume }: EngineResources,
  { registers, peering, ...base }: BaseParts & { readonly registers: Registers; readonly peering: Peering },
): Admission {
  const { epochs, append, health, metrics, drainState, lookup } = base;
  return new Admission({
    lookup,
    epochs,
    append,
    clock,
    ledger,
    assertAccepting: () => drainState.assertAccepting(),
    assertWorking: () => health.assertOpen(),
    unlessFull: (writing) => volume.unlessFull(writing),
    verify: (items) => options.verify(items),
    defer: (act) => scheduler.defer(act),
    accepted: (registerId, transactions) => peering.announce(registerId, transactions),
    systemKey: () => options.systemKey(),
    getRegister: (registerId) => registers.getOwn(registerId),
    findRegister: (registerId) => registers.find(registerId),
    beginRegister: (registerId, genesis) => registers.begin(registerId, genesis),
    subscriptions: createSubscriptionCheck(ledger, clock),
    submissionAnswered: (outcome) => metrics.submissionAnswered(outcome),
  });
}

/** The dockets of a register that the log still holds, from one number on. */
export function readLoggedDockets(
  journal: Journal,
  registerId: string,
  range: LoggedRange,
): Promise<LoggedDockets> {
  const replay = (take: Parameters<Parameters<typeof readLog>[0]>[0]) =>
    journal.replay((entry, segment) => take(decodeRecord(entry), segment));
  return readLog(replay, registerId, range);
}
