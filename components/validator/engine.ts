import { join } from 'node:path';
import type { Verifier } from '#core/crypto/verify.ts';
import { AppError, isAppError } from '#core/errors/errors.ts';
import type { VerifyItem } from '#kit/crypto/verify-pool.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { Admission } from './admission/admission.ts';
import { createSubscriptionCheck } from './admission/subscriptions.ts';
import type { Consensus } from './consensus/bft1.ts';
import { decodeRecord, encodeRecord, type LogRecord, type Mode } from './log/entries.ts';
import { Journal } from './log/journal.ts';
import { Recovery, readHeld as readLog } from './log/recovery.ts';
import type { Storage } from './log/storage.ts';
import { Registers } from './membership/registers.ts';
import { createMetrics } from './metrics.ts';
import { Peering } from './peering/peering.ts';
import type { Transport } from './peering/transport.ts';
import type { PoolBounds } from './pool/pool.ts';
import type { Ledger, Signer } from './sealing/ports.ts';
import { Scheduler, type Timers } from './sealing/scheduler.ts';
import { Serials } from './sealing/serials.ts';

export interface EngineOptions {
  readonly runtime: Runtime;
  readonly validatorId: string;
  readonly directory: string;
  readonly bounds: Omit<PoolBounds, 'maxPerSender'>;
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
  /** What of the machine the simulator replaces; the real thing when absent. */
  readonly world?: EngineWorld | undefined;
}

/** The ways in which a validator touches the machine it runs on, beside signer, ledger and peers. */
export interface EngineWorld {
  readonly storage?: Storage | undefined;
  readonly timers?: Timers | undefined;
  readonly consensus?: Consensus | undefined;
}

/** A validator without its listeners. */
export interface Engine {
  readonly admission: Admission;
  readonly registers: Registers;
  readonly scheduler: Scheduler;
  readonly peering: Peering;
  /** Sets the mode of a register once the change is on disk. */
  setMode(registerId: string, mode: Mode): Promise<void>;
  /** Throws when the log or the signing component has failed for good. */
  assertWorking(): void;
  stop(): Promise<void>;
}

const sweepMs = 60_000;
const retryMs = 500;

/** Opens the log, takes up what it says, and goes on from there. Waits for the register service when there is a need. */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { runtime, ledger } = options;
  const { log, clock } = runtime;
  const recovery = new Recovery();
  let ready: Registers | undefined;
  const journal = await Journal.open(
    {
      directory: join(options.directory, 'log'),
      segmentBytes: options.segmentBytes,
      retainBytes: options.retainBytes,
      log,
      storage: options.world?.storage,
      carry: (segment, into) => ready && carried(ready, parts.peering, { segment, into }),
    },
    (entry, segment) => recovery.take(decodeRecord(entry), segment),
  );
  const parts = assemble(options, journal);
  const { registers, scheduler } = parts;
  const close = async () => {
    parts.peering.stop();
    registers.stop();
    scheduler.stop();
    await journal.close();
  };
  try {
    await restoreAll(registers, recovery, ledger, () => pause(scheduler, retryMs));
  } catch (error) {
    await close();
    throw error;
  }
  ready = registers;
  parts.peering.start();
  const sweep = () => {
    void sweepExpired(registers, clock.nowMs(), parts.append).catch((error: unknown) =>
      log.warn({ err: error }, 'expiries not logged'),
    );
    scheduler.set('sweep', sweepMs, sweep);
  };
  scheduler.set('sweep', sweepMs, sweep);
  return {
    admission: parts.admission,
    peering: parts.peering,
    registers,
    scheduler,
    async setMode(registerId, mode) {
      const register = registers.get(registerId);
      if (register === undefined || register.status === mode) return;
      await parts.append({ kind: 'mode', value: { registerId, mode } });
      register.setMode(mode);
    },
    assertWorking: parts.assertWorking,
    stop: close,
  };
}

