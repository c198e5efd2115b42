import { createLogger, type Logger } from '#kit/log/log.ts';
import { createTelemetry } from '#kit/telemetry/telemetry.ts';
import type { Random } from '#kit/testing/random.ts';
import type { Consensus } from '../../chain/consensus/bft1.ts';
import type { Machine } from '../../chain/consensus/machine-state.ts';
import type { HeightRules } from '../../chain/consensus/members.ts';
import type { Effect, Message } from '../../chain/consensus/messages.ts';
import { type Engine, openEngine } from '../../engine.ts';
import type { KeyEvent } from '../../intake/lookup/key-loader.ts';
import type { KeyFilterMode } from '../../intake/lookup/sealed-lookup.ts';
import type { Transport } from '../../network/transport/transport.ts';
import { testBounds, testKeyFilters } from '../bounds.ts';
import type { TestKey } from '../keys.ts';
import type { Byzantine } from './byzantine.ts';
import type { Disk } from './disk.ts';
import type { EventQueue, ProcessHandle } from './event-queue.ts';
import { simulatedVerifier } from './keys.ts';
import type { Network } from './network.ts';
import { observed } from './observe.ts';
import type { RegisterService } from './register-service.ts';
import type { Signing } from './signing.ts';
import type { Trace } from './trace.ts';

/** The environment of a simulated validator. */
export interface MemberEnvironment {
  readonly eventQueue: EventQueue;
  readonly random: Random;
  readonly trace: Trace;
  readonly log: Logger;
  readonly signing: Signing;
  readonly service: RegisterService;
  readonly network: Network;
  readonly installation: string;
  readonly systemKey: string;
  readonly consensus: Consensus;
  readonly areKeysGated: boolean;
  readonly keyFilters: KeyFilterMode;
  onKeys(member: Member, event: KeyEvent | 'disagreement'): void;
  newDisk(): Disk;
  /** Makes a member Byzantine; undefined for correct ones. */
  corrupt(member: Member): Byzantine | undefined;
  /** A process of the member is about to die. */
  onEnd(member: Member): void;
  onStartFailed(member: Member, process: Process, error: unknown): void;
  onBegun(member: Member, registerId: string, rules: HeightRules): void;
  onReleased(member: Member, registerId: string, message: Message): void;
  onEffect(
    process: ProcessHandle,
    at: { member: Member; registerId: string; machine: Machine },
    effect: Effect,
  ): void;
}

/** One process of a member. Two processes of one member run at once when a copy of its volume was started elsewhere. */
export interface Process {
  readonly handle: ProcessHandle;
  readonly disk: Disk;
  engine: Engine | undefined;
  isFenced: boolean;
  /** Registers that it halted, by id. */
  readonly halted: Set<string>;
  /** Height up to which its states were compared, by register. */
  readonly checked: Map<string, number>;
}

/** One validator identity: its key, its volume, and its processes. */
export class Member {
  readonly id: string;
  readonly key: TestKey;
  disk: Disk;
  /** The offset of its clock. */
  skewMs = 0;
  #processes: Process[] = [];
  #starts = 0;
  readonly #environment: MemberEnvironment;

  constructor(id: string, key: TestKey, environment: MemberEnvironment) {
    this.id = id;
    this.key = key;
    this.#environment = environment;
    this.disk = environment.newDisk();
  }

  /** Live processes. */
  get processes(): readonly Process[] {
    return this.#processes;
  }

  /** The newest process, once it has started. */
  get engine(): Engine | undefined {
    return this.#processes.at(-1)?.engine;
  }

  /** Starts a process on a volume. */
  start(disk: Disk = this.disk): void {
    this.#starts += 1;
    const handle: ProcessHandle = {
      name: this.#starts === 1 ? this.id : `${this.id}#${this.#starts}`,
      alive: true,
    };
    const process: Process = {
      handle,
      disk,
      engine: undefined,
      isFenced: false,
      halted: new Set(),
      checked: new Map(),
    };
    this.disk = disk;
    this.#processes.push(process);
    this.#environment.trace.add(handle.name, 'starts');
    const wire = this.#environment.network.transport(this.id, handle);
    const byzantine = this.#environment.corrupt(this);
    this.#open(process, byzantine?.transport(wire) ?? wire).then(
      (engine) => {
        process.engine = engine;
        this.#environment.trace.add(handle.name, 'works');
        const { peering } = engine;
        this.#environment.network.join(this.id, handle, byzantine?.inbox(peering, wire) ?? peering);
      },
      (error: unknown) => this.#environment.onStartFailed(this, process, error),
    );
  }

  /** Kills the oldest process between two events; a power loss may lose unforced writes. */
  crash(losesPower: boolean): void {
    this.#environment.onEnd(this);
    const [process] = this.#processes.splice(0, 1);
    if (process === undefined) return;
    process.handle.alive = false;
    this.#environment.trace.add(process.handle.name, losesPower ? 'loses power' : 'is killed');
    if (losesPower) process.disk.losePower(this.#environment.random);
  }

  #open({ handle, disk }: Process, transport: Transport): Promise<Engine> {
    const { eventQueue, signing, service, installation } = this.#environment;
    const clock = eventQueue.clock(() => this.skewMs);
    const verifier = simulatedVerifier();
    const log = this.#environment.log.child({ process: handle.name });
    return openEngine({
      runtime: {
        service: 'validator',
        installation,
        log,
        clock,
        telemetry: createTelemetry({ service: 'validator' }),
      },
      validatorId: this.id,
      directory: 'volume',
      bounds: testBounds,
      keyFilters: { ...testKeyFilters, mode: this.#environment.keyFilters },
      segmentBytes: 32 * 1024,
      retainBytes: 256 * 1024,
      signer: signing.open(this.id, handle),
      ledger: service.endpoint(handle),
      transport,
      version: '0.1.0',
      verifier,
      verify: async (items) => items.map((item) => verifier.verifyDigest(item)),
      systemKey: async () => this.#environment.systemKey,
      environment: {
        storage: disk.storage(eventQueue, handle),
        timers: eventQueue.timers(handle),
        areKeysGated: this.#environment.areKeysGated,
        onKeys: (event) => this.#environment.onKeys(this, event),
        consensus: (registerId) =>
          observed(this.#environment.consensus, {
            begins: (rules) => this.#environment.onBegun(this, registerId, rules),
            released: (message) => this.#environment.onReleased(this, registerId, message),
            did: (effect, machine) =>
              this.#environment.onEffect(handle, { member: this, registerId, machine }, effect),
          }),
      },
    });
  }
}

interface LogLine {
  readonly process: string;
  readonly level: string;
  readonly msg: string;
  readonly err?: { readonly message?: string; readonly code?: string };
  readonly violations?: readonly { readonly code: string; readonly field?: string }[];
  readonly refusals?: readonly string[];
}

/** One log for all processes of a world; each line names its process. */
export function tracingLog(trace: Trace): Logger {
  return createLogger({
    service: 'validator',
    level: 'warn',
    destination: {
      write: (text) => {
        const { process, level, msg, err, violations = [], refusals = [] }: LogLine = JSON.parse(text);
        const why = [...violations.map(({ code, field }) => ` ${code} ${field ?? ''}`), ...refusals].join();
        const cause = err === undefined ? '' : ` (${err.code ?? ''} ${err.message ?? ''})`;
        trace.add(process, `${level}: ${msg}${why}${cause}`);
      },
    },
  });
}
