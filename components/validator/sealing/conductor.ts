import { encodeBase64 } from '#core/encoding/base64.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import { CONSENSUS_TYPES, type ConsensusMessage } from '#core/ledger/consensus.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import { type Docket, docketValue } from '../building/docket.ts';
import { isTimely, judgeDocket } from '../building/judge.ts';
import { advance, beginHeight, createMachine, type Machine, resume } from '../consensus/machine.ts';
import type {
  Effect,
  Evidence,
  Input,
  Message,
  Proposal,
  UnsignedMessage,
  Value,
  Verdict,
  Vote,
} from '../consensus/messages.ts';
import type { LogRecord, OwnMessage } from '../log/entries.ts';
import type { Peers } from './peers.ts';
import type { Signer } from './ports.ts';
import type { Scheduler } from './scheduler.ts';
import { heightRules, type RegisterState } from './state.ts';

export interface ConductorOptions {
  readonly self: string;
  readonly signer: Signer;
  readonly scheduler: Scheduler;
  readonly clock: Clock;
  readonly peers: Peers;
  readonly log: Logger;
  append(record: LogRecord): Promise<number>;
  /** The next docket, or undefined when there is nothing to propose. */
  build(): Docket | undefined;
  onDecided(docket: Docket, certificate: Certificate): void;
  onEvidence(evidence: Evidence): void;
  /** The log or the signing component failed for good; nothing more is signed. */
  onFailed(error: unknown): void;
}

/**
 * Drives the consensus machine of one register: builds, judges, signs, schedules, and gives back what comes of it. Every
 * own message is on disk and signed before it leaves or counts (notes/ledger.md 4.3, durability).
 */
export class Conductor {
  readonly #options: ConductorOptions;
  readonly #machine: Machine;
  /** Dockets of this height by identity. */
  readonly #dockets = new Map<string, Docket>();
  readonly #inputs: Input[] = [];
  #own: OwnMessage[] = [];
  readonly #timers = new Set<string>();
  #state: RegisterState;
  #advancing = false;
  #stopped = false;

