import { AppError, isAppError } from '#core/errors/errors.ts';
import { createRandom, type Random } from '#kit/testing/random.ts';
import { bft1, type Consensus } from '../../chain/consensus/bft1.ts';
import type { Machine } from '../../chain/consensus/machine-state.ts';
import type { Effect } from '../../chain/consensus/messages.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import type { KeyEvent } from '../../intake/lookup/key-loader.ts';
import type { KeyFilterMode } from '../../intake/lookup/sealed-lookup.ts';
import { type FakeLedger, fakeLedger } from '../fake-ledger.ts';
import { genesisSubmission } from '../submissions.ts';
import { Byzantine } from './byzantine.ts';
import { Chain } from './chain.ts';
import { Coverage, type CoverageItem } from './coverage.ts';
import { Disk } from './disk.ts';
import { EventQueue, type ProcessHandle } from './event-queue.ts';
import { FaultModel } from './fault-model.ts';
import { simulatedKey, simulatedVerifier } from './keys.ts';
import { Member, type MemberEnvironment, type Process, tracingLog } from './member.ts';
import { Network } from './network.ts';
import { RegisterService } from './register-service.ts';
import type { ByzantineBehaviour, Scenario } from './scenario.ts';
import { Signing } from './signing.ts';
import { Trace } from './trace.ts';
import { type InvariantViolation, ViolationRecorder } from './violations.ts';
import { type ClientEndpoint, Workload } from './workload.ts';

/** Protections that a run removes, to show that the simulator detects it. */
export interface Weakness {
  /** A disk that acknowledges a force without performing it. */
  readonly disk?: 'forgets';
  /** Keys of registers answer although they lack dockets. */
  readonly keys?: 'ungated';
  /** Replaces what the seed draws. */
  readonly keyFilters?: KeyFilterMode;
  /** A signing component that signs any request, or that repeats positions of a batch without a comparison of the bytes. */
  readonly signer?: 'unguarded' | 'confused';
  readonly consensus?: Consensus | undefined;
}

const keyCoverage: Readonly<Partial<Record<KeyEvent | 'disagreement', CoverageItem>>> = {
  complete: 'keys loaded',
  stale: 'stale snapshot of keys refused',
  divergent: 'snapshot of keys of another chain refused',
  failed: 'snapshot of keys lost or malformed',
  discarded: 'keys dropped while they were loaded',
};

const installation = 'simulated.chancery.local';
const startMs = Date.UTC(2026, 0, 1);

/** A world of simulated validators and their registers, entirely determined by its seed. */
export class World {
  readonly random: Random;
  readonly eventQueue = new EventQueue(startMs);
  readonly trace = new Trace(this.eventQueue);
  readonly violations = new ViolationRecorder(this.trace);
  readonly faultModel = new FaultModel();
  readonly coverage = new Coverage();
  readonly members: readonly Member[];
  readonly chains: readonly Chain[];
  readonly network: Network;
  readonly service: RegisterService;
  readonly signing: Signing;
  /** Called for every signature before it is released. */
  onSigned: ((validatorId: string) => void) | undefined;
  readonly #scenario: Scenario;

