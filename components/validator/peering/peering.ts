import type { Verifier } from '#core/crypto/verify.ts';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Admission } from '../admission/admission.ts';
import type { ExamineOptions } from '../admission/verify-peer-transactions.ts';
import type { Docket } from '../building/docket.ts';
import type { Evidence, Message, Proposal } from '../consensus/messages.ts';
import type { LoggedEvidence, LogRecord } from '../log/entries.ts';
import type { Registers } from '../membership/registers.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import type { Serials } from '../sealing/admission-epochs.ts';
import type { Peers } from '../sealing/peers.ts';
import type { SealedDocket } from '../sealing/ports.ts';
import type { Register } from '../sealing/register-chain.ts';
import type { Scheduler } from '../sealing/scheduler.ts';
import { type AssembleOptions, assemble } from './assemble.ts';
import { CatchUp } from './catch-up.ts';
import { Commits } from './commit-cache.ts';
import { Serving } from './commit-server.ts';
import { envelopeOf } from './envelopes.ts';
import { Suspicions } from './equivocation-detector.ts';
import type { KnownEvidence } from './evidence.ts';
import { Witness } from './evidence-collector.ts';
import { Fetcher } from './fetch.ts';
import { Intake, isMember } from './intake.ts';
import { Handover } from './mempool-transfer.ts';
import { Charges } from './peer-score.ts';
import { type OperationalMember, Presence, type Sighting } from './presence.ts';
import { Offers } from './proposal-cache.ts';
import { Gossip } from './round-gossip.ts';
import { Hints } from './transaction-gossip.ts';
import type {
  CommitBundle,
  Envelope,
  Head,
  Inbox,
  PeerEvidence,
  SealedTransaction,
  Transport,
} from './transport.ts';
import { Strangers } from './unknown-registers.ts';
import { VoterHistory } from './voter-history.ts';

export interface PeeringOptions extends ExamineOptions {
  readonly self: string;
  readonly version: string;
  readonly transport: Transport;
  readonly verifier: Verifier;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly serials: Serials;
  readonly log: Logger;
  readonly metrics: PeeringMetrics;
  registers(): Pick<Registers, 'get' | 'all' | 'find' | 'jump'>;
  admission(): Pick<Admission, 'take' | 'settled'>;
  append(...records: LogRecord[]): Promise<number>;
  /** Whether this validator is draining. */
  isDraining(): boolean;
  /** Called when evidence of a register is held, so that a suspension can be proposed. */
  accuse(registerId: string): void;
}

export interface PeeringMetrics {
  /** Newly proven conflicting messages. */
  equivocation(kind: PeerEvidence['kind']): void;
  /** A peer sent a message that a correct validator would not send. */
  peerFault(reason: string): void;
}

const retryMs = { first: 100, last: 2_000 } as const;

/**
 * The peer-to-peer logic between the transport and the registers: authenticates messages, fetches missing data, repeats lost
 * messages. All timers are those of the scheduler.
 */
export class Peering implements Inbox, Peers {
  readonly #options: PeeringOptions;
  readonly charges: Charges;
  readonly #presence: Presence;
  readonly #commits = new Commits();
  readonly #offers = new Offers();
  readonly #voters = new VoterHistory();
  readonly #suspicions = new Suspicions();
  readonly #witness: Witness;
  readonly #fetcher: Fetcher;
  readonly #assembleOptions: AssembleOptions;
  readonly #catchUp: CatchUp;
  readonly #gossip: Gossip;
  readonly #hints: Hints;
  readonly #handover: Handover;
  readonly #intake: Intake;
  readonly #serving: Serving;
  #rests = 0;

