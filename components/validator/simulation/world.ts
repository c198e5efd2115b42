import { AppError, isAppError } from '#core/errors/errors.ts';
import { quorum } from '#core/ledger/consensus.ts';
import { bft1, type Consensus } from '../consensus/bft1.ts';
import type { Machine } from '../consensus/machine.ts';
import type { Effect, Evidence, Message } from '../consensus/messages.ts';
import { identity } from '../sealing/sign-bytes.ts';
import type { RegisterState } from '../sealing/state.ts';
import { fakeLedger } from '../testing/fake-ledger.ts';
import { genesisSubmission } from '../testing/submissions.ts';
import { Agenda, type Life } from './agenda.ts';
import { Byzantine } from './byzantine.ts';
import { digestOf } from './digest.ts';
import { Disk } from './disk.ts';
import { type Broken, Invariants } from './invariants.ts';
import { simulatedKey, simulatedVerifier } from './keys.ts';
import { Member, type Process, type Surroundings } from './member.ts';
import { Network } from './network.ts';
import { createRandom, type Random } from './random.ts';
import { RegisterService } from './register-service.ts';
import type { Scenario } from './scenario.ts';
import { Signing } from './signing.ts';
import { short, Trace } from './trace.ts';
import { type Door, Workload } from './workload.ts';

/** Parts of the validator that a run leaves out, to show that the simulator notices. */
export interface Weakness {
  /** A disk that says it has forced and has not. */
  readonly disk?: 'forgets';
  /** A signing component that signs whatever it is asked. */
  readonly signer?: 'unguarded';
  readonly consensus?: Consensus | undefined;
}

const installation = 'simulated.chancery.local';
const registerId = '0123456789abcdef0123456789abcdef';
const startMs = Date.UTC(2026, 0, 1);

/** A world of simulated validators around one register; everything in it follows from its seed. */
export class World {
  readonly random: Random;
  readonly agenda = new Agenda(startMs);
  readonly trace = new Trace(this.agenda);
  readonly members: readonly Member[];
  readonly invariants: Invariants;
  readonly network: Network;
  readonly service: RegisterService;
  readonly signing: Signing;
  readonly workload: Workload;
  #checkedDockets = 0;
  readonly #sealed = new Set<string>();
  readonly #accusations = new Set<string>();
  readonly #membersAt = new Map<number, readonly string[]>();

  /** Told of every signature, before anybody has it. */
  onSigned: ((validatorId: string) => void) | undefined;
  readonly #scenario: Scenario;

  constructor(scenario: Scenario, weakness: Weakness = {}) {
    const { seed, size, reserve } = scenario;
    const random = createRandom(seed);
    this.random = random;
    this.#scenario = scenario;
    this.agenda.onThrown = (error, life) => this.#onThrown(error, life?.name ?? 'the world');
    const ids = Array.from({ length: size + reserve }, (_, index) => `validator-${index}`);
    this.#membersAt.set(0, ids.slice(0, size));
    const quorumAt = (height: number) => quorum(this.membersAt(height).length);
    this.invariants = new Invariants({ quorumAt, trace: this.trace });
    this.network = new Network(this.agenda, random.fork('network'));
    const ledger = fakeLedger(installation, simulatedVerifier());
    this.service = new RegisterService(ledger, this.agenda, random.fork('service'));
    this.signing = new Signing({
      agenda: this.agenda,
      random: random.fork('signing'),
      unguarded: weakness.signer === 'unguarded',
      onSigned: (validatorId, message, bytes) => {
        const value = short(message.docket?.docketHash);
        const kind = ['', 'proposal', 'prevote', 'precommit'][message.type];
        this.trace.add('signer', `${validatorId} ${kind} ${message.height}/${message.round} ${value}`);
        this.invariants.signed(validatorId, message, bytes);
        this.onSigned?.(validatorId);
      },
    });
    const around = this.#around(weakness);
    this.members = ids.map((id, index) => new Member(id, simulatedKey(20 + index), around));
    this.workload = new Workload({
      agenda: this.agenda,
      random: random.fork('workload'),
      trace: this.trace,
      registerId,
      keys: [simulatedKey(2), simulatedKey(3), simulatedKey(4)],
      startMs,
      reachable: () => this.#reachable(),
      isTrusted: (validatorId) => !this.invariants.isFaulty(validatorId),
    });
  }

  get broken(): Broken | undefined {
    return this.invariants.broken;
  }

  /** Starts the members and offers them the genesis of the register. */
  begin(): void {
    const { policy, byzantine, size } = this.#scenario;
    for (const place of byzantine.keys()) this.invariants.distrust(`validator-${place}`, true);
    for (const { id, key } of this.members) this.signing.add(id, key, !this.isByzantine(id));
    const genesis = genesisSubmission({
      registerId,
      owner: simulatedKey(1),
      system: simulatedKey(9),
      validators: this.members.slice(0, size).map(({ id, key }) => ({ validatorId: id, key })),
      createdAtMs: startMs,
      policy,
    });
    for (const [place, member] of this.members.entries()) {
      member.start();
      if (place < size) this.workload.begin(member.id, genesis);
    }
  }