  constructor(scenario: Scenario, weakness: Weakness = {}) {
    const { seed, size, reserve } = scenario;
    const random = createRandom(seed);
    this.random = random;
    this.#scenario = scenario;
    this.eventQueue.onThrown = (error, handle) => this.#onThrown(error, handle?.name ?? 'the world');
    this.network = new Network(this.eventQueue, random.fork('network'));
    const ledgers = scenario.registers.map((_, place) => {
      return [registerIdOf(place), fakeLedger(installation, simulatedVerifier())] as const;
    });
    this.service = new RegisterService(new Map(ledgers), this.eventQueue, random.fork('service'));
    this.signing = new Signing({
      eventQueue: this.eventQueue,
      random: random.fork('signing'),
      unguarded: weakness.signer === 'unguarded',
      confused: weakness.signer === 'confused',
      onBatch: ({ messages }) =>
        this.coverage.add(
          messages.length === 3 ? 'height signed in one request' : 'proposal signed with a vote',
        ),
      onRefused: (code) =>
        this.coverage.add(code === 'SIGNER_FENCED' ? 'member fenced off' : 'vote refused by the guard'),
      onSigned: (validatorId, message, bytes) => {
        this.chain(message.registerId).signed(validatorId, message, bytes);
        this.onSigned?.(validatorId);
      },
    });
    const environment = this.#environmentOf(weakness);
    const ids = Array.from({ length: size + reserve }, (_, place) => `validator-${place}`);
    this.members = ids.map((id, place) => new Member(id, simulatedKey(20 + place), environment));
    this.chains = ledgers.map(([registerId, ledger], place) => this.#chain(registerId, ledger, place));
  }

  get broken(): InvariantViolation | undefined {
    return this.violations.broken;
  }

  /** Throws RangeError for a register that is not in this world. */
  chain(registerId: string): Chain {
    const found = this.chains.find((chain) => chain.registerId === registerId);
    if (found === undefined) throw new RangeError(`${registerId} is not a register of this world`);
    return found;
  }

  /** Starts the members and submits the genesis of each register to them. */
  begin(): void {
    const { policy, byzantine } = this.#scenario;
    for (const place of byzantine.keys()) this.faultModel.markFaulty(`validator-${place}`, true);
    for (const { id, key } of this.members) this.signing.add(id, key, !this.faultModel.isByzantine(id));
    for (const member of this.members) member.start();
    for (const { registerId, first, workload } of this.chains) {
      this.coverage.addSet(first.length);
      const named = this.members.filter(({ id }) => first.includes(id));
      const genesis = genesisSubmission({
        registerId,
        owner: simulatedKey(1),
        system: simulatedKey(9),
        validators: named.map(({ id, key }) => ({ validatorId: id, key })),
        createdAtMs: startMs,
        policy,
      });
      for (const { id } of named) workload.begin(id, genesis);
    }
    if (this.chains.length > 1) this.coverage.add('several registers');
  }

  /** Everything is sealed, and every correct member knows it. */
  get isSettled(): boolean {
    return this.chains.every((chain) => chain.isSettled);
  }

  /** An unhandled rejection would end the process of a validator. */
  onUnhandled(error: unknown): void {
    this.#onThrown(error, 'unknown');
  }

  /** Checks that are possible only at the end. */
  judgeEnd(): void {
    for (const chain of this.chains) chain.judgeEnd();
  }

  /** Runs until that time, until an invariant is broken, or until `enough` returns true. */
  run(untilMs: number, enough: () => boolean = () => false): Promise<void> {
    return this.eventQueue.run(untilMs, (handle) => {
      this.#check(handle);
      return this.broken !== undefined || enough();
    });
  }

  #chain(registerId: string, ledger: ReturnType<typeof fakeLedger>, place: number): Chain {
    const { eventQueue, trace, faultModel, violations, coverage, members } = this;
    const { registers } = this.#scenario;
    const label = registers.length > 1 ? `r${place}:` : '';
    const chain: Chain = new Chain({
      registerId,
      label,
      first: (registers[place]?.members ?? []).map((each) => `validator-${each}`),
      members,
      ledger,
      faultModel,
      violations,
      trace,
      coverage,
      workload: new Workload({
        eventQueue,
        random: this.random.fork(`workload/${place}`),
        trace,
        registerId,
        label,
        keys: [simulatedKey(2), simulatedKey(3), simulatedKey(4)],
        startMs,
        reachable: () => this.#reachable(chain),
        isTrusted: (validatorId) => !faultModel.isFaulty(validatorId),
      }),
    });
    return chain;
  }

