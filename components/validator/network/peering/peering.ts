import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Docket } from '../../chain/building/docket.ts';
import type { Evidence, Message, Proposal } from '../../chain/consensus/messages.ts';
import type { PooledTransaction } from '../../chain/pool/transaction.ts';
import type { LoggedEvidence } from '../../chain/records/entries.ts';
import type { Peers } from '../../chain/sealing/peers.ts';
import type { SealedDocket } from '../../chain/sealing/ports.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import { isMember } from '../../chain/state/state.ts';
import { EquivocationDetector } from '../evidence/equivocation-detector.ts';
import type { ProvenEvidence } from '../evidence/evidence.ts';
import { EvidenceCollector } from '../evidence/evidence-collector.ts';
import { VoterHistory } from '../evidence/voter-history.ts';
import { PeerScore } from '../transport/peer-score.ts';
import type { CommitBundle, Envelope, Head, Inbox, SealedTransaction } from '../transport/transport.ts';
import { type AssembleOptions, assemble } from './assemble.ts';
import { CatchUp } from './catch-up.ts';
import { CommitCache } from './commit-cache.ts';
import { CommitServer } from './commit-server.ts';
import { envelopeOf } from './envelopes.ts';
import { Fetcher } from './fetch.ts';
import { Intake } from './intake.ts';
import { MempoolTransfer } from './mempool-transfer.ts';
import { headOf, type OperationalMember, operationalMembers } from './operational-members.ts';
import type { PeeringHandlers, PeeringOptions } from './options.ts';
import { type PeerContact, Presence } from './presence.ts';
import { ProposalCache } from './proposal-cache.ts';
import { RoundGossip } from './round-gossip.ts';
import { TransactionGossip } from './transaction-gossip.ts';
import { UnknownRegisters } from './unknown-registers.ts';

const retryMs = { first: 100, last: 2_000 } as const;

/**
 * The peer-to-peer logic between the transport and the registers: authenticates messages, fetches missing data, repeats lost
 * messages. All timers are those of the scheduler.
 */
export class Peering implements Inbox, Peers {
  readonly #options: PeeringOptions;
  readonly peerScore: PeerScore;
  readonly #presence: Presence;
  readonly #commits = new CommitCache();
  readonly #proposals = new ProposalCache();
  readonly #voters = new VoterHistory();
  readonly #equivocationDetector = new EquivocationDetector();
  readonly #evidenceCollector: EvidenceCollector;
  readonly #fetcher: Fetcher;
  readonly #assembleOptions: AssembleOptions;
  readonly #catchUp: CatchUp;
  readonly #gossip: RoundGossip;
  readonly #transactionGossip: TransactionGossip;
  readonly #mempoolTransfer: MempoolTransfer;
  readonly #intake: Intake;
  readonly #commitServer: CommitServer;
  #handlers: PeeringHandlers | undefined;
  #sleeps = 0;

