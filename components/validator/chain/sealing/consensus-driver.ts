import type { Violation } from '#core/errors/errors.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import { proposerOf } from '#core/ledger/consensus.ts';
import type { Scheduler } from '#kit/clock/timers.ts';
import { type Docket, docketValue } from '../building/docket.ts';
import { isTimely } from '../building/judge.ts';
import { bft1, type Consensus } from '../consensus/bft1.ts';
import type { Machine } from '../consensus/machine-state.ts';
import type {
  Effect,
  Evidence,
  Input,
  Message,
  Proposal,
  UnsignedMessage,
  UnsignedProposal,
  UnsignedVote,
  Value,
  Verdict,
} from '../consensus/messages.ts';
import type { OwnMessage } from '../records/entries.ts';
import { heightRules, type RegisterState } from '../state/state.ts';
import { OwnSigning, type SigningPorts } from './own-signing.ts';
import type { Peers } from './peers.ts';
import { RoundTimers } from './round-timers.ts';
import { certificateOf, identity, loggedPolka, precommitsOf } from './sign-bytes.ts';

export interface ConsensusDriverOptions extends SigningPorts {
  readonly scheduler: Scheduler;
  readonly peers: Peers;
  /** "bft-1" when absent. */
  readonly consensus?: Consensus | undefined;
  /** The next docket; undefined when there is nothing to propose. */
  build(): Docket | undefined;
  /** The violations of a docket that is to follow a state. */
  judge(state: RegisterState, docket: Docket): readonly Violation[];
  onDecided(docket: Docket, certificate: Certificate): void;
  onEvidence(evidence: Evidence): void;
  /** A proposal is invalid, not merely late. Without violations: one of its transactions may not be sealed. */
  onInvalid(proposal: Proposal, violations: readonly Violation[]): void;
}

const absentProposerMs = 250;

/**
 * Drives the consensus machine of one register: builds, judges, signs, schedules, and feeds the results back as inputs. Every
 * own message is on disk and signed before it is sent or counted.
 */
export class ConsensusDriver {
  readonly #options: ConsensusDriverOptions;
  readonly #consensus: Consensus;
  readonly #machine: Machine;
  /** Dockets of this height by identity. */
  readonly #dockets = new Map<string, Docket>();
  readonly #inputs: Input[] = [];
  readonly #signing: OwnSigning;
  readonly #timers: RoundTimers;
  /** The own docket that was found valid when it was proposed. */
  #validOwn: Docket | undefined;
  #state: RegisterState;
  #advancing = false;
  #stopped = false;

  constructor(options: ConsensusDriverOptions, state: RegisterState) {
    this.#options = options;
    this.#state = state;
    this.#consensus = options.consensus ?? bft1();
    this.#machine = this.#consensus.create(heightRules(state, options.self));
    this.#timers = new RoundTimers(state.registerId, options.scheduler, (timeout) => this.#feed(timeout));
    this.#signing = new OwnSigning({
      ...options,
      timers: this.#timers,
      place: () => ({ state: this.#state, machine: this.#machine }),
      isStopped: () => this.#stopped,
      findDocket: (value) => this.findDocket(value),
      onSigned: (message, timestamp, signature) => this.#send(message, timestamp, signature),
      onDecisive: (precommit, timestamp, signature) => this.#decideAlone(precommit, timestamp, signature),
      onRefused: (message) => this.#onRefused(message),
    });
  }

  get height(): number {
    return this.#machine.rules.height;
  }

  get round(): number {
    return this.#machine.round;
  }

  get step(): string {
    return this.#machine.step;
  }

  get quorum(): number {
    return this.#machine.rules.quorum;
  }

  get isIdle(): boolean {
    return this.#machine.step === 'idle';
  }

  /** Own messages of this height, as logged. */
  get own(): readonly OwnMessage[] {
    return this.#signing.all;
  }

  /** Signals that there is something to propose. */
  work(): void {
    this.#feed({ kind: 'work' });
  }

  /** The state of the machine at this height. */
  get machine(): Readonly<Machine> {
    return this.#machine;
  }

  /** The docket of this height with a given value, if available. */
  findDocket(value: Omit<Value, 'timestamp'>): Docket | undefined {
    return this.#dockets.get(identity(value));
  }

