import { AppError, isAppError } from '#core/errors/errors.ts';
import { createRandom, type Random } from '#kit/testing/random.ts';
import { bft1, type Consensus } from '../consensus/bft1.ts';
import type { Machine } from '../consensus/machine.ts';
import type { Effect } from '../consensus/messages.ts';
import type { Register } from '../sealing/register-chain.ts';
import { type FakeLedger, fakeLedger } from '../testing/fake-ledger.ts';
import { genesisSubmission } from '../testing/submissions.ts';
import { Byzantine } from './byzantine.ts';
import { Chain } from './chain.ts';
import { Coverage } from './coverage.ts';
import { Disk } from './disk.ts';
import { Agenda, type Life } from './event-queue.ts';
import { Trust } from './fault-model.ts';
import { simulatedKey, simulatedVerifier } from './keys.ts';
import { Member, type Process, type Surroundings, tracingLog } from './member.ts';
import { Network } from './network.ts';
import { RegisterService } from './register-service.ts';
import type { Misdeed, Scenario } from './scenario.ts';
import { Signing } from './signing.ts';
import { Trace } from './trace.ts';
import { type Broken, Verdict } from './violations.ts';
import { type Door, Workload } from './workload.ts';

/** Protections that a run removes, to show that the simulator detects it. */
export interface Weakness {
  /** A disk that acknowledges a force without performing it. */
  readonly disk?: 'forgets';
  /** A signing component that signs any request. */
  readonly signer?: 'unguarded';
  readonly consensus?: Consensus | undefined;
}

const installation = 'simulated.chancery.local';
const startMs = Date.UTC(2026, 0, 1);

/** A world of simulated validators and their registers, entirely determined by its seed. */
export class World {
  readonly random: Random;
  readonly agenda = new Agenda(startMs);
  readonly trace = new Trace(this.agenda);
  readonly verdict = new Verdict(this.trace);
  readonly trust = new Trust();
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
    this.agenda.onThrown = (error, life) => this.#onThrown(error, life?.name ?? 'the world');
    this.network = new Network(this.agenda, random.fork('network'));
    const ledgers = scenario.registers.map((_, place) => {
      return [registerIdOf(place), fakeLedger(installation, simulatedVerifier())] as const;
    });
    this.service = new RegisterService(new Map(ledgers), this.agenda, random.fork('service'));
    this.signing = new Signing({
      agenda: this.agenda,
      random: random.fork('signing'),
      unguarded: weakness.signer === 'unguarded',
      onRefused: (code) =>
        this.coverage.add(code === 'SIGNER_FENCED' ? 'member fenced off' : 'vote refused by the guard'),
      onSigned: (validatorId, message, bytes) => {
        this.chain(message.registerId).signed(validatorId, message, bytes);
        this.onSigned?.(validatorId);
      },
    });
    const around = this.#around(weakness);
    const ids = Array.from({ length: size + reserve }, (_, place) => `validator-${place}`);
    this.members = ids.map((id, place) => new Member(id, simulatedKey(20 + place), around));
    this.chains = ledgers.map(([registerId, ledger], place) => this.#chain(registerId, ledger, place));
  }

  get broken(): Broken | undefined {
    return this.verdict.broken;
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
    for (const place of byzantine.keys()) this.trust.distrust(`validator-${place}`, true);
    for (const { id, key } of this.members) this.signing.add(id, key, !this.trust.isByzantine(id));
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
    this.#onThrown(error, 'somebody');
  }

  /** Checks that are possible only at the end. */
  judgeEnd(): void {
    for (const chain of this.chains) chain.judgeEnd();
  }

  /** Runs until that time, until an invariant is broken, or until `enough` returns true. */
  run(untilMs: number, enough: () => boolean = () => false): Promise<void> {
    return this.agenda.run(untilMs, (life) => {
      this.#check(life);
      return this.broken !== undefined || enough();
    });
  }