  constructor(options: PeeringOptions) {
    const { self, version, transport, verifier, clock, scheduler, log, metrics } = options;
    this.#options = options;
    const send = (to: string, envelope: Envelope) => transport.send(to, envelope);
    const reportFault = (validatorId: string, reason: string) =>
      this.peerScore.reportFault(validatorId, reason);
    this.peerScore = new PeerScore(clock, log, (reason) => metrics.peerFault(reason));
    this.#fetcher = new Fetcher({ transport, scheduler, log, reportFault });
    this.#assembleOptions = {
      ...options,
      fetcher: this.#fetcher,
      settled: (registerId, txIds) => this.#attached.admission.settled(registerId, txIds),
    };
    const common = { self, version, clock, scheduler, log, verifier, send, reportFault };
    const shared = { ...common, fetcher: this.#fetcher };
    this.#presence = new Presence({
      ...shared,
      head: (registerId) => this.#head(registerId),
      isDraining: options.isDraining,
      onReturn: (peer) => this.#onReturn(peer),
    });
    this.#evidenceCollector = new EvidenceCollector({
      ...shared,
      voters: this.#voters,
      append: options.append,
      find: (registerId) => options.registers.get(registerId),
      onProven: (kind) => metrics.equivocation(kind),
      send: (to, registerId, evidence) => send(to, { kind: 'evidence', registerId, evidence }),
      broadcast: (register, evidence) =>
        this.#toMembers(register, { kind: 'evidence', registerId: register.id, evidence }),
      onEvidence: (registerId) => this.#attached.proposeSuspension(registerId),
    });
    this.#catchUp = new CatchUp({
      ...shared,
      assemble: (register, bundle, sources) => this.#assembleCommit(register, bundle, sources),
      fastForward: (register) => this.#attached.registers.fastForward(register.id),
    });
    this.#gossip = new RoundGossip({
      ...shared,
      sendState: (_register, to, state) => send(to, state),
      broadcast: (register, state) => this.#toMembers(register, state),
      forward: (register, to, message) => this.#forward(register, to, message),
      find: (registerId) => options.registers.get(registerId),
      onStalled: (register) => this.#transactionGossip.reannounce(register),
    });
    this.#transactionGossip = new TransactionGossip({
      ...shared,
      admit: (announced) => this.#attached.admission.submitAnnounced(announced),
      sleep: (ms) => this.#sleep(ms),
    });
    this.#mempoolTransfer = new MempoolTransfer({
      ...shared,
      find: (registerId) => options.registers.get(registerId),
      fastForward: (registerId) => this.#attached.registers.fastForward(registerId),
      reannounce: (register) => this.#transactionGossip.reannounce(register),
    });
    this.#commitServer = new CommitServer(this.#commits, (registerId) => options.registers.get(registerId));
    this.#intake = new Intake({
      ...shared,
      presence: this.#presence,
      commits: this.#commits,
      proposals: this.#proposals,
      voters: this.#voters,
      evidenceCollector: this.#evidenceCollector,
      catchUp: this.#catchUp,
      gossip: this.#gossip,
      transactionGossip: this.#transactionGossip,
      equivocationDetector: this.#equivocationDetector,
      forward: (register, to, message) => this.#forward(register, to, message),
      unknownRegisters: new UnknownRegisters(
        clock,
        (registerId) => this.#attached.registers.find(registerId),
        (...timer) => scheduler.set(...timer),
      ),
      find: (registerId) => options.registers.get(registerId),
    });
  }

  /** Connects the parts that are built on peering. Must precede all other calls. */
  attach(handlers: PeeringHandlers): void {
    this.#handlers = handlers;
  }

  get #attached(): PeeringHandlers {
    if (this.#handlers === undefined) throw new Error('peering was used before its handlers were attached');
    return this.#handlers;
  }

  start(): void {
    this.#presence.start();
  }

  stop(): void {
    this.#presence.stop();
  }

  /** Sends a heartbeat to all peers at once. */
  sendHeartbeats(): void {
    this.#presence.sendHeartbeats();
  }

  /** Announces the waiting transactions of a register to its other members again. */
  reannounce(register: RegisterChain): void {
    this.#transactionGossip.reannounce(register);
  }

  /** Validators that share a register with this one. */
  get peers(): readonly string[] {
    return this.#presence.peers;
  }

  /** When each peer was last heard. */
  get contacts(): readonly PeerContact[] {
    return this.#presence.peers.map((id) => this.#presence.contact(id));
  }

  /** Milliseconds by which the local clock is ahead of the peers' clocks; undefined before the first heartbeat. */
  get clockAheadMs(): number | undefined {
    return this.#presence.clockAheadMs;
  }

  /** The members of a register and when each was last heard; empty for a register that this validator does not run. */
  operational(registerId: string): readonly OperationalMember[] {
    const register = this.#options.registers.get(registerId);
    if (register === undefined) return [];
    return operationalMembers({ ...this.#options, presence: this.#presence }, register);
  }

  /** Proven faults of a register's members. */
  evidence(registerId: string): readonly ProvenEvidence[] {
    return this.#evidenceCollector.list(registerId);
  }

  /** Number of pieces of evidence held, over all registers. */
  get evidenceHeld(): number {
    return this.#evidenceCollector.size;
  }

  // Messages from other validators.

  receive(from: string, envelope: Envelope): void {
    if (from === this.#options.self || this.peerScore.isBanned(from)) return;
    this.#intake.dispatch(from, envelope);
  }

  connected(peer: string): void {
    this.#presence.heard(peer);
    this.#presence.connected(peer);
    for (const register of this.#options.registers.all()) {
      if (!isMember(register, peer)) continue;
      if (register.machine.step !== 'idle') this.#gossip.sendState(register, peer);
      this.#transactionGossip.reannounce(register, peer);
      this.#evidenceCollector.share(peer, register);
    }
  }

  records(from: string, registerId: string, transactionIds: readonly string[]): readonly SealedTransaction[] {
    return this.#commitServer.records(from, registerId, transactionIds);
  }

  commit(from: string, registerId: string, height: number): CommitBundle | undefined {
    return this.#commitServer.commit(from, registerId, height);
  }

  // Calls of the local registers.

  setMembers(registerId: string, members: readonly string[]): void {
    this.#presence.setMembers(registerId, members);
    this.#options.scheduler.defer(() => {
      this.#noteVoters(registerId);
      this.#intake.begin(registerId);
      this.#mempoolTransfer.watch(registerId);
    });
  }

  broadcast(registerId: string, message: Message, docket: Docket | undefined): void {
    const register = this.#options.registers.get(registerId);
    const envelope = register && envelopeOf(registerId, message, docket);
    if (register === undefined || envelope === undefined) return;
    this.#toMembers(register, envelope);
    this.#gossip.watch(register);
  }

  async findDocket(registerId: string, proposal: Proposal): Promise<Docket | 'invalid'> {
    const register = this.#options.registers.get(registerId);
    let delayMs: number = retryMs.first;
    while (register !== undefined && register.state.height === proposal.height) {
      const content = this.#proposals.find(registerId, proposal.value);
      const sources = content && [proposal.validatorId, ...content.sources, ...this.#others(register)];
      const assembly = content && { content, sources: [...new Set(sources)], certified: false };
      const docket = assembly && (await assemble(this.#assembleOptions, register, assembly));
      if (docket !== undefined) return docket;
      await this.#sleep(delayMs);
      delayMs = Math.min(delayMs * 2, retryMs.last);
    }
    return 'invalid';
  }

  requestCommit(registerId: string, height: number, validatorId: string): void {
    const register = this.#options.registers.get(registerId);
    if (register === undefined) return;
    const isSure = height === register.state.height;
    this.#catchUp.request(register, validatorId, isSure ? height + 1 : height, isSure);
  }

  announce(registerId: string, transactions: readonly PooledTransaction[]): void {
    const register = this.#options.registers.get(registerId);
    if (register === undefined) return;
    this.#transactionGossip.announce(register, transactions);
    this.#mempoolTransfer.watch(registerId);
  }

  decided(registerId: string, sealed: SealedDocket): void {
    const register = this.#options.registers.get(registerId);
    if (register === undefined) return;
    this.#voters.record(register);
    this.#proposals.forgetBelow(registerId, register.state.height);
    this.#equivocationDetector.decided(registerId);
    this.#evidenceCollector.decided(registerId);
    if (register.state.members.length === 1) return;
    this.#commits.add(registerId, sealed);
    this.#presence.onAdvanced(registerId);
  }

  attest(registerId: string, writer: string, docketNumber: number, vote: ConsensusVote): void {
    this.#options.transport.send(writer, { kind: 'attestation', registerId, docketNumber, vote });
  }

  stored(registerId: string, height: number, attested: readonly string[]): void {
    const register = this.#options.registers.get(registerId);
    if (register !== undefined) this.#toMembers(register, { kind: 'stored', registerId, height, attested });
  }

  report(registerId: string, evidence: Evidence): void {
    this.#evidenceCollector.take(this.#options.self, registerId, evidence);
  }

  restoreEvidence(registerId: string, evidence: readonly LoggedEvidence[]): void {
    this.#evidenceCollector.restoreEvidence(registerId, evidence);
  }

  isAbsent(validatorId: string): boolean {
    return this.#presence.isAbsent(validatorId);
  }

  countOperational(registerId: string): number {
    const register = this.#options.registers.get(registerId);
    if (register === undefined || register.state.members.length === 1) return 1;
    return this.operational(registerId).filter((member) => member.isOperational).length;
  }

  /** A silent validator was heard again: registers that waited for a quorum may continue. */
  #onReturn(peer: string): void {
    for (const register of this.#options.registers.all()) {
      if (isMember(register, peer)) register.wake();
    }
  }

  async #assembleCommit(
    register: RegisterChain,
    content: CommitBundle,
    sources: readonly string[],
  ): Promise<Docket | undefined> {
    const assembly = { content, sources: [...new Set(sources)], certified: true };
    const docket = await assemble(this.#assembleOptions, register, assembly);
    return docket === 'invalid' ? undefined : docket;
  }

  #forward(register: RegisterChain, to: string, message: Message): void {
    const docket = message.kind === 'proposal' ? register.findDocket(message.value) : undefined;
    const envelope = envelopeOf(register.id, message, docket);
    if (envelope !== undefined) this.#options.transport.send(to, envelope);
  }

  #toMembers(register: RegisterChain, envelope: Envelope): void {
    for (const validatorId of this.#others(register)) this.#options.transport.send(validatorId, envelope);
  }

  #others(register: RegisterChain): string[] {
    const { self } = this.#options;
    return register.state.members.flatMap(({ validatorId }) => (validatorId === self ? [] : validatorId));
  }

  #noteVoters(registerId: string): void {
    const register = this.#options.registers.get(registerId);
    if (register !== undefined) this.#voters.record(register);
  }

  #head(registerId: string): Head | undefined {
    const register = this.#options.registers.get(registerId);
    return register && headOf(register);
  }

  #sleep(ms: number): Promise<void> {
    this.#sleeps += 1;
    return new Promise((resolve) => this.#options.scheduler.set(`rest/${this.#sleeps}`, ms, resolve));
  }
}