  /** Handles an authentic message of another member, with the docket of a proposal if it is available. */
  receive(message: Message, docket: Docket | undefined): void {
    if (docket !== undefined && docket.header.docketNumber === this.height) this.#keep(docket);
    this.#feed({ kind: 'message', message });
  }

  /** Accepts another member's decision. The caller has verified that the certificate certifies this docket. */
  commit(docket: Docket, certificate: Certificate): void {
    if (docket.header.docketNumber !== this.height) return;
    this.#keep(docket);
    const { height, round } = certificate;
    const precommits = precommitsOf(certificate);
    this.#feed({ kind: 'committed', height, round, value: docketValue(docket.header), precommits });
  }

  /** A docket that is known stays: own ones are recognized as the same object. */
  #keep(docket: Docket): void {
    const key = identity(docketValue(docket.header));
    if (!this.#dockets.has(key)) this.#dockets.set(key, docket);
  }

  /** Begins the next height after a decided docket. */
  begin(state: RegisterState): void {
    this.#state = state;
    this.#dockets.clear();
    this.#validOwn = undefined;
    this.#signing.begin();
    this.#timers.clear();
    this.#applyAll(this.#consensus.begin(this.#machine, heightRules(state, this.#options.self)));
  }

  /** Resumes the current height after a restart with the logged own messages. */
  async resume(own: readonly OwnMessage[], dockets: readonly Docket[]): Promise<void> {
    const last = own.at(-1);
    if (last === undefined) return;
    for (const docket of dockets) this.#keep(docket);
    const { message, locked, valid } = last;
    this.#signing.begin(own, valid?.round ?? -1);
    const step = message.kind === 'proposal' ? 'propose' : message.kind;
    this.#applyAll(this.#consensus.resume(this.#machine, { round: message.round, step, locked, valid }));
    for (const vote of own.flatMap(loggedPolka)) this.#feed({ kind: 'message', message: vote });
    const rest = await this.#signing.repeat(own);
    if (rest === undefined) return;
    this.#applyAll(this.#consensus.begin(this.#machine, heightRules(this.#state, this.#options.self)));
    this.#signing.begin(rest);
    await this.resume(rest, dockets);
  }

  stop(): void {
    this.#stopped = true;
    this.#timers.clear();
  }

  /** Inputs that arise during an advance are queued. */
  #feed(input: Input): void {
    if (this.#stopped) return;
    this.#inputs.push(input);
    if (this.#advancing) return;
    this.#advancing = true;
    try {
      for (let next = this.#nextInput(); next !== undefined; next = this.#nextInput()) {
        this.#applyAll(this.#consensus.advance(this.#machine, next));
      }
    } finally {
      this.#advancing = false;
    }
  }

  /** None once the register has halted, which a decided docket may cause by making early evidence verifiable. */
  #nextInput(): Input | undefined {
    return this.#stopped ? undefined : this.#inputs.shift();
  }

  #applyAll(effects: readonly Effect[]): void {
    for (const effect of effects) if (!this.#stopped) this.#apply(effect);
  }

  #apply(effect: Effect): void {
    switch (effect.kind) {
      case 'build':
        this.#build(effect.round);
        break;
      case 'judge':
        this.#judge(effect.proposal);
        break;
      case 'sign':
        if (this.#isMember) this.#sign(effect.message);
        break;
      case 'schedule':
        this.#schedule(effect);
        break;
      case 'decide':
        this.#decide(effect);
        break;
      case 'evidence':
        this.#options.onEvidence(effect.evidence);
        break;
      case 'behind':
        this.#options.peers.requestCommit(this.#state.registerId, effect.height, effect.validatorId);
        break;
    }
  }

