import { join } from 'node:path';
import { isAppError } from '#core/errors/errors.ts';
import { Scheduler } from '#kit/clock/timers.ts';
import { assemble, type EngineOptions, type EngineParts, readLoggedDockets } from './assemble.ts';
import { decodeRecord, encodeRecord, type Mode } from './chain/records/entries.ts';
import { type LoggedDockets, type LoggedRange, Recovery } from './chain/records/recovery.ts';
import type { Registers } from './chain/registers/registers.ts';
import { sweepExpired } from './chain/registers/sweep.ts';
import type { VolumeGap } from './chain/registers/volume-gaps.ts';
import type { Condition } from './chain/sealing/health.ts';
import type { Ledger } from './chain/sealing/ports.ts';
import { Journal, type JournalOptions } from './disk/log/journal.ts';
import { Volume } from './disk/volume/volume.ts';
import { evidenceRecord } from './network/evidence/evidence-collector.ts';
import type { Peering } from './network/peering/peering.ts';

/** A validator without its listeners. */
export interface Engine
  extends Pick<
    EngineParts,
    'admission' | 'registers' | 'peering' | 'drain' | 'budget' | 'bounds' | 'buildLimits'
  > {
  readonly scheduler: Scheduler;
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
  const { journal, recovery } = await openLog(options, {
    volume,
    schedule: (ms, act) => scheduler.set('log', ms, act),
    wait,
  });
  const { drainingSinceMs } = recovery;
  const parts = assemble(options, { journal, volume, scheduler, drainingSinceMs });
  const { registers } = parts;
  const close = async () => {
    parts.peering.stop();
    parts.keyLoader.stop();
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
  journal.allowDeletion((segment, into) => carriedEntries(parts, segment, into));
  parts.peering.start();
  volume.onDiskSpace(() => resumeAfterFull(registers, parts.peering, clock.nowMs()));
  const sweep = () => {
    void sweepExpired(registers.all(), clock.nowMs(), parts.append).catch((error: unknown) =>
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

type LogParts = Pick<JournalOptions, 'volume' | 'schedule'> & { wait(): Promise<void> };

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

/** Log entries of a segment about to be deleted that must be written again into another segment. */
function carriedEntries({ registers, peering, drain }: EngineParts, segment: number, into: number) {
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
