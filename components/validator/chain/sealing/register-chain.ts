import { encodeHex } from '#core/encoding/hex.ts';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import { proposerOf } from '#core/ledger/consensus.ts';
import type { Docket } from '../building/docket.ts';
import { judgeDocket, judgeProposal } from '../building/judge.ts';
import { bft1 } from '../consensus/bft1.ts';
import type { Machine } from '../consensus/machine-state.ts';
import type { Message, Value } from '../consensus/messages.ts';
import { Tally } from '../consensus/tally.ts';
import { RegisterKeys } from '../keys/register-keys.ts';
import { Pool } from '../pool/pool.ts';
import type { Tombstone } from '../pool/tombstones.ts';
import { Tombstones } from '../pool/tombstones.ts';
import type { LogRecord, Mode } from '../records/entries.ts';
import { applyDocket, type RegisterState } from '../state/state.ts';
import { PinnedWorkflows } from '../workflows/pinned-workflows.ts';
import { Attestations } from './attestations.ts';
import { batchDelayMs, maxUnstored, minMembers, storeDelayMs } from './block-interval.ts';
import { carriedRecords } from './carried-records.ts';
import { ConsensusDriver } from './consensus-driver.ts';
import { Evictions } from './eviction.ts';
import type { SealedDocket, WriteAnswer } from './ports.ts';
import { proposeDocket } from './propose.ts';
import type { RestoredRegister } from './rebuild.ts';
import { RecentRoots } from './recent-roots.ts';
import type { RegisterOptions } from './register-options.ts';
import { Rejections } from './rejections.ts';
import { signerFor } from './signer-key.ts';
import { type RegisterStatus, type SealResult, statusOf } from './status.ts';
import { Waiters } from './waiters.ts';
import { WorkCounter } from './work-counter.ts';
import { DocketWriter } from './writer.ts';

/** One register at this validator: its pool, its consensus, the storing of its dockets, and its mode. */
export class RegisterChain {
  readonly id: string;
  readonly pool: Pool;
  readonly tombstones = new Tombstones();
  /** Keys of the decided dockets, while they are loaded. */
  readonly keys: RegisterKeys;
  readonly tally: Tally;
  readonly work: WorkCounter;
  readonly rejections: Rejections;
  readonly workflows: PinnedWorkflows;
  readonly #options: RegisterOptions;
  readonly #driver: ConsensusDriver;
  readonly #writer: DocketWriter;
  readonly #attestations: Attestations;
  readonly #waiters: Waiters;
  readonly #evictions: Evictions;
  #state: RegisterState;
  #mode: Mode = 'Running';
  #haltedBecause: string | undefined;
  #decidedAtMs = 0;
  /** Transactions of the latest decided docket. */
  #lastTransactions = 0;
  #storedHeight: number;
  readonly #roots = new RecentRoots();
  #limit: number | undefined;

  constructor(options: RegisterOptions, state: RegisterState, workflows?: PinnedWorkflows) {
    this.workflows = workflows ?? new PinnedWorkflows(state.registerId, options.ledger);
    this.id = state.registerId;
    this.#options = options;
    this.#state = state;
    this.#storedHeight = state.height;
    if (state.height > 0) this.#roots.add(state.height, encodeHex(state.log.root()));
    this.pool = new Pool(options.bounds, () => this.#state.rules.maxPendingPerSender);
    this.keys = new RegisterKeys(options.areKeysGated);
    this.#evictions = new Evictions(this.pool, this.tombstones, () => options.clock.nowMs());
    this.work = new WorkCounter(options.clock);
    this.tally = new Tally(options.self, () => options.clock.nowMs());
    this.#writer = new DocketWriter({
      registerId: this.id,
      ledger: options.ledger,
      scheduler: options.scheduler,
      log: options.log,
      nowMs: () => options.clock.nowMs(),
      onStored: (sealed, attested) => this.#onStored(sealed, attested),
      onRefused: (sealed, answer) => this.#onRefused(sealed, answer),
    });
    this.#driver = new ConsensusDriver(
      {
        ...options,
        consensus: this.tally.instrument(options.consensus ?? bft1()),
        build: () => this.work.timed('built', () => this.#build()),
        judge: (at, docket) => this.work.timed('judged', () => judgeProposal(at, docket, this.pool)),
        onDecided: (docket, certificate) => this.#onDecided(docket, certificate),
        onEvidence: (evidence) => options.peers.report(this.id, evidence),
        draftAttestation: (header, members) => this.#attestations.draft(header, members),
        onInvalid: (proposal, found) => this.rejections.reject(proposal, found, this.#state.members),
      },
      state,
    );
    this.#attestations = new Attestations(this.id, options);
    this.rejections = new Rejections(this.id, options);
    this.#waiters = new Waiters(this.id, options.scheduler);
    this.#announceMembers();
  }