/** What shares the log: the registers and the way into them. */
function assemble(options: EngineOptions, journal: Journal) {
  const { runtime, ledger } = options;
  const { log, clock } = runtime;
  const scheduler = new Scheduler(clock, options.world?.timers);
  const serials = new Serials();
  const append = (...records: LogRecord[]) => journal.append(...records.map(encodeRecord));
  let failure: unknown;
  const metrics = createMetrics(
    runtime.telemetry,
    () => registers.all(),
    () => peering.clockAheadMs,
  );
  const onFailed = (error: unknown) => {
    if (failure === undefined) log.error({ err: error }, 'sealing stopped');
    failure ??= error;
  };
  const { signer, transport, version, verifier, bounds, validatorId: self } = options;
  const peering: Peering = new Peering({
    self,
    version,
    transport,
    verifier,
    clock,
    scheduler,
    serials,
    ledger,
    log,
    metrics,
    append,
    verify: (items) => options.verify(items),
    registers: () => registers,
    admission: () => admission,
  });
  const peers = peering;
  const networkId = runtime.installation;
  const shared = { self, networkId, signer, ledger, peers, verifier, bounds, scheduler, serials, clock, log };
  const consensus = options.world?.consensus;
  const readHeld = (registerId: string, from: number) =>
    readLog(
      (take) => journal.replay((entry, segment) => take(decodeRecord(entry), segment)),
      registerId,
      from,
    );
  const registers: Registers = new Registers({
    ...shared,
    consensus,
    metrics,
    append,
    onFailed,
    readHeld,
  });
  const assertWorking = () => {
    const broken = journal.failure ?? failure;
    if (broken === undefined) return;
    throw new AppError('unavailable', 'SEALING_STOPPED', 'This validator has stopped sealing', {
      cause: broken,
      retryAfterSeconds: 5,
    });
  };
  const admission: Admission = new Admission({
    assertWorking,
    clock,
    ledger,
    serials,
    verify: (items) => options.verify(items),
    append,
    soon: (act) => scheduler.soon(act),
    accepted: (registerId, transactions) => peering.hint(registerId, transactions),
    systemKey: () => options.systemKey(),
    findRegister: (registerId) => registers.find(registerId),
    beginRegister: (registerId, genesis) => registers.begin(registerId, genesis),
    subscriptions: createSubscriptionCheck(ledger, clock),
    judged: (outcome) => metrics.judged(outcome),
  });
  return { registers, admission, peering, scheduler, append, assertWorking };
}

/** What must outlive a segment of the log, on its way into another one. */
function carried(
  registers: Registers,
  peering: Peering,
  { segment, into }: { segment: number; into: number },
) {
  return [...registers.all()].flatMap((register) => {
    const evidence = peering.evidence(register.id).map((known) => {
      return { kind: 'evidence' as const, value: { registerId: register.id, evidence: known.evidence } };
    });
    return [...register.carry(segment, into), ...evidence].map(encodeRecord);
  });
}

/** Registers of the directory and of the log. An unreachable register service is waited for, anything else is fatal. */
async function restoreAll(
  registers: Registers,
  recovery: Recovery,
  ledger: Ledger,
  rest: () => Promise<void>,
): Promise<void> {
  const members = await untilAnswered(() => ledger.listMemberRegisters(), rest);
  for (const registerId of new Set([...members, ...recovery.registers.keys()])) {
    await untilAnswered(() => registers.restore(registerId, recovery.registers.get(registerId)), rest);
  }
}

async function untilAnswered<T>(ask: () => Promise<T>, rest: () => Promise<void>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isAppError(error, 'unavailable') && !isAppError(error, 'timeout')) throw error;
      await rest();
    }
  }
}

function pause(scheduler: Scheduler, ms: number): Promise<void> {
  return new Promise((resolve) => scheduler.set('restore', ms, resolve));
}

/** Expired and ruled-out transactions become tombstones; a minute's grace lets a docket that holds one be decided first. */
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
    dropped.push(...register.ruleOut());
    if (dropped.length > 0) await append(...dropped.map((value) => ({ kind: 'tombstone' as const, value })));
  }
}