  #chain(registerId: string, ledger: ReturnType<typeof fakeLedger>, place: number): Chain {
    const { agenda, trace, trust, verdict, coverage, members } = this;
    const { registers } = this.#scenario;
    const label = registers.length > 1 ? `r${place}:` : '';
    const chain: Chain = new Chain({
      registerId,
      label,
      first: (registers[place]?.members ?? []).map((each) => `validator-${each}`),
      members,
      ledger,
      trust,
      verdict,
      trace,
      coverage,
      workload: new Workload({
        agenda,
        random: this.random.fork(`workload/${place}`),
        trace,
        registerId,
        label,
        keys: [simulatedKey(2), simulatedKey(3), simulatedKey(4)],
        startMs,
        reachable: () => this.#reachable(chain),
        isTrusted: (validatorId) => !trust.isFaulty(validatorId),
      }),
    });
    return chain;
  }

  #around(weakness: Weakness): Surroundings {
    const disks = this.random.fork('disks');
    const { agenda, trace, signing, service, network } = this;
    return {
      agenda,
      random: this.random.fork('members'),
      trace,
      log: tracingLog(trace),
      signing,
      service,
      network,
      installation,
      systemKey: `ED25519:${simulatedKey(9).publicKey}`,
      consensus: weakness.consensus ?? bft1(),
      newDisk: () =>
        new Disk({
          forceMs: () => (disks.chance(0.02) ? disks.between(20, 200) : disks.between(0.3, 4)),
          forgets: weakness.disk === 'forgets',
        }),
      corrupt: (member) => this.#corrupt(member),
      onEnd: ({ engine }) => {
        for (const register of engine?.registers.all() ?? []) this.chain(register.id).noteGivenUp(register);
      },
      onStartFailed: (member, process, error) => this.#onStartFailed(member, process, error),
      onBegun: ({ id }, registerId, { height, members }) => {
        if (!this.trust.liesAt(id, registerId, height)) this.chain(registerId).begins(height, members);
      },
      onReleased: ({ id }, registerId, message) => this.chain(registerId).released(id, message),
      onEffect: (life, at, effect) => this.#onEffect(life, at, effect),
    };
  }

  #corrupt(member: Member): Byzantine | undefined {
    const misdeeds = this.#scenario.byzantine.get(this.members.indexOf(member));
    if (misdeeds === undefined) return undefined;
    return new Byzantine({
      validatorId: member.id,
      misdeeds,
      members: this.members.map(({ id }) => id),
      agenda: this.agenda,
      random: this.random.fork(`byzantine/${member.id}`),
      signing: this.signing,
      state: (registerId) => member.engine?.registers.get(registerId)?.state,
      did: (misdeed) => this.#onMisdeed(misdeed),
    });
  }

  #onMisdeed(misdeed: Misdeed): void {
    const { coverage } = this;
    coverage.add(`Byzantine member ${misdeed}`);
    if (misdeed === 'withholds records' && this.network.isPartitioned)
      coverage.add('records withheld in a partition');
    if (misdeed === 'stamps wrongly' && this.#scenario.faults.wrongClocks)
      coverage.add('wrong stamps beside honest skew');
  }

  /** Processes that clients of a register know: those of current and former members. */
  #reachable(chain: Chain): Door[] {
    return this.members.flatMap(({ id, processes }) => {
      const process = processes.at(-1);
      return process?.engine === undefined || !chain.wasMember(id)
        ? []
        : [{ validatorId: id, life: process.life, engine: process.engine }];
    });
  }

  #onEffect(life: Life, at: { member: Member; registerId: string; machine: Machine }, effect: Effect): void {
    const chain = this.chain(at.registerId);
    const { id } = at.member;
    if (effect.kind === 'decide' && !this.trust.isByzantine(id)) chain.decided(id, life.name, effect);
    else if (effect.kind === 'evidence') {
      const { kind, first } = effect.evidence;
      chain.invariants.accused(id, kind, first.validatorId);
    } else if (effect.kind === 'schedule' && effect.step === 'propose') {
      this.trace.add(life.name, `round ${chain.label}${at.machine.rules.height}/${effect.round}`);
    }
  }

  #onStartFailed(member: Member, process: Process, error: unknown): void {
    if (isFenced(error)) this.#fenced(process);
    else if (!this.trust.isFaulty(member.id)) {
      const text = `${process.life.name} cannot start: ${textOf(error)}`;
      this.verdict.break('honest members keep working', text);
    }
  }

  #onThrown(error: unknown, who: string): void {
    this.verdict.break('honest members keep working', `${who} throws: ${textOf(error)}`);
  }

  /** Without the dockets that the store lost, a member correctly halts until they are stored again and its operator restarts it. */
  #halted(member: Member, process: Process, { id, facts }: Register): void {
    const { life, halted } = process;
    const reason = facts.haltedBecause ?? '';
    if (!this.#scenario.faults.oldStore || !reason.includes('lost dockets')) {
      this.verdict.break('honest members keep working', `${life.name} halted: ${reason}`);
      return;
    }
    if (halted.has(id)) return;
    halted.add(id);
    this.trace.add(life.name, `halts: ${reason}`);
    this.#startAgainOnceStored(member, life, this.chain(id).ledger);
  }

  /** The operator restarts a halted register's process once the store has the dockets back. */
  #startAgainOnceStored(member: Member, life: Life, { dockets }: FakeLedger): void {
    const { length } = dockets;
    const look = () =>
      this.agenda.after(5000, () => {
        if (life.alive && dockets.length <= length) look();
        if (!life.alive || dockets.length <= length) return;
        member.crash(false);
        member.start();
      });
    look();
  }

  #fenced(process: Process): void {
    if (process.isFenced) return;
    this.trace.add(process.life.name, 'is fenced');
    process.isFenced = true;
  }

  /** After every event: checks what it may have affected. */
  #check(life: Life | undefined): void {
    for (const chain of this.chains) chain.checkStore();
    for (const member of this.members) {
      for (const process of member.processes) {
        if (life === undefined || life === process.life) this.#checkProcess(member, process);
      }
    }
  }

  #checkProcess(member: Member, process: Process): void {
    const { engine, life } = process;
    if (engine === undefined || !life.alive || process.isFenced || this.trust.isFaulty(member.id)) return;
    try {
      engine.assertWorking();
    } catch (error) {
      const { cause } = error instanceof AppError ? error : { cause: error };
      if (isFenced(cause)) this.#fenced(process);
      else this.verdict.break('honest members keep working', `${life.name} stopped: ${textOf(cause)}`);
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