  constructor(options: ConductorOptions, state: RegisterState) {
    this.#options = options;
    this.#state = state;
    this.#machine = createMachine(heightRules(state, options.self));
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

  /** Own messages of this height, as they are on disk. */
  get own(): readonly OwnMessage[] {
    return this.#own;
  }

  /** There is something to propose. */
  work(): void {
    this.#feed({ kind: 'work' });
  }

  /** Takes an authentic message of another member; a proposal comes with its docket. */
  receive(message: Message, docket: Docket | undefined): void {
    if (docket !== undefined) this.#dockets.set(identity(docketValue(docket.header)), docket);
    this.#feed({ kind: 'message', message });
  }

  /** Goes on after a decided docket. */
  begin(state: RegisterState): void {
    this.#state = state;
    this.#dockets.clear();
    this.#own = [];
    this.#clearTimers();
    this.#act(beginHeight(this.#machine, heightRules(state, this.#options.self)));
  }

  /** Takes up the current height after a restart with the own messages that were on disk. */
  async resume(own: readonly OwnMessage[], dockets: readonly Docket[]): Promise<void> {
    const last = own.at(-1);
    if (last === undefined) return;
    for (const docket of dockets) this.#dockets.set(identity(docketValue(docket.header)), docket);
    this.#own = [...own];
    const { message, locked, valid } = last;
    const step = message.kind === 'proposal' ? 'propose' : message.kind;
    this.#act(resume(this.#machine, { round: message.round, step, locked, valid }));
    for (const each of own) {
      if (each.signature === undefined) await this.#sign(each.message, each);
      else this.#send(each.message, each.timestamp, each.signature);
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#clearTimers();
  }

  #clearTimers(): void {
    for (const key of this.#timers) this.#options.scheduler.clear(key);
    this.#timers.clear();
  }

  /** Inputs that arise while one is worked on wait their turn. */
  #feed(input: Input): void {
    if (this.#stopped) return;
    this.#inputs.push(input);
    if (this.#advancing) return;
    this.#advancing = true;
    try {
      for (let next = this.#inputs.shift(); next !== undefined; next = this.#inputs.shift()) {
        this.#act(advance(this.#machine, next));
      }
    } finally {
      this.#advancing = false;
    }
  }

  #act(effects: readonly Effect[]): void {
    for (const effect of effects) this.#perform(effect);
  }

  #perform(effect: Effect): void {
    switch (effect.kind) {
      case 'build':
        this.#build(effect.round);
        break;
      case 'judge':
        this.#judge(effect.proposal);
        break;
      case 'sign':
        void this.#sign(effect.message, undefined);
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

  #build(round: number): void {
    const docket = this.#options.build();
    if (docket !== undefined) this.#dockets.set(identity(docketValue(docket.header)), docket);
    this.#feed({ kind: 'built', round, value: docket && docketValue(docket.header) });
  }

  #judge(proposal: Proposal): void {
    const { round, value } = proposal;
    this.#feed({ kind: 'judged', round, hash: value.hash, verdict: this.#verdict(proposal) });
  }

  /** A docket whose transactions are not all known here cannot be judged: fail closed. */
  #verdict(proposal: Proposal): Verdict {
    const docket = this.#dockets.get(identity(proposal.value));
    if (docket === undefined) return 'unavailable';
    const violations = judgeDocket(this.#state, docket);
    if (violations.length > 0) {
      const { registerId } = this.#state;
      this.#options.log.warn(
        { registerId, docketNumber: docket.header.docketNumber, violations },
        'proposal refused',
      );
      return 'invalid';
    }
    return isTimely(this.#state, proposal.value.timestamp, this.#options.clock.nowMs()) ? 'valid' : 'late';
  }

  #schedule(effect: Extract<Effect, { kind: 'schedule' }>): void {
    const { height, round, step, afterMs } = effect;
    const key = `${this.#state.registerId}/${height}/${round}/${step}`;
    this.#timers.add(key);
    this.#options.scheduler.set(key, afterMs, () => {
      this.#timers.delete(key);
      this.#feed({ kind: 'timeout', height, round, step });
    });
  }

  #decide(effect: Extract<Effect, { kind: 'decide' }>): void {
    const docket = this.#dockets.get(identity(effect.value));
    if (docket === undefined) {
      this.#options.onFailed(new Error(`docket ${effect.height} was decided and is not here`));
      return;
    }
    this.#options.onDecided(docket, certificateOf(this.#state, effect));
  }

  /** `logged` is set when the message is on disk since before a restart. */
  async #sign(message: UnsignedMessage, logged: OwnMessage | undefined): Promise<void> {
    const { signer, clock } = this.#options;
    const timestamp =
      logged?.timestamp ??
      (message.kind === 'proposal' ? message.value.timestamp : message.timestamp) ??
      formatLedgerTimestamp(clock.nowMicros());
    const request = { kind: 'consensus', message: signable(this.#state, message, timestamp) } as const;
    try {
      const onDisk = logged === undefined ? this.#append(message, timestamp) : Promise.resolve();
      // Bytes that follow from the docket alone can be signed again after a crash, so they need not wait for the disk.
      if (message.kind !== 'proposal' && message.value === undefined) await onDisk;
      const [bytes] = await Promise.all([signer.sign(request), onDisk]);
      const signature = encodeBase64(bytes);
      this.#keepSignature(message, signature);
      this.#send(message, timestamp, signature);
    } catch (error) {
      this.#onUnsigned(message, error);
    }
  }

  async #append(message: UnsignedMessage, timestamp: string): Promise<void> {
    const { locked, valid } = this.#machine;
    const { registerId } = this.#state;
    const header =
      message.kind === 'proposal'
        ? this.#dockets.get(identity(message.value))?.header
        : this.#lockedHeader(message);
    const value = {
      registerId,
      message,
      timestamp,
      locked,
      valid,
      ...(header === undefined ? {} : { header }),
    };
    this.#own.push(value);
    await this.#options.append({ kind: 'own', value });
  }

  /**
   * The signature goes into the log ahead of the next own message and is not waited for: without it on disk there is no
   * later message either, and the signer signs its latest position again.
   */
  #keepSignature(message: UnsignedMessage, signature: string): void {
    const place = this.#own.findIndex((each) => each.message === message);
    const unsigned = this.#own[place];
    if (unsigned === undefined) return;
    this.#own[place] = { ...unsigned, signature };
    const { header: _kept, ...value } = { ...unsigned, signature };
    this.#options.append({ kind: 'own', value }).catch((error: unknown) => this.#options.onFailed(error));
  }

  /** A lock on another member's docket is worth nothing after a restart without the docket. */
  #lockedHeader(message: Exclude<UnsignedMessage, { kind: 'proposal' }>): Docket['header'] | undefined {
    if (message.kind !== 'precommit' || message.value === undefined) return undefined;
    const docket = this.#dockets.get(identity(message.value));
    return docket?.header.validatorAddress === this.#options.signer.key.walletAddress
      ? undefined
      : docket?.header;
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
    if (!isAppError(error) || error.code !== 'DOUBLE_SIGN_REFUSED') {
      this.#options.onFailed(error);
      return;
    }
    const { registerId } = this.#state;
    const { kind, height, round } = message;
    this.#options.log.warn(
      { registerId, height, round, message: kind },
      'the signer has signed something else here',
    );
    if (height === this.height) this.#feed({ kind: 'refused', round, message: kind });
  }
}

function identity(value: Omit<Value, 'timestamp'>): string {
  return `${value.hash}${value.merkleRoot}${value.logRoot}`;
}

/** The structured message that the signing component and the certificate's verifier make the sign bytes of. */
export function signable(
  state: RegisterState,
  message: UnsignedMessage,
  timestamp: string,
): ConsensusMessage {
  const value = message.value;
  return {
    type: CONSENSUS_TYPES[message.kind],
    networkId: state.networkId,
    registerId: state.registerId,
    height: message.height,
    round: message.round,
    polRound: message.kind === 'proposal' ? message.polRound : -1,
    docket: value && { docketHash: value.hash, merkleRoot: value.merkleRoot, logRoot: value.logRoot },
    validatorSetHash: state.membersHash,
    timestamp,
  };
}

function certificateOf(
  state: RegisterState,
  decided: { height: number; round: number; value: Value; precommits: readonly Vote[] },
): Certificate {
  const { value } = decided;
  return {
    version: 1,
    height: decided.height,
    round: decided.round,
    docketHash: value.hash,
    merkleRoot: value.merkleRoot,
    logRoot: value.logRoot,
    validatorSetHash: state.membersHash,
    signatures: decided.precommits.map((vote) => ({
      validatorId: vote.validatorId,
      index: state.members.findIndex((member) => member.validatorId === vote.validatorId),
      timestamp: vote.timestamp,
      signature: vote.signature,
    })),
  };
}
