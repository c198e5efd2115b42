import { encodeBase64 } from '#core/encoding/base64.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { isAppError, type Violation } from '#core/errors/errors.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import { proposerOf } from '#core/ledger/consensus.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Scheduler } from '#kit/clock/timers.ts';
import type { Logger } from '#kit/log/log.ts';
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
  Value,
  Verdict,
} from '../consensus/messages.ts';
import type { LogRecord, OwnMessage } from '../records/entries.ts';
import { heightRules, type RegisterState } from '../state/state.ts';
import { OwnMessages } from './own-messages.ts';
import type { Peers } from './peers.ts';
import type { Signer } from './ports.ts';
import { certificateOf, identity, loggedPolka, precommitsOf, signable } from './sign-bytes.ts';
import { signerFor } from './signer-key.ts';

export interface ConsensusDriverOptions {
  readonly self: string;
  readonly signer: Signer;
  readonly scheduler: Scheduler;
  readonly clock: Clock;
  readonly peers: Peers;
  readonly log: Logger;
  /** "bft-1" when absent. */
  readonly consensus?: Consensus | undefined;
  append(record: LogRecord): Promise<number>;
  /** The next docket; undefined when there is nothing to propose. */
  build(): Docket | undefined;
  /** The violations of a docket that is to follow a state. */
  judge(state: RegisterState, docket: Docket): readonly Violation[];
  onDecided(docket: Docket, certificate: Certificate): void;
  onEvidence(evidence: Evidence): void;
  /** A proposal is invalid, not merely late. Without violations: one of its transactions may not be sealed. */
  onInvalid(proposal: Proposal, violations: readonly Violation[]): void;
  /** The log or the signing component failed permanently; nothing more is signed. */
  onFailed(error: unknown): void;
}

const absentProposerMs = 250;
/** Refusals of the signer that silence this member at one position, or where the register names an unknown key. */
const silencingCodes: readonly string[] = ['DOUBLE_SIGN_REFUSED', 'SIGNING_KEY_UNKNOWN'];

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
  readonly #ownMessages: OwnMessages;
  readonly #timers = new Set<string>();
  #state: RegisterState;
  #advancing = false;
  #stopped = false;

  constructor(options: ConsensusDriverOptions, state: RegisterState) {
    this.#options = options;
    this.#state = state;
    this.#ownMessages = new OwnMessages(options);
    this.#consensus = options.consensus ?? bft1();
    this.#machine = this.#consensus.create(heightRules(state, options.self));
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
    return this.#ownMessages.all;
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

  #keep(docket: Docket): void {
    this.#dockets.set(identity(docketValue(docket.header)), docket);
  }

  /** Begins the next height after a decided docket. */
  begin(state: RegisterState): void {
    this.#state = state;
    this.#dockets.clear();
    this.#ownMessages.begin();
    this.#clearTimers();
    this.#applyAll(this.#consensus.begin(this.#machine, heightRules(state, this.#options.self)));
  }

  /** Resumes the current height after a restart with the logged own messages. */
  async resume(own: readonly OwnMessage[], dockets: readonly Docket[]): Promise<void> {
    const last = own.at(-1);
    if (last === undefined) return;
    for (const docket of dockets) this.#keep(docket);
    this.#ownMessages.begin(own);
    const { message, locked, valid } = last;
    const step = message.kind === 'proposal' ? 'propose' : message.kind;
    this.#applyAll(this.#consensus.resume(this.#machine, { round: message.round, step, locked, valid }));
    for (const vote of own.flatMap(loggedPolka)) this.#feed({ kind: 'message', message: vote });
    this.#ownMessages.markPolka(valid?.round ?? -1);
    // All signatures are requested at once, so that a timer firing meanwhile cannot get a later message signed before them.
    const signing = own.map(async (each) => {
      if (each.signature === undefined) await this.#sign(each.message, each);
      else this.#send(each.message, each.timestamp, each.signature);
    });
    await Promise.all(signing);
  }

  stop(): void {
    this.#stopped = true;
    this.#clearTimers();
  }

  #clearTimers(): void {
    for (const key of this.#timers) this.#options.scheduler.clear(key);
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
        if (this.#isMember) void this.#sign(effect.message, undefined);
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

  get #signer(): Signer {
    return signerFor(this.#state.members, this.#options.self, this.#options.signer);
  }

  #build(round: number): void {
    const docket = this.#options.build();
    if (docket !== undefined) this.#keep(docket);
    this.#feed({ kind: 'built', round, value: docket && docketValue(docket.header) });
  }

  #judge(proposal: Proposal): void {
    const docket = this.findDocket(proposal.value);
    if (docket === undefined) void this.#fetchAndJudge(proposal);
    else this.#judged(proposal, this.#verdict(proposal, docket));
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

  #schedule(effect: Extract<Effect, { kind: 'schedule' }>): void {
    const { height, round, step, afterMs } = effect;
    const key = `${this.#state.registerId}/${height}/${round}/${step}`;
    this.#timers.add(key);
    const waitMs = step === 'propose' ? this.#proposeMs(round, afterMs) : afterMs;
    this.#options.scheduler.set(key, waitMs, () => {
      this.#timers.delete(key);
      this.#feed({ kind: 'timeout', height, round, step });
    });
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

  /** `logged` is the own message that was on disk before a restart. */
  async #sign(message: UnsignedMessage, logged: OwnMessage | undefined): Promise<void> {
    const { clock } = this.#options;
    const timestamp =
      logged?.timestamp ??
      (message.kind === 'proposal' ? message.value.timestamp : message.timestamp) ??
      formatLedgerTimestamp(clock.nowMicros());
    const request = { kind: 'consensus', message: signable(this.#state, message, timestamp) } as const;
    try {
      const onDisk = logged === undefined ? this.#logOwn(message, timestamp) : Promise.resolve();
      // A vote for a docket is reproducible from the docket and can be signed again after a crash: it waits for the last signature only.
      const isFree = message.kind !== 'proposal' && message.value === undefined;
      const before = isFree && logged === undefined ? onDisk : this.#ownMessages.lastSignature;
      const signed = before.then(() => (this.#stopped ? undefined : this.#signer.sign(request)));
      const [bytes] = await Promise.all([signed, onDisk]);
      if (bytes === undefined) return;
      const signature = encodeBase64(bytes);
      this.#ownMessages.addSignature(message, signature);
      this.#send(message, timestamp, signature);
    } catch (error) {
      this.#onUnsigned(message, error);
    }
  }

  #logOwn(message: UnsignedMessage, timestamp: string): Promise<void> {
    return this.#ownMessages.append(message, timestamp, {
      registerId: this.#state.registerId,
      machine: this.#machine,
      walletAddress: this.#signer.key.walletAddress,
      findDocket: (value) => this.findDocket(value),
    });
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

  #onUnsigned(message: UnsignedMessage, error: unknown): void {
    if (this.#stopped) return;
    if (!isAppError(error) || !silencingCodes.includes(error.code)) {
      this.#options.onFailed(error);
      return;
    }
    const { registerId } = this.#state;
    const { kind, height, round } = message;
    const details = { registerId, height, round, message: kind, code: error.code };
    this.#options.log.warn(details, 'the signer refused: conflicting earlier signature, or unknown key');
    if (height === this.height) this.#feed({ kind: 'refused', round, message: kind });
  }
}