  #environmentOf(weakness: Weakness): MemberEnvironment {
    const disks = this.random.fork('disks');
    const { eventQueue, trace, signing, service, network } = this;
    return {
      eventQueue,
      random: this.random.fork('members'),
      trace,
      log: tracingLog(trace),
      signing,
      service,
      network,
      installation,
      systemKey: `ED25519:${simulatedKey(9).publicKey}`,
      consensus: weakness.consensus ?? bft1(),
      areKeysGated: weakness.keys !== 'ungated',
      keyFilters: this.#scenario.keyFilters,
      onKeys: (member, event) => this.#onKeys(member, event),
      newDisk: () =>
        new Disk({
          forceMs: () => (disks.chance(0.02) ? disks.between(20, 200) : disks.between(0.3, 4)),
          forgets: weakness.disk === 'forgets',
        }),
      corrupt: (member) => this.#corrupt(member),
      onEnd: ({ engine }) => {
        for (const register of engine?.registers.all() ?? []) this.chain(register.id).recordDropped(register);
      },
      onStartFailed: (member, process, error) => this.#onStartFailed(member, process, error),
      onBegun: ({ id }, registerId, { height, members }) => {
        if (!this.faultModel.isFaultyAt(id, registerId, height))
          this.chain(registerId).begins(height, members);
      },
      onReleased: ({ id }, registerId, message) => this.chain(registerId).released(id, message),
      onEffect: (handle, at, effect) => this.#onEffect(handle, at, effect),
    };
  }

  #onKeys({ id }: Member, event: KeyEvent | 'disagreement'): void {
    if (event === 'disagreement' && !this.faultModel.isFaulty(id))
      this.violations.break('keys never call a known transaction new', `${id} holds incomplete keys`);
    const item = keyCoverage[event];
    if (item !== undefined) this.coverage.add(item);
  }

  #corrupt(member: Member): Byzantine | undefined {
    const behaviours = this.#scenario.byzantine.get(this.members.indexOf(member));
    if (behaviours === undefined) return undefined;
    return new Byzantine({
      validatorId: member.id,
      behaviours,
      members: this.members.map(({ id }) => id),
      eventQueue: this.eventQueue,
      random: this.random.fork(`byzantine/${member.id}`),
      signing: this.signing,
      state: (registerId) => member.engine?.registers.get(registerId)?.state,
      did: (behaviour) => this.#onMisdeed(behaviour),
    });
  }

  #onMisdeed(behaviour: ByzantineBehaviour): void {
    const { coverage } = this;
    coverage.add(`Byzantine member ${behaviour}`);
    if (behaviour === 'withholds records' && this.network.isPartitioned)
      coverage.add('records withheld in a partition');
    if (behaviour === 'stamps wrongly' && this.#scenario.faults.wrongClocks)
      coverage.add('wrong stamps beside honest skew');
  }

  /** Processes that clients of a register know: those of current and former members. */
  #reachable(chain: Chain): ClientEndpoint[] {
    return this.members.flatMap(({ id, processes }) => {
      const process = processes.at(-1);
      return process?.engine === undefined || !chain.wasMember(id)
        ? []
        : [{ validatorId: id, handle: process.handle, engine: process.engine }];
    });
  }

  #onEffect(
    handle: ProcessHandle,
    at: { member: Member; registerId: string; machine: Machine },
    effect: Effect,
  ): void {
    const chain = this.chain(at.registerId);
    const { id } = at.member;
    if (effect.kind === 'decide' && !this.faultModel.isByzantine(id)) chain.decided(id, handle.name, effect);
    else if (effect.kind === 'evidence') {
      const { kind, first } = effect.evidence;
      chain.invariants.accused(id, kind, first.validatorId);
    } else if (effect.kind === 'schedule' && effect.step === 'propose') {
      this.trace.add(handle.name, `round ${chain.label}${at.machine.rules.height}/${effect.round}`);
    }
  }

  #onStartFailed(member: Member, process: Process, error: unknown): void {
    if (isFenced(error)) this.#fenced(process);
    else if (!this.faultModel.isFaulty(member.id)) {
      const text = `${process.handle.name} cannot start: ${textOf(error)}`;
      this.violations.break('honest members keep working', text);
    }
  }

  #onThrown(error: unknown, processName: string): void {
    this.violations.break('honest members keep working', `${processName} throws: ${textOf(error)}`);
  }

  /** Without the dockets that the store lost, a member correctly halts until they are stored again and its operator restarts it. */
  #halted(member: Member, process: Process, { id, facts }: RegisterChain): void {
    const { handle, halted } = process;
    const reason = facts.haltedBecause ?? '';
    if (!this.#scenario.faults.oldStore || !reason.includes('lost dockets')) {
      this.violations.break('honest members keep working', `${handle.name} halted: ${reason}`);
      return;
    }
    if (halted.has(id)) return;
    halted.add(id);
    this.trace.add(handle.name, `halts: ${reason}`);
    this.#startAgainOnceStored(member, handle, this.chain(id).ledger);
  }

  /** The operator restarts a halted register's process once the store has the dockets back. */
  #startAgainOnceStored(member: Member, handle: ProcessHandle, { dockets }: FakeLedger): void {
    const { length } = dockets;
    const look = () =>
      this.eventQueue.after(5000, () => {
        if (handle.alive && dockets.length <= length) look();
        if (!handle.alive || dockets.length <= length) return;
        member.crash(false);
        member.start();
      });
    look();
  }

  #fenced(process: Process): void {
    if (process.isFenced) return;
    this.trace.add(process.handle.name, 'is fenced');
    process.isFenced = true;
  }

  /** After every event: checks what it may have affected. */
  #check(handle: ProcessHandle | undefined): void {
    for (const chain of this.chains) chain.checkStore();
    for (const member of this.members) {
      for (const process of member.processes) {
        if (handle === undefined || handle === process.handle) this.#checkProcess(member, process);
      }
    }
  }

  #checkProcess(member: Member, process: Process): void {
    const { engine, handle } = process;
    if (engine === undefined || !handle.alive || process.isFenced || this.faultModel.isFaulty(member.id))
      return;
    try {
      engine.assertWorking();
    } catch (error) {
      const { cause } = error instanceof AppError ? error : { cause: error };
      if (isFenced(cause)) this.#fenced(process);
      else this.violations.break('honest members keep working', `${handle.name} stopped: ${textOf(cause)}`);
      return;
    }
    for (const register of engine.registers.all()) {
      if (register.status === 'Halted') this.#halted(member, process, register);
      this.chain(register.id).checkProcess(member, process, register);
    }
  }
}

/** The id of a register by its index in the scenario. */
function registerIdOf(place: number): string {
  return `${place}123456789abcdef0123456789abcdef`;
}

function isFenced(error: unknown): boolean {
  return isAppError(error) && error.code === 'SIGNER_FENCED';
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