  /** Root of the register's log at one of its latest sizes, lower hex. */
  rootAt(size: number): string | undefined {
    return this.#roots.at(size);
  }

  get state(): RegisterState {
    return this.#state;
  }

  get status(): RegisterStatus {
    return statusOf(this.#mode, this.#haltedBecause !== undefined, this.#options.isFull());
  }

  /** Paused registers accept transactions; stopped, halted and full ones do not. */
  get isOpen(): boolean {
    return this.status === 'Running' || this.status === 'Paused';
  }

  get facts() {
    return {
      startedAtMs: this.work.startedAtMs,
      decidedAtMs: this.#decidedAtMs,
      docketsBuilt: this.work.total.decided,
      transactionsProcessed: this.work.total.confirmed,
      storedHeight: this.#storedHeight,
      unstored: this.#writer.size,
      isWaitingForValidators: this.status === 'Running' && this.#lacksMembers,
      height: this.#driver.height,
      round: this.#driver.round,
      step: this.#driver.step,
      quorum: this.#driver.quorum,
      haltedBecause: this.#haltedBecause,
    };
  }

  /** Log records of a segment about to be deleted that must be written to another segment. */
  carryOver(segment: number, into: number): Iterable<LogRecord> {
    return carriedRecords({
      state: this.#state,
      storedHeight: this.#storedHeight,
      mode: this.#mode,
      tombstones: this.tombstones.all(),
      transactions: this.pool.moveSegment(segment, into),
      unstored: this.#writer.sealed,
      own: this.#driver.own,
    });
  }

  /**
   * Starts work if possible: called when transactions arrive, a docket is stored, the mode changes, or a member is heard again.
   * Members other than the proposer start too, so that their timers skip a silent proposer.
   */
  wake(): void {
    if (this.status !== 'Running' || this.pool.size === 0 || !this.#mayPropose) return;
    if (this.#driver.isIdle && this.#mustDelay()) return;
    this.#driver.work();
  }

  /** Whether a proposal waits for more transactions, until the block interval ends. */
  #mustDelay(): boolean {
    const { scheduler, clock, buildLimits, epochs } = this.#options;
    const sinceDecidedMs = clock.nowMs() - this.#decidedAtMs;
    const { size: waiting, bytes: waitingBytes, latestAtMs } = this.pool;
    const sinceArrivalMs = clock.nowMs() - latestAtMs;
    const { inFlight } = this.#writer;
    const lastTransactions = this.#lastTransactions;
    const isAdmitting = epochs.isActive;
    const now = {
      inFlight,
      waiting,
      waitingBytes,
      sinceDecidedMs,
      sinceArrivalMs,
      isAdmitting,
      lastTransactions,
    };
    const waitMs = this.#limit === undefined ? batchDelayMs(this.#state.rules, now, buildLimits) : 0;
    if (waitMs > 0) scheduler.set(`build/${this.id}`, waitMs, () => this.wake());
    return waitMs > 0;
  }

  get #mayPropose(): boolean {
    return !this.#options.isDraining() && this.#writer.size < maxUnstored && !this.#lacksMembers;
  }

  /** Too few members are operational, so this member does not propose. */
  get #lacksMembers(): boolean {
    return this.#options.peers.countOperational(this.id) < minMembers(this.#state, this.#driver.quorum);
  }

  /** Handles an authentic message of another member. */
  receive(message: Message, docket: Docket | undefined): void {
    if (this.isOpen) this.#driver.receive(message, docket);
  }

  /** The state of the consensus machine at the current height. */
  get machine(): Readonly<Machine> {
    return this.#driver.machine;
  }

  /** The docket of this height with a given value, if available. */
  findDocket(value: Omit<Value, 'timestamp'>): Docket | undefined {
    return this.#driver.findDocket(value);
  }