  constructor(options: PeeringOptions) {
    const { self, version, transport, verifier, clock, scheduler, log, metrics } = options;
    this.#options = options;
    const send = (to: string, envelope: Envelope) => transport.send(to, envelope);
    const charge = (validatorId: string, reason: string) => this.charges.charge(validatorId, reason);
    this.charges = new Charges(clock, log, (reason) => metrics.peerFault(reason));
    this.#fetcher = new Fetcher({ transport, scheduler, log, charge });
    this.#assembleOptions = { ...options, fetcher: this.#fetcher };
    const shared = { self, version, clock, scheduler, log, verifier, send, charge, fetcher: this.#fetcher };
    this.#presence = new Presence({
      ...shared,
      head: (registerId) => this.#head(registerId),
      isDraining: options.isDraining,
      onReturn: (peer) => this.#onReturn(peer),
    });
    this.#witness = new Witness({
      ...shared,
      voters: this.#voters,
      append: options.append,
      find: (registerId) => options.registers().get(registerId),
      counted: (kind) => metrics.equivocation(kind),
      tell: (to, registerId, evidence) => send(to, { kind: 'evidence', registerId, evidence }),
      tellAll: (register, evidence) =>
        this.#toMembers(register, { kind: 'evidence', registerId: register.id, evidence }),
      held: (registerId) => options.accuse(registerId),
    });
    this.#catchUp = new CatchUp({
      ...shared,
      assemble: (register, bundle, sources) => this.#assembleCommit(register, bundle, sources),
      jump: (register) => options.registers().jump(register.id),
    });
    this.#gossip = new Gossip({
      ...shared,
      tell: (_register, to, state) => send(to, state),
      tellAll: (register, state) => this.#toMembers(register, state),
      pass: (register, to, message) => this.#pass(register, to, message),
      find: (registerId) => options.registers().get(registerId),
      onStalled: (register) => this.#hints.remind(register),
    });
    this.#hints = new Hints({
      ...shared,
      take: (given) => options.admission().take(given),
      rest: (ms) => this.#rest(ms),
    });
    this.#handover = new Handover({
      ...shared,
      find: (registerId) => options.registers().get(registerId),
      jump: (registerId) => options.registers().jump(registerId),
      remind: (register) => this.#hints.remind(register),
    });
    this.#serving = new Serving(this.#commits, (registerId) => options.registers().get(registerId));
    this.#intake = new Intake({
      ...shared,
      presence: this.#presence,
      commits: this.#commits,
      offers: this.#offers,
      voters: this.#voters,
      witness: this.#witness,
      catchUp: this.#catchUp,
      gossip: this.#gossip,
      hints: this.#hints,
      suspicions: this.#suspicions,
      pass: (register, to, message) => this.#pass(register, to, message),
      strangers: new Strangers(
        clock,
        (registerId) => options.registers().find(registerId),
        (...alarm) => scheduler.set(...alarm),
      ),
      find: (registerId) => options.registers().get(registerId),
    });
  }

  start(): void {
    this.#presence.start();
  }

  stop(): void {
    this.#presence.stop();
  }

  /** Sends a heartbeat to all peers at once. */
  tellAll(): void {
    this.#presence.greetAll();
  }

  /** Announces the waiting transactions of a register to its other members again. */
  remind(register: Register): void {
    this.#hints.remind(register);
  }

  /** Validators that share a register with this one. */
  get peers(): readonly string[] {
    return this.#presence.peers;
  }

  /** When each peer was last heard. */
  get sightings(): readonly Sighting[] {
    return this.#presence.peers.map((id) => this.#presence.sighting(id));
  }

  /** Milliseconds by which the local clock is ahead of the peers' clocks; undefined before the first heartbeat. */
  get clockAheadMs(): number | undefined {
    return this.#presence.clockAheadMs;
  }

  /** The members of a register and when each was last heard; empty for a register that this validator does not run. */
  operational(registerId: string): readonly OperationalMember[] {
    const register = this.#options.registers().get(registerId);
    if (register === undefined) return [];
    const { self, version, clock } = this.#options;
    const nowMs = clock.nowMs();
    const ttlMs = register.state.policy.validators.operationalTtlSeconds * 1_000;
    return register.state.members.map(({ validatorId }) => {
      const isSelf = validatorId === self;
      const seen = this.#presence.sighting(validatorId);
      const head = isSelf ? this.#head(registerId) : seen.head(registerId);
      const heardAtMs = isSelf ? nowMs : seen.heardAtMs;
      return {
        validatorId,
        heardAtMs,
        isOperational: heardAtMs > 0 && nowMs - heardAtMs <= ttlMs,
        version: isSelf ? version : seen.version,
        height: head?.height ?? 0,
        round: head?.round ?? 0,
      };
    });
  }

  /** Proven faults of a register's members. */
  evidence(registerId: string): readonly KnownEvidence[] {
    return this.#witness.list(registerId);
  }

  /** Number of pieces of evidence held, over all registers. */
  get evidenceHeld(): number {
    return this.#witness.size;
  }

  // Messages from other validators.

  receive(from: string, envelope: Envelope): void {
    if (from === this.#options.self || this.charges.isBarred(from)) return;
    this.#intake.take(from, envelope);
  }

  connected(peer: string): void {
    this.#presence.heard(peer);
    this.#presence.connected(peer);
    for (const register of this.#options.registers().all()) {
      if (!isMember(register, peer)) continue;
      if (register.machine.step !== 'idle') this.#gossip.tell(register, peer);
      this.#hints.remind(register, peer);
      this.#witness.share(peer, register);
    }
  }

  records(from: string, registerId: string, transactionIds: readonly string[]): readonly SealedTransaction[] {
    return this.#serving.records(from, registerId, transactionIds);
  }

  commit(from: string, registerId: string, height: number): CommitBundle | undefined {
    return this.#serving.commit(from, registerId, height);
  }

  // Calls of the local registers.

  follow(registerId: string, members: readonly string[]): void {
    this.#presence.follow(registerId, members);
    this.#options.scheduler.soon(() => {
      this.#noteVoters(registerId);
      this.#intake.begin(registerId);
      this.#handover.watch(registerId);
    });
  }

  broadcast(registerId: string, message: Message, docket: Docket | undefined): void {
    const register = this.#options.registers().get(registerId);
    const envelope = register && envelopeOf(registerId, message, docket);
    if (register === undefined || envelope === undefined) return;
    this.#toMembers(register, envelope);
    this.#gossip.watch(register);
  }

  async findDocket(registerId: string, proposal: Proposal): Promise<Docket | 'invalid'> {
    const register = this.#options.registers().get(registerId);
    let delayMs: number = retryMs.first;
    while (register !== undefined && register.state.height === proposal.height) {
      const offer = this.#offers.find(registerId, proposal.value);
      const sources = offer && [proposal.validatorId, ...offer.sources, ...this.#others(register)];
      const assembly = offer && { offer, sources: [...new Set(sources)], certified: false };
      const docket = assembly && (await assemble(this.#assembleOptions, register, assembly));
      if (docket !== undefined) return docket;
      await this.#rest(delayMs);
      delayMs = Math.min(delayMs * 2, retryMs.last);
    }
    return 'invalid';
  }

  requestCommit(registerId: string, height: number, validatorId: string): void {
    const register = this.#options.registers().get(registerId);
    if (register === undefined) return;
    const isSure = height === register.state.height;
    this.#catchUp.request(register, validatorId, isSure ? height + 1 : height, isSure);
  }

  hint(registerId: string, transactions: readonly PooledTransaction[]): void {
    const register = this.#options.registers().get(registerId);
    if (register === undefined) return;
    this.#hints.spread(register, transactions);
    this.#handover.watch(registerId);
  }

  decided(registerId: string, sealed: SealedDocket): void {
    const register = this.#options.registers().get(registerId);
    if (register === undefined) return;
    this.#voters.note(register);
    this.#offers.forgetBelow(registerId, register.state.height);
    this.#suspicions.decided(registerId);
    this.#witness.decided(registerId);
    if (register.state.members.length === 1) return;
    this.#commits.add(registerId, sealed);
    this.#presence.moved(registerId);
  }

  attest(registerId: string, writer: string, docketNumber: number, vote: ConsensusVote): void {
    this.#options.transport.send(writer, { kind: 'attestation', registerId, docketNumber, vote });
  }

  stored(registerId: string, height: number, attested: readonly string[]): void {
    const register = this.#options.registers().get(registerId);
    if (register !== undefined) this.#toMembers(register, { kind: 'stored', registerId, height, attested });
  }

  report(registerId: string, evidence: Evidence): void {
    this.#witness.take(this.#options.self, registerId, evidence);
  }

  recall(registerId: string, evidence: readonly LoggedEvidence[]): void {
    this.#witness.recall(registerId, evidence);
  }

  isAway(validatorId: string): boolean {
    return this.#presence.isAway(validatorId);
  }

  countOperational(registerId: string): number {
    const register = this.#options.registers().get(registerId);
    if (register === undefined || register.state.members.length === 1) return 1;
    return this.operational(registerId).filter((member) => member.isOperational).length;
  }

  /** A silent validator was heard again: registers that waited for a quorum may continue. */
  #onReturn(peer: string): void {
    for (const register of this.#options.registers().all()) {
      if (isMember(register, peer)) register.wake();
    }
  }

  async #assembleCommit(
    register: Register,
    offer: CommitBundle,
    sources: readonly string[],
  ): Promise<Docket | undefined> {
    const assembly = { offer, sources: [...new Set(sources)], certified: true };
    const docket = await assemble(this.#assembleOptions, register, assembly);
    return docket === 'invalid' ? undefined : docket;
  }

  #pass(register: Register, to: string, message: Message): void {
    const docket = message.kind === 'proposal' ? register.findDocket(message.value) : undefined;
    const envelope = envelopeOf(register.id, message, docket);
    if (envelope !== undefined) this.#options.transport.send(to, envelope);
  }

  #toMembers(register: Register, envelope: Envelope): void {
    for (const validatorId of this.#others(register)) this.#options.transport.send(validatorId, envelope);
  }

  #others(register: Register): string[] {
    const { self } = this.#options;
    return register.state.members.flatMap(({ validatorId }) => (validatorId === self ? [] : validatorId));
  }

  #noteVoters(registerId: string): void {
    const register = this.#options.registers().get(registerId);
    if (register !== undefined) this.#voters.note(register);
  }

  #head(registerId: string): Head | undefined {
    const register = this.#options.registers().get(registerId);
    if (register === undefined) return undefined;
    const { height, headHash } = register.state;
    return { registerId, height, round: register.machine.round, headHash };
  }

  #rest(ms: number): Promise<void> {
    this.#rests += 1;
    return new Promise((resolve) => this.#options.scheduler.set(`rest/${this.#rests}`, ms, resolve));
  }
}
