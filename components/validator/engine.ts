import { join } from 'node:path';
import type { Verifier } from '#core/crypto/verify.ts';
import { isAppError } from '#core/errors/errors.ts';
import { Scheduler, type Timers } from '#kit/clock/timers.ts';
import type { VerifyItem } from '#kit/crypto/verify-pool.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { Consensus } from './chain/consensus/bft1.ts';
import { Drain } from './chain/draining/drain.ts';
import { Budget } from './chain/pool/budget.ts';
import type { PoolBounds } from './chain/pool/pool.ts';
import { decodeRecord, encodeRecord, type LogRecord, type Mode } from './chain/records/entries.ts';
import {
  type LoggedDockets,
  type LoggedRange,
  Recovery,
  readLoggedDockets as readLog,
} from './chain/records/recovery.ts';
import { Registers } from './chain/registers/registers.ts';
import { type VolumeGap, VolumeGaps } from './chain/registers/volume-gaps.ts';
import { AdmissionEpochs } from './chain/sealing/admission-epochs.ts';
import { type BuildLimits, unlimitedBuild } from './chain/sealing/block-interval.ts';
import { type Condition, Health } from './chain/sealing/health.ts';
import type { Ledger, Signer } from './chain/sealing/ports.ts';
import { Journal, type JournalOptions } from './disk/log/journal.ts';
import type { Storage } from './disk/volume/storage.ts';
import { Volume } from './disk/volume/volume.ts';
import { Admission } from './intake/admission/admission.ts';
import { createSubscriptionCheck } from './intake/admission/subscriptions.ts';
import { createMetrics } from './metrics.ts';
import { evidenceRecord } from './network/evidence/evidence-collector.ts';
import { Peering } from './network/peering/peering.ts';
import { SuspensionProposer } from './network/suspension/suspension-proposer.ts';
import type { Transport } from './network/transport/transport.ts';

export interface EngineOptions {
  readonly runtime: Runtime;
  readonly validatorId: string;
  readonly directory: string;
  readonly bounds: Omit<PoolBounds, 'budget'> & { readonly maxBytesTotal: number };
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

/** The environment of the process, beside signer, ledger and peers. */
export interface EngineEnvironment {
  readonly storage?: Storage | undefined;
  readonly timers?: Timers | undefined;
  /** The consensus functions of one register. */
  readonly consensus?: ((registerId: string) => Consensus) | undefined;
}

/** A validator without its listeners. */
export interface Engine {
  readonly admission: Admission;
  readonly registers: Registers;
  readonly scheduler: Scheduler;
  readonly peering: Peering;
  readonly drain: Drain;
  /** Memory budget of all pools together. */
  readonly budget: Budget;
  /** Limits that may be changed at runtime and apply at once. */
  readonly bounds: PoolBounds;
  readonly buildLimits: BuildLimits;
  /** Sets the mode of a register once the change is on disk. */
  setMode(registerId: string, mode: Mode): Promise<void>;
  /** Throws when the log or the signing component has failed for good. */
  assertWorking(): void;
  /** Throws AppError unavailable VALIDATOR_PAUSED while the volume of the log is full. */
  assertDiskSpace(): void;
  /** Conditions that keep this validator from sealing; empty when there are none. */
  conditions(): readonly Condition[];
  /** The dockets of a register that the log still holds, from one number on. */
  readonly readLoggedDockets: (registerId: string, range: LoggedRange) => Promise<LoggedDockets>;
  /** How far the volume was behind the register's chain when this process started; undefined when it was not. */
  volumeGap(registerId: string): VolumeGap | undefined;
  stop(): Promise<void>;
}

const sweepMs = 60_000;
const retryMs = 500;

/** Opens the log and resumes from its contents. Waits for the register service when it is needed and unavailable. */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { runtime, ledger } = options;
  const { log, clock } = runtime;
  const scheduler = new Scheduler(clock, options.environment?.timers);
  const wait = () => pause(scheduler, retryMs);
  const volume = new Volume(clock, log);
  let ready: Registers | undefined;
  const { journal, recovery } = await openLog(options, {
    volume,
    schedule: (ms, act) => scheduler.set('log', ms, act),
    carryOver: (segment, into) => ready && carriedEntries(ready, parts, { segment, into }),
    wait,
  });
  const { drainingSinceMs } = recovery;
  const parts = assemble(options, { journal, volume, scheduler, drainingSinceMs });
  const { registers } = parts;
  const close = async () => {
    parts.peering.stop();
    registers.stop();
    scheduler.stop();
    await journal.close();
  };
  try {
    await restoreAll(registers, recovery, ledger, wait);
  } catch (error) {
    await close();
    throw error;
  }
  ready = registers;
  parts.peering.start();
  volume.onDiskSpace(() => resumeAfterFull(registers, parts.peering, clock.nowMs()));
  const sweep = () => {
    void sweepExpired(registers, clock.nowMs(), parts.append).catch((error: unknown) =>
      log.warn({ err: error }, 'expired transactions could not be written to the log'),
    );
    scheduler.set('sweep', sweepMs, sweep);
  };
  scheduler.set('sweep', sweepMs, sweep);
  return {
    admission: parts.admission,
    peering: parts.peering,
    drain: parts.drain,
    budget: parts.budget,
    bounds: parts.bounds,
    buildLimits: parts.buildLimits,
    registers,
    scheduler,
    async setMode(registerId, mode) {
      const register = registers.get(registerId);
      if (register === undefined || register.status === mode) return;
      volume.assertDiskSpace();
      await parts.append({ kind: 'mode', value: { registerId, mode } });
      register.setMode(mode);
    },
    assertWorking: () => parts.health.assertWorking(),
    assertDiskSpace: () => volume.assertDiskSpace(),
    conditions: () => parts.health.conditions,
    volumeGap: (registerId) => parts.gaps.find(registerId),
    readLoggedDockets: (registerId, range) => readLoggedDockets(journal, registerId, range),
    stop: close,
  };
}