  /** Accepts a docket that other members decided. The caller has verified certificate, hashes and records. */
  commit({ docket, certificate }: SealedDocket): void {
    const { docketNumber } = docket.header;
    if (this.status === 'Halted' || docketNumber !== this.#state.height) return;
    const violations = judgeDocket(this.#state, docket);
    if (violations.length > 0) {
      this.halt(`a quorum sealed docket ${docketNumber}, which is invalid here: ${violations[0]?.code}`);
      return;
    }
    this.#driver.commit(docket, certificate);
  }

  /** Fast-forwards to the register service's state; `sealed` names the waiting transactions that it contains. */
  fastForward(state: RegisterState, sealed: readonly string[]): void {
    if (this.status === 'Halted' || state.height <= this.#state.height) return;
    const { registerId, height, headHash } = state;
    this.#writer.settle(height);
    this.#state = state;
    this.keys.skip();
    this.#storedHeight = height;
    this.#roots.add(height, encodeHex(state.log.root()));
    this.#append({ kind: 'snapshot', value: { registerId, height, headHash } });
    this.removeSealed(sealed);
    this.#announceMembers();
    this.#driver.begin(state);
    this.wake();
  }

  /** Removes transactions that are stored although they were not decided here. */
  removeSealed(txIds: readonly string[]): void {
    this.pool.markStored(txIds, this.#options.epochs.latest);
  }

  /** Another member reports the height of the register service. */
  onStoredReport(height: number, attested: readonly string[]): void {
    this.#attestations.onWriterReport(height - 1, attested);
    this.#writer.onReportedHeight(height);
    if (this.#waiters.size > 0) this.#writer.verifyNow();
    else this.wake();
  }

  /** Another member's attestation; the caller has verified it. */
  addAttestation(docketNumber: number, vote: ConsensusVote): void {
    this.#writer.attest(docketNumber, vote);
  }

  /** Dockets that are decided and not known to be stored. */
  get unstored(): readonly SealedDocket[] {
    return this.#writer.sealed;
  }

  /** Stops signing until an operator intervenes: dockets are final, so there is no reorganisation. */
  halt(reason: string): void {
    if (this.#haltedBecause !== undefined) return;
    this.#haltedBecause = reason;
    this.#options.log.error({ registerId: this.id, reason }, 'register halted; an operator must act');
    this.#driver.stop();
    this.#writer.stop();
  }

  /** Proposes now and waits until the decided docket is stored. */
  async seal(maxTransactions: number | undefined, timeoutMs: number): Promise<SealResult> {
    if (this.status !== 'Running') return { outcome: 'not-running', docketNumber: 0 };
    const hasWork = this.pool.size > 0 || !this.#driver.isIdle;
    if (!hasWork && this.#writer.size === 0) return { outcome: 'nothing-pending', docketNumber: 0 };
    const docketNumber = hasWork ? this.#state.height : this.#state.height - 1;
    this.#limit = maxTransactions;
    const stored = this.#waiters.wait(docketNumber, timeoutMs);
    this.wake();
    const header = await stored;
    if (this.#limit === maxTransactions) this.#limit = undefined;
    return { outcome: header === undefined ? 'timeout' : 'sealed', docketNumber, header };
  }

  setMode(mode: Mode): void {
    this.#mode = mode;
    this.wake();
  }

  /** Drops an accepted transaction that can no longer be sealed, and its descendants. */
  drop(tombstone: Tombstone): Tombstone[] {
    return this.#evictions.drop(tombstone);
  }

  /** Restores the state that the log held at start. Must precede all other calls. */
  async restore(recovered: RestoredRegister): Promise<void> {
    this.#mode = recovered.mode;
    for (const sealed of recovered.decided) {
      this.pool.seal(sealed.docket.transactions);
      this.#applyDecided(sealed, this.#options.self, 0);
    }
    if (recovered.decided.length > 0) this.#driver.begin(this.#state);
    const current = recovered.own.filter((own) => own.message.height === this.#state.height);
    await this.#driver.resume(current, recovered.ownDockets);
    this.wake();
  }

  stop(): void {
    this.#driver.stop();
    this.#writer.stop();
    this.#options.scheduler.clear(`build/${this.id}`);
  }

  /** Drops waiting transactions that the register's rules no longer admit. */
  dropInadmissible(): Tombstone[] {
    return this.#evictions.dropInadmissible(this.#state);
  }

  #build(): Docket | undefined {
    if (this.status !== 'Running' || !this.#mayPropose) return undefined;
    const limit = this.#limit;
    this.#limit = undefined;
    return this.preview(limit);
  }

  /** The docket that would be proposed now, by this member or by the one with that address. Has no effect. */
  preview(most: number | undefined, address?: string): Docket | undefined {
    const { self, clock, signer, genesisConfig, buildLimits } = this.#options;
    const walletAddress = address ?? signerFor(this.#state.members, self, signer).key.walletAddress;
    const limit = Math.min(most ?? buildLimits.maxTransactions, buildLimits.maxTransactions);
    const now = { nowMicros: clock.nowMicros(), nowMs: clock.nowMs() };
    return proposeDocket(this.#state, this.pool, { walletAddress, ...now, limit, genesisConfig });
  }

  #onDecided(docket: Docket, certificate: Certificate): void {
    const { metrics, peers, self } = this.#options;
    const sealed = { docket, certificate };
    const { ledger } = this.#state;
    const members = this.#state.members.map((member) => member.validatorId);
    const writer = proposerOf(members, docket.header.docketNumber, certificate.round);
    const { dropped, added } = this.pool.seal(docket.transactions);
    for (const value of added) this.#append({ kind: 'transaction', value });
    this.#append({ kind: 'decided', value: { header: docket.header, certificate } });
    this.#applyDecided(sealed, writer, storeDelayMs(members, self, writer));
    const superseded = this.#evictions.addSuperseded(dropped);
    const inadmissible = this.#state.ledger === ledger ? [] : this.dropInadmissible();
    for (const value of [...superseded, ...inadmissible]) this.#append({ kind: 'tombstone', value });
    this.work.count('decided');
    metrics.decided(docket.transactions.length, certificate.round + 1);
    this.#driver.begin(this.#state);
    peers.decided(this.id, sealed);
    this.wake();
  }

  /** Applies a decided docket and queues it for storing. */
  #applyDecided(sealed: SealedDocket, writer: string, afterMs: number): void {
    const { header } = sealed.docket;
    const { membersHash: before, members } = this.#state;
    this.#state = applyDocket(this.#state, sealed.docket);
    this.keys.add(sealed.docket);
    this.#roots.add(header.docketNumber + 1, header.logRoot);
    this.#decidedAtMs = this.#options.clock.nowMs();
    this.#lastTransactions = header.transactionIds.length;
    this.#writer.enqueue(sealed, this.#attestations.attest(header, writer, members), afterMs);
    if (this.#state.membersHash !== before) this.#announceMembers();
  }

  #announceMembers(): void {
    const members = this.#state.members.map((member) => member.validatorId);
    this.#options.peers.setMembers(this.id, members);
  }

  #onStored({ docket }: SealedDocket, attested: readonly string[] | undefined): void {
    const { epochs, metrics, peers } = this.#options;
    const { docketNumber, transactionIds } = docket.header;
    this.#append({ kind: 'stored', value: { registerId: this.id, docketNumber } });
    this.pool.markStored(transactionIds, epochs.latest);
    this.pool.forgetStored(epochs.oldestActive);
    this.#storedHeight = docketNumber + 1;
    this.work.count('stored');
    this.work.count('confirmed', transactionIds.length);
    metrics.stored(transactionIds.length);
    if (attested !== undefined) {
      this.#attestations.onWriterReport(docketNumber, attested);
      peers.stored(this.id, docketNumber + 1, attested);
    }
    void this.#attestations.stored(docketNumber);
    this.#waiters.stored(docket.header);
    this.wake();
  }

  #onRefused({ docket }: SealedDocket, answer: WriteAnswer): void {
    const { docketNumber, hash } = docket.header;
    this.#options.log.error({ registerId: this.id, docketNumber, hash, ...answer }, 'docket refused');
    this.halt(`docket ${docketNumber} was refused by the register service: ${answer.outcome}`);
  }

  /** A lost record costs a repetition after a restart, not safety. The log reports its own failure. */
  #append(record: LogRecord): void {
    this.#options.append(record).catch((error: unknown) => this.#options.onFailed(error));
  }
}