  /** A validator that left the set still follows dockets until it is stopped, but signs nothing. */
  get #isMember(): boolean {
    return this.#machine.rules.members.includes(this.#options.self);
  }

  #build(round: number): void {
    const docket = this.#options.build();
    if (docket !== undefined) this.#keep(docket);
    this.#feed({ kind: 'built', round, value: docket && docketValue(docket.header) });
  }

  #judge(proposal: Proposal): void {
    const docket = this.findDocket(proposal.value);
    if (docket === undefined) void this.#fetchAndJudge(proposal);
    else if (this.#isJudged(proposal, docket)) this.#judged(proposal, 'valid');
    else this.#judged(proposal, this.#verdict(proposal, docket));
  }

  /** Whether an own proposal was found valid before it was signed. Its votes may be signed, so the verdict stands. */
  #isJudged({ validatorId }: Proposal, docket: Docket): boolean {
    return validatorId === this.#options.self && docket === this.#validOwn;
  }

  /** A docket is judged only once all its transactions are available: fail closed. */
  async #fetchAndJudge(proposal: Proposal): Promise<void> {
    const { peers } = this.#options;
    const docket = await peers.findDocket(this.#state.registerId, proposal);
    if (this.#stopped || proposal.height !== this.height) return;
    if (docket === 'invalid') this.#options.onInvalid(proposal, []);
    else this.#keep(docket);
    this.#judged(proposal, docket === 'invalid' ? 'invalid' : this.#verdict(proposal, docket));
  }

  #judged({ round, value }: Proposal, verdict: Verdict): void {
    this.#feed({ kind: 'judged', round, hash: value.hash, verdict });
  }

  #verdict(proposal: Proposal, docket: Docket): Verdict {
    const violations = this.#options.judge(this.#state, docket);
    if (violations.length > 0) {
      this.#options.onInvalid(proposal, violations);
      return 'invalid';
    }
    return isTimely(this.#state, proposal.value.timestamp, this.#options.clock.nowMs()) ? 'valid' : 'late';
  }

  #schedule({ height, round, step, afterMs }: Extract<Effect, { kind: 'schedule' }>): void {
    const waitMs = step === 'propose' ? this.#proposeMs(round, afterMs) : afterMs;
    this.#timers.set({ height, round, step }, waitMs);
  }

  /** Shortens the timeout for an absent proposer. A wrong guess only causes an early nil prevote. */
  #proposeMs(round: number, afterMs: number): number {
    const { members, height } = this.#machine.rules;
    const isAbsent = this.#options.peers.isAbsent(proposerOf(members, height, round));
    return isAbsent ? Math.min(afterMs, absentProposerMs) : afterMs;
  }

  #decide(effect: Extract<Effect, { kind: 'decide' }>): void {
    const docket = this.#dockets.get(identity(effect.value));
    if (docket === undefined) {
      this.#options.onFailed(new Error(`docket ${effect.height} was decided but is missing here`));
      return;
    }
    this.#options.onDecided(docket, certificateOf(this.#state, effect));
  }

  /** A proposal is signed together with the votes that follow it, once its docket is judged valid. */
  #sign(message: UnsignedMessage): void {
    const votes = message.kind === 'proposal' ? this.#votesAhead(message) : [];
    if (message.kind === 'proposal' && votes.length > 0) void this.#signing.signTogether(message, votes);
    else this.#signing.sign(message);
  }

  #votesAhead(proposal: UnsignedProposal): readonly UnsignedVote[] {
    const docket = this.findDocket(proposal.value);
    if (docket === undefined || !this.#signing.signsBatches) return [];
    const votes = this.#consensus.votesAhead(this.#machine, proposal);
    if (votes.length === 0) return [];
    const isInvalid = this.#options.judge(this.#state, docket).length > 0;
    if (isInvalid || !isTimely(this.#state, proposal.value.timestamp, this.#options.clock.nowMs())) return [];
    this.#validOwn = docket;
    return votes;
  }

  #send(message: UnsignedMessage, timestamp: string, signature: string): void {
    if (this.#stopped || message.height !== this.height) return;
    const from = { validatorId: this.#options.self, signature };
    const signed: Message =
      message.kind === 'proposal' ? { ...message, ...from } : { ...message, timestamp, ...from };
    const docket = message.kind === 'proposal' ? this.#dockets.get(identity(message.value)) : undefined;
    this.#options.peers.broadcast(this.#state.registerId, signed, docket);
    this.#feed({ kind: 'message', message: signed });
  }

  /** The own precommit is the certificate of a set of one. */
  #decideAlone({ height, round, value, ...vote }: UnsignedVote, timestamp: string, signature: string): void {
    if (this.#stopped || value === undefined || height !== this.height) return;
    if (this.findDocket(value) === undefined) return;
    const precommit = {
      ...vote,
      height,
      round,
      value,
      timestamp,
      validatorId: this.#options.self,
      signature,
    };
    this.#feed({ kind: 'committed', height, round, value: { ...value, timestamp }, precommits: [precommit] });
  }

  #onRefused({ kind, height, round }: UnsignedMessage): void {
    if (height === this.height) this.#feed({ kind: 'refused', round, message: kind });
  }
}