type LogParts = Pick<JournalOptions, 'volume' | 'schedule' | 'carryOver'> & { wait(): Promise<void> };

/** Opens and reads the log. Retries while the volume has no room for the small writes of opening. */
function openLog(options: EngineOptions, { wait, ...parts }: LogParts) {
  const { segmentBytes, retainBytes, runtime, environment } = options;
  const directory = join(options.directory, 'log');
  const settings = { directory, segmentBytes, retainBytes, log: runtime.log, storage: environment?.storage };
  return untilAnswered(async () => {
    const recovery = new Recovery();
    const journal = await Journal.open({ ...settings, ...parts }, (entry, segment) =>
      recovery.take(decodeRecord(entry), segment),
    );
    return { journal, recovery };
  }, wait);
}

/** A validator heard within this time counts as connected. */
const connectedMs = 5_000;

/** After disk space was freed: wakes the registers and requests missed messages from connected peers. */
function resumeAfterFull(registers: Registers, peering: Peering, nowMs: number): void {
  for (const register of registers.all()) register.wake();
  for (const { validatorId, heardAtMs } of peering.contacts) {
    if (nowMs - heardAtMs < connectedMs) peering.connected(validatorId);
  }
}

interface EngineResources {
  readonly journal: Journal;
  readonly volume: Volume;
  readonly scheduler: Scheduler;
  /** Start of a drain that the log recorded. */
  readonly drainingSinceMs: number | undefined;
}

/** Builds the parts that share the log: registers, admission, peering. */
function assemble(options: EngineOptions, foundation: EngineResources) {
  const { journal, volume, scheduler } = foundation;
  const { runtime, ledger } = options;
  const { log, clock } = runtime;
  const epochs = new AdmissionEpochs();
  const append = (...records: LogRecord[]) => journal.append(...records.map(encodeRecord));
  const health = new Health({ clock, log, volume, logFailure: () => journal.failure });
  const metrics = createMetrics(runtime.telemetry, {
    registers: () => registers.all(),
    clockAheadMs: () => peering.clockAheadMs,
    isFull: () => volume.isFull,
    evidenceHeld: () => peering.evidenceHeld,
  });
  const nowMs = () => clock.nowMs();
  const gaps = new VolumeGaps({ log, nowMs, onGap: (dockets) => metrics.volumeBehind(dockets) });
  const { signer, transport, version, verifier, validatorId: self } = options;
  const budget = new Budget(options.bounds.maxBytesTotal);
  const bounds: PoolBounds = { ...options.bounds, budget };
  const buildLimits: BuildLimits = { ...unlimitedBuild };
  const isDraining = () => drain.isDraining;
  const peering: Peering = new Peering({
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
    verify: (items) => options.verify(items),
    isDraining,
    registers: () => registers,
    admission: () => admission,
    proposeSuspension: (registerId) => suspensionProposer.consider(registerId),
  });
  const peers = peering;
  const networkId = runtime.installation;
  const shared = { self, networkId, signer, ledger, peers, verifier, scheduler, epochs, clock, log };
  const consensusOf = options.environment?.consensus;
  const registers: Registers = new Registers({
    ...shared,
    bounds,
    buildLimits,
    consensusOf,
    metrics,
    append,
    onFailed: (error) => health.failed(error),
    readLoggedDockets: (registerId, from) => readLoggedDockets(journal, registerId, { from }),
    gaps,
    isFull: () => volume.isFull,
    isDraining,
  });
  const admission: Admission = createAdmission(options, foundation, {
    registers,
    peering,
    append,
    epochs,
    health,
    metrics,
    assertAccepting: () => drain.assertAccepting(),
  });
  const suspensionProposer = new SuspensionProposer({
    ...shared,
    find: (registerId) => registers.get(registerId),
    evidence: (registerId) => peering.evidence(registerId),
    submit: (text) => admission.submit(text, { isRegisterService: false }),
    opened: () => metrics.suspensionProposed(),
  });
  const drain: Drain = createDrain(options, foundation, { registers, peering, append });
  return { registers, admission, peering, drain, budget, append, health, gaps, bounds, buildLimits };
}