  isByzantine(validatorId: string): boolean {
    return this.invariants.isByzantine(validatorId);
  }

  /** V(height), as far as somebody honest has come to that height. */
  membersAt(height: number): readonly string[] {
    const exact = this.#membersAt.get(height);
    if (exact !== undefined) return exact;
    const known = [...this.#membersAt.keys()].filter((each) => each <= height);
    return this.#membersAt.get(Math.max(...known)) ?? [];
  }

  /** The state of somebody honest, the furthest. */
  get state(): RegisterState | undefined {
    const states = this.members.flatMap(({ id, register }) =>
      register === undefined || this.invariants.isFaulty(id) ? [] : register.state,
    );
    return states.toSorted((a, b) => b.height - a.height)[0];
  }

  /** Whether one more member may fail in any way. */
  get hasSpareTrust(): boolean {
    return this.invariants.faults < Math.floor((this.members.length - 1) / 3);
  }

  /** Nothing is left to do, and every honest member knows it. */
  get isSettled(): boolean {
    if (this.workload.open > 0 || this.unsettled.length > 0) return false;
    const { length } = this.service.ledger.dockets;
    const current = this.membersAt(length);
    return this.members.every((member) => {
      if (this.invariants.isFaulty(member.id) || !current.includes(member.id)) return true;
      const { register } = member;
      return (
        register !== undefined && register.state.height === length && register.facts.storedHeight === length
      );
    });
  }

  /** A promise was rejected and nobody took notice: the process of a validator ends by that. */
  onUnhandled(error: unknown): void {
    this.#onThrown(error, 'somebody');
  }

  /** What can be said only when time is up. */
  judgeEnd(): void {
    const { dockets } = this.service.ledger;
    const { decidedHeight } = this.invariants;
    if (dockets.length < decidedHeight) {
      this.invariants.break(
        'nothing sealed is lost',
        `${decidedHeight} dockets were decided, ${dockets.length} stored`,
      );
    }
    if (this.isSettled) return;
    const lost = this.unsettled.filter((txId) => !this.#isHeld(txId));
    if (lost.length > 0) {
      this.invariants.break('nothing accepted is lost', `nobody has ${lost.map(short).join(' ')}`);
    }
    const heights = this.members.map(({ id, register }) => `${id} ${JSON.stringify(register?.facts)}`);
    const waiting = this.unsettled.map(short).join(' ');
    const text = `${dockets.length} dockets stored, ${this.workload.open} submissions open, waiting: ${waiting}`;
    this.invariants.break('progress after healing', [text, ...heights].join('\n'));
  }

  /** The register service's database is restored from an older state. */
  restoreStore(height: number): void {
    const { ledger } = this.service;
    this.trace.add('WORLD', `the store goes back from ${ledger.dockets.length} to ${height} dockets`);
    void ledger.restoreTo(height);
    this.#checkedDockets = height;
    this.#sealed.clear();
    for (const { docket } of ledger.dockets.slice(0, height)) {
      for (const txId of docket.header.transactionIds) this.#sealed.add(txId);
    }
  }

  #isHeld(txId: string): boolean {
    return this.members.some(
      ({ id, register }) => !this.isByzantine(id) && register?.pool.find(txId) !== undefined,
    );
  }

  /** Goes on until that instant, or until something is broken, or until `enough`. */
  run(untilMs: number, enough: () => boolean = () => false): Promise<void> {
    return this.agenda.run(untilMs, () => {
      this.#check();
      return this.broken !== undefined || enough();
    });
  }

  /** What was accepted and is neither sealed nor honestly given up. */
  get unsettled(): string[] {
    const { sealed } = this.service.ledger;
    return [...this.workload.accepted.values()].flatMap(({ txId, by }) => {
      // What only a member had that lost its volume may be gone with it; one that left the set still gives it to the others.
      if (sealed.has(txId) || [...by].every((id) => this.invariants.isFaulty(id))) return [];
      return this.members.some((member) => member.register?.tombstones.find(txId) !== undefined) ? [] : txId;
    });
  }

  #around(weakness: Weakness): Surroundings {
    const disks = this.random.fork('disks');
    const { agenda, trace, signing, service, network } = this;
    return {
      agenda,
      random: this.random.fork('members'),
      trace,
      signing,
      service,
      network,
      installation,
      registerId,
      systemKey: `ED25519:${simulatedKey(9).publicKey}`,
      consensus: weakness.consensus ?? bft1(),
      newDisk: () =>
        new Disk({
          forceMs: () => (disks.chance(0.02) ? disks.between(20, 200) : disks.between(0.3, 4)),
          forgets: weakness.disk === 'forgets',
        }),
      corrupt: (member) => this.#corrupt(member),
      onStartFailed: (member, process, error) => this.#onStartFailed(member, process, error),
      onReleased: (member, message) => this.#onReleased(member, message),
      onEffect: (member, life, effect, machine) => this.#onEffect(member, life, effect, machine),
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
      state: () => member.register?.state,
    });
  }

  #reachable(): Door[] {
    return this.members.flatMap(({ id, processes }) => {
      const process = processes.at(-1);
      return process?.engine === undefined
        ? []
        : [{ validatorId: id, life: process.life, engine: process.engine }];
    });
  }

  #onReleased(member: Member, message: Message): void {
    if (message.kind === 'proposal' || this.isByzantine(member.id)) return;
    const { kind, height, round, value } = message;
    this.invariants.voted(member.id, {
      kind,
      height,
      round,
      value: value === undefined ? '' : identity(value),
    });
  }

  #onEffect(member: Member, life: Life, effect: Effect, machine: Machine): void {
    if (effect.kind === 'decide') {
      const { height, round, value } = effect;
      this.trace.add(life.name, `decides ${height}/${round} ${short(value.hash)}`);
      this.invariants.decided(member.id, effect);
    } else if (effect.kind === 'evidence') {
      this.#accuse(member, life, effect.evidence);
    } else if (effect.kind === 'schedule' && effect.step === 'propose') {
      this.trace.add(life.name, `round ${machine.rules.height}/${effect.round}`);
    }
  }

  #accuse(member: Member, life: Life, evidence: Evidence): void {
    const { validatorId, height, round, kind } = evidence.first;
    const text = `holds ${evidence.kind} against ${validatorId}: ${kind} ${height}/${round}`;
    if (!this.#accusations.has(`${life.name} ${text}`)) this.trace.add(life.name, text);
    this.#accusations.add(`${life.name} ${text}`);
    this.invariants.accused(member.id, evidence);
  }

  #onStartFailed(member: Member, process: Process, error: unknown): void {
    if (isFenced(error)) this.#fenced(process);
    else if (!this.invariants.isFaulty(member.id)) {
      this.invariants.break(
        'honest members keep working',
        `${process.life.name} cannot start: ${textOf(error)}`,
      );
    }
  }

  #onThrown(error: unknown, who: string): void {
    this.invariants.break('honest members keep working', `${who} throws: ${textOf(error)}`);
  }

  /** Without the dockets that the store lost a member rightly waits for somebody who has them, and for its operator. */
  #halted(member: Member, { life }: Process, reason: string): void {
    if (!this.#scenario.faults.oldStore || !reason.includes('lost dockets')) {
      this.invariants.break('honest members keep working', `${life.name} halted: ${reason}`);
      return;
    }
    this.trace.add(life.name, `halts: ${reason}`);
    life.alive = false;
    this.agenda.after(5000, () => {
      member.crash(false);
      member.start();
    });
  }

  #fenced(process: Process): void {
    if (!process.isFenced) this.trace.add(process.life.name, 'is fenced');
    process.isFenced = true;
  }

  /** After every event. */
  #check(): void {
    this.#checkStore();
    for (const member of this.members) {
      for (const process of member.processes) this.#checkProcess(member, process);
    }
  }

  #checkStore(): void {
    const { dockets } = this.service.ledger;
    for (; this.#checkedDockets < dockets.length; this.#checkedDockets += 1) {
      const docket = dockets[this.#checkedDockets]?.docket;
      if (docket === undefined) return;
      const { hash, merkleRoot, logRoot, docketNumber, transactionIds } = docket.header;
      const ids = transactionIds.map(short).join(' ');
      this.trace.add('register', `stores ${docketNumber} ${short(hash)}: ${ids}`);
      this.invariants.stored(docketNumber, `${hash}${merkleRoot}${logRoot}`);
      for (const txId of transactionIds) {
        if (this.#sealed.has(txId)) this.invariants.break('sealed once', `${txId} is sealed twice`);
        this.#sealed.add(txId);
      }
    }
  }

  #checkProcess(member: Member, process: Process): void {
    const { engine, life } = process;
    if (engine === undefined || !life.alive || process.isFenced || this.invariants.isFaulty(member.id))
      return;
    try {
      engine.assertWorking();
    } catch (error) {
      const { cause } = error instanceof AppError ? error : { cause: error };
      if (isFenced(cause)) this.#fenced(process);
      else this.invariants.break('honest members keep working', `${life.name} stopped: ${textOf(cause)}`);
      return;
    }
    const register = engine.registers.get(registerId);
    if (register === undefined) return;
    if (register.status === 'Halted') this.#halted(member, process, register.facts.haltedBecause ?? '');
    const { state } = register;
    if (state.height <= process.checkedHeight) return;
    process.checkedHeight = state.height;
    this.#membersAt.set(
      state.height,
      state.members.map((each) => each.validatorId),
    );
    this.invariants.reached(life.name, state.height, digestOf(state));
  }
}

function isFenced(error: unknown): boolean {
  return isAppError(error) && error.code === 'SIGNER_FENCED';
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