/** The dockets of a register that the log still holds, from one number on. */
function readLoggedDockets(journal: Journal, registerId: string, range: LoggedRange): Promise<LoggedDockets> {
  const replay = (take: Parameters<Parameters<typeof readLog>[0]>[0]) =>
    journal.replay((entry, segment) => take(decodeRecord(entry), segment));
  return readLog(replay, registerId, range);
}

interface AdmissionParts extends PeerParts {
  readonly epochs: AdmissionEpochs;
  readonly health: Health;
  readonly metrics: Pick<ReturnType<typeof createMetrics>, 'submissionAnswered'>;
  assertAccepting(): void;
}

/** Builds the admission of submissions. */
function createAdmission(
  { runtime: { clock }, ledger, ...options }: EngineOptions,
  { scheduler, volume }: EngineResources,
  { registers, peering, health, metrics, ...parts }: AdmissionParts,
): Admission {
  return new Admission({
    ...parts,
    clock,
    ledger,
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

interface PeerParts extends Pick<Engine, 'registers' | 'peering'> {
  append(...records: LogRecord[]): Promise<number>;
}

/** Builds the drain of this validator. */
function createDrain(
  { validatorId: self, runtime: { clock } }: EngineOptions,
  { scheduler, volume, drainingSinceMs }: EngineResources,
  { registers, peering, append }: PeerParts,
): Drain {
  return new Drain(
    {
      self,
      clock,
      scheduler,
      append,
      registers: () => registers.all(),
      assertDiskSpace: () => volume.assertDiskSpace(),
      notifyPeers: () => peering.sendHeartbeats(),
      reannounce: (register) => peering.reannounce(register),
    },
    drainingSinceMs,
  );
}

/** Log entries of a segment about to be deleted that must be written again into another segment. */
function carriedEntries(
  registers: Registers,
  { peering, drain }: Pick<Engine, 'peering' | 'drain'>,
  { segment, into }: { segment: number; into: number },
) {
  const ofRegisters = [...registers.all()].flatMap((register) => {
    const evidence = peering.evidence(register.id).map((known) => evidenceRecord(register.id, known));
    return [...register.carryOver(segment, into), ...evidence];
  });
  return [...drain.carryOver(), ...ofRegisters].map(encodeRecord);
}

/** Restores the registers of the directory and of the log. Retries while the register service is unreachable; other errors are fatal. */
async function restoreAll(
  registers: Registers,
  recovery: Recovery,
  ledger: Ledger,
  wait: () => Promise<void>,
): Promise<void> {
  const members = await untilAnswered(() => ledger.listMemberRegisters(), wait);
  for (const registerId of new Set([...members, ...recovery.registers.keys()])) {
    await untilAnswered(() => registers.restore(registerId, recovery.registers.get(registerId)), wait);
  }
}

async function untilAnswered<T>(ask: () => Promise<T>, wait: () => Promise<void>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isAppError(error, 'unavailable') && !isAppError(error, 'timeout')) throw error;
      await wait();
    }
  }
}

function pause(scheduler: Scheduler, ms: number): Promise<void> {
  return new Promise((resolve) => scheduler.set('restore', ms, resolve));
}

/** Turns expired and inadmissible transactions into tombstones. A minute of grace lets a docket with an expired one be decided first. */
async function sweepExpired(
  registers: Registers,
  nowMs: number,
  append: (...records: LogRecord[]) => Promise<number>,
): Promise<void> {
  for (const register of registers.all()) {
    register.tombstones.sweep(nowMs);
    const dropped = register.pool.expired(nowMs - sweepMs).flatMap(({ txId }) =>
      register.drop({
        registerId: register.id,
        txId,
        status: 'expired',
        code: 'VAL_TIME_003',
        message: 'The transaction expired before it was sealed',
        atMs: nowMs,
      }),
    );
    register.work.count('expired', dropped.length);
    dropped.push(...register.dropInadmissible());
    if (dropped.length > 0) await append(...dropped.map((value) => ({ kind: 'tombstone' as const, value })));
  }
}
