import { type ConsensusMessage, quorum } from '#core/ledger/consensus.ts';
import type { Effect, Message } from '../../chain/consensus/messages.ts';
import type { PooledTransaction } from '../../chain/pool/transaction.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import { identity } from '../../chain/sealing/sign-bytes.ts';
import type { RegisterState } from '../../chain/state/state.ts';
import type { ProvenEvidence } from '../../network/evidence/evidence.ts';
import type { FakeLedger } from '../fake-ledger.ts';
import type { SignedSubmission } from '../submissions.ts';
import type { Coverage } from './coverage.ts';
import { digestOf } from './digest.ts';
import type { Change, FaultModel } from './fault-model.ts';
import { Invariants } from './invariants.ts';
import type { Member, Process } from './member.ts';
import { short, type Trace } from './trace.ts';
import type { ViolationRecorder } from './violations.ts';
import type { Workload } from './workload.ts';

export interface ChainOptions {
  readonly registerId: string;
  /** Prefix of heights in the trace; empty in a world with one register. */
  readonly label: string;
  /** The register's initial validators. */
  readonly first: readonly string[];
  readonly members: readonly Member[];
  readonly ledger: FakeLedger;
  readonly workload: Workload;
  readonly faultModel: FaultModel;
  readonly violations: ViolationRecorder;
  readonly trace: Trace;
  readonly coverage: Coverage;
}

interface Offered {
  readonly txId: string;
  /** Undefined for a policy change. */
  readonly change: Change | undefined;
}

/** An omniscient view of one register of a world: its sets, its dockets, and its invariants. */
export class Chain {
  readonly registerId: string;
  readonly label: string;
  readonly first: readonly string[];
  readonly ledger: FakeLedger;
  readonly workload: Workload;
  readonly invariants: Invariants;
  /** Validators that the owner should remove or add first. */
  readonly preferences = new Map<string, 'in' | 'out'>();
  readonly #options: ChainOptions;
  readonly #membersAt = new Map<number, readonly string[]>();
  readonly #sealed = new Set<string>();
  /** Replay keys, and predecessors that may have one successor, with the transaction that has each. */
  readonly #exclusive = new Map<string, string>();
  readonly #accusations = new Set<string>();
  readonly #left = new Set<string>();
  readonly #givenUp = new Set<string>();
  readonly #everMembers: Set<string>;
  #highest = 0;
  #checkedDockets = 0;
  #restoredTo = 0;
  readonly #offered: Offered[] = [];

  constructor(options: ChainOptions) {
    const { registerId, label, first, ledger, workload, faultModel, violations } = options;
    this.registerId = registerId;
    this.label = label;
    this.first = first;
    this.ledger = ledger;
    this.workload = workload;
    this.#options = options;
    this.#membersAt.set(0, first);
    this.#everMembers = new Set(first);
    const membersAt = (height: number) => this.membersAt(height);
    this.invariants = new Invariants({ registerId, faultModel, violations, membersAt });
    faultModel.watch(registerId, {
      known: () => this.#membersAt,
      current: () => ledger.state?.members.map((each) => each.validatorId) ?? first,
      pending: () => this.#inFlight(),
    });
  }

  /** The validator set of a height, as far as a correct member has reached it. */
  membersAt(height: number): readonly string[] {
    const known = this.#membersAt.get(Math.min(height, this.#highest));
    if (known !== undefined) return known;
    const lower = [...this.#membersAt.keys()].filter((each) => each <= height);
    return this.#membersAt.get(Math.max(...lower)) ?? [];
  }

  /** Whether a validator is or was in the set, as far as clients can know. */
  wasMember(validatorId: string): boolean {
    return this.#everMembers.has(validatorId);
  }

  /** The highest height that a correct member works on. */
  get highest(): number {
    return this.#highest;
  }

  /** A correct member begins a height. */
  begins(height: number, members: readonly string[]): void {
    if (this.#membersAt.has(height)) return;
    this.#membersAt.set(height, members);
    for (const each of members) this.#everMembers.add(each);
    const liars = members.filter((each) =>
      this.#options.faultModel.isFaultyAt(each, this.registerId, height),
    );
    if (liars.length > 0 && 3 * liars.length + 1 > members.length) {
      const text = `${liars.join(' ')} of ${members.length} at ${this.label}${height}`;
      this.#options.violations.break('the simulator keeps to its bound', text);
    }
    this.#highest = Math.max(this.#highest, height);
  }

  /** The most advanced state of a correct member. */
  get state(): RegisterState | undefined {
    const states = this.#options.members.flatMap(({ id, engine }) => {
      const register = this.#options.faultModel.isFaulty(id)
        ? undefined
        : engine?.registers.get(this.registerId);
      return register === undefined ? [] : register.state;
    });
    return states.toSorted((a, b) => b.height - a.height)[0];
  }

  /** Submits a control transaction of the owner; its change is pending until it is sealed or refused. */
  offer(signed: SignedSubmission, change: Change | undefined): void {
    this.#offered.push({ txId: signed.txId, change });
    this.workload.offer(signed);
  }

  /**
   * The store lost dockets that were stored before they were forced into the logs, so that no log can restore them. So many
   * correct members halt that no quorum is left, and an operator must intervene.
   */
  get isLost(): boolean {
    const { members, faultModel } = this.#options;
    const current = this.membersAt(this.ledger.dockets.length);
    const working = current.filter((id) => {
      const engine = members.find((member) => member.id === id)?.engine;
      return !faultModel.isFaulty(id) && engine?.registers.get(this.registerId)?.status !== 'Halted';
    });
    return this.#restoredTo > 0 && working.length < quorum(current.length);
  }

  /** Everything is sealed, and every correct member knows it. */
  get isSettled(): boolean {
    if (this.isLost) return true;
    if (this.workload.open > 0 || this.unsettled.length > 0) return false;
    const { length } = this.ledger.dockets;
    const current = this.membersAt(length);
    return this.#options.members.every(({ id, engine }) => {
      if (this.#options.faultModel.isFaulty(id) || !current.includes(id)) return true;
      const register = engine?.registers.get(this.registerId);
      return (
        register !== undefined && register.state.height === length && register.facts.storedHeight === length
      );
    });
  }

  /** Accepted transactions that are neither sealed nor legitimately dropped. */
  get unsettled(): string[] {
    const { faultModel, members } = this.#options;
    const { sealed } = this.ledger;
    return [...this.workload.accepted.values()].flatMap(({ txId, by }) => {
      // A transaction that only a member with a lost volume had may be lost; a member that left the set still transfers it.
      if (sealed.has(txId) || [...by].every((id) => faultModel.isFaulty(id))) return [];
      if (this.#givenUp.has(txId)) return [];
      const isGivenUp = members.some(({ engine }) => {
        return engine?.registers.get(this.registerId)?.tombstones.find(txId) !== undefined;
      });
      return isGivenUp ? [] : txId;
    });
  }

  /** Records transactions that a member reported as dropped, since a member outside the set forgets them at a restart. */
  recordDropped({ tombstones }: RegisterChain): void {
    for (const txId of this.workload.accepted.keys()) {
      if (tombstones.find(txId) !== undefined) this.#givenUp.add(txId);
    }
  }

  /** Checks that are possible only at the end. */
  judgeEnd(): void {
    if (this.isLost) return;
    const { members, violations } = this.#options;
    const { dockets } = this.ledger;
    const { decidedHeight } = this.invariants;
    if (dockets.length < decidedHeight) {
      const text = `${decidedHeight} dockets were decided, ${dockets.length} stored`;
      violations.break('nothing sealed is lost', text);
    }
    if (this.isSettled) return;
    const lost = this.unsettled.filter((txId) => !this.#isSuspended(txId));
    if (lost.length > 0)
      violations.break('nothing accepted is lost', `no member has ${lost.map(short).join(' ')}`);
    const heights = members.map(({ id, engine }) => {
      return `${id} ${JSON.stringify(engine?.registers.get(this.registerId)?.facts)}`;
    });
    const waiting = this.unsettled.map(short).join(' ');
    const text = `${dockets.length} dockets stored, ${this.workload.open} submissions open, waiting: ${waiting}`;
    violations.break('progress after healing', [`${this.label}${text}`, ...heights].join('\n'));
  }

  /** The register service's database is restored from an older state. */
  restoreStore(height: number): void {
    const { ledger } = this;
    this.#options.trace.add(
      'WORLD',
      `the store goes back from ${this.label}${ledger.dockets.length} to ${height} dockets`,
    );
    void ledger.restoreTo(height);
    this.#restoredTo = height;
    this.#checkedDockets = height;
    this.#sealed.clear();
    this.#exclusive.clear();
    for (const { docket } of ledger.dockets.slice(0, height)) {
      for (const transaction of docket.transactions) {
        this.#sealed.add(transaction.txId);
        this.#keepExclusive(transaction);
      }
    }
  }

  /** The member has lost the transactions that it accepted. */
  forget(validatorId: string): void {
    for (const { by } of this.workload.accepted.values()) by.delete(validatorId);
  }

  signed(validatorId: string, message: ConsensusMessage, bytes: Uint8Array): void {
    const value = short(message.docket?.docketHash);
    const kind = ['', 'proposal', 'prevote', 'precommit'][message.type];
    const where = `${this.label}${message.height}/${message.round}`;
    this.#options.trace.add('signer', `${validatorId} ${kind} ${where} ${value}`);
    if (message.type === 1 && message.polRound >= 0) this.#options.coverage.add('docket proposed again');
    this.invariants.signed(validatorId, message, bytes);
  }

  released(validatorId: string, message: Message): void {
    if (message.kind === 'proposal' || this.#options.faultModel.isByzantine(validatorId)) return;
    const { kind, height, round, value } = message;
    const name = value === undefined ? '' : identity(value);
    this.invariants.voted(validatorId, { kind, height, round, value: name });
  }

  decided(validatorId: string, processName: string, effect: Extract<Effect, { kind: 'decide' }>): void {
    const { height, round, value } = effect;
    const { trace, coverage } = this.#options;
    trace.add(processName, `decides ${this.label}${height}/${round} ${short(value.hash)}`);
    if (round > 0) coverage.add('docket decided in round 1 or later');
    this.invariants.decided(validatorId, effect);
  }

  /** After every event: checks new dockets in the store. */
  checkStore(): void {
    const { dockets } = this.ledger;
    for (; this.#checkedDockets < dockets.length; this.#checkedDockets += 1) {
      const docket = dockets[this.#checkedDockets]?.docket;
      if (docket === undefined) return;
      const { hash, merkleRoot, logRoot, docketNumber, transactionIds } = docket.header;
      const ids = transactionIds.map(short).join(' ');
      this.#options.trace.add('register', `stores ${this.label}${docketNumber} ${short(hash)}: ${ids}`);
      this.invariants.stored(docketNumber, `${hash}${merkleRoot}${logRoot}`);
      for (const txId of transactionIds) this.#seal(txId);
      for (const transaction of docket.transactions) this.#keepExclusive(transaction);
    }
  }

  /** After every event: checks new state of one correct process. */
  checkProcess({ id }: Member, { handle, engine, checked }: Process, { state }: RegisterChain): void {
    const evidence = engine?.peering.evidence(this.registerId) ?? [];
    if (evidence.length > 0) this.#checkEvidence(id, handle.name, evidence);
    if (state.height <= (checked.get(this.registerId) ?? -1)) return;
    checked.set(this.registerId, state.height);
    this.begins(
      state.height,
      state.members.map((each) => each.validatorId),
    );
    this.invariants.reached(handle.name, state.height, digestOf(state));
  }

  #checkEvidence(validatorId: string, processName: string, evidence: readonly ProvenEvidence[]): void {
    const { trace, coverage } = this.#options;
    for (const { evidence: proof, height, validatorIds } of evidence) {
      const { kind } = proof;
      const text = `holds ${kind} against ${validatorIds.join(' ')} at ${this.label}${height}`;
      if (this.#accusations.has(`${processName} ${text}`)) continue;
      this.#accusations.add(`${processName} ${text}`);
      trace.add(processName, text);
      if (kind !== 'conflicting-certificate') coverage.add(`evidence: ${kind}`);
      for (const accused of validatorIds) this.invariants.accused(validatorId, kind, accused);
    }
  }

  /** No two transactions have one replay key, or follow one predecessor that may have one successor. */
  #keepExclusive({ txId, replayKey, exclusivePredecessor, previousTransactionId }: PooledTransaction): void {
    const keys = [replayKey, exclusivePredecessor ? previousTransactionId : undefined];
    for (const key of keys) {
      const other = key === undefined ? undefined : this.#exclusive.get(key);
      if (other !== undefined && other !== txId)
        this.#options.violations.break('no second successor, no replay', `${txId} is sealed beside ${other}`);
      if (key !== undefined) this.#exclusive.set(key, txId);
    }
  }

  #seal(txId: string): void {
    const { violations, coverage } = this.#options;
    if (this.#sealed.has(txId)) violations.break('sealed once', `${txId} is sealed twice`);
    this.#sealed.add(txId);
    const offered = this.#offered.find((each) => each.txId === txId);
    if (offered?.change !== undefined) this.#changed(offered.change);
    else if (offered !== undefined) coverage.add('policy changed');
  }

  #changed({ kind, validatorId }: Change): void {
    const { coverage, faultModel } = this.#options;
    const isByzantine = faultModel.isByzantine(validatorId);
    const crashed = coverage.has('member killed') || coverage.has('member lost power');
    const isBesideLiars = this.ledger.state?.members.some((each) => faultModel.isByzantine(each.validatorId));
    if (crashed && isBesideLiars) coverage.add('set changed beside Byzantine members and crashes');
    coverage.add(kind === 'add' ? 'validator added' : 'validator removed');
    if (kind === 'remove') this.#left.add(validatorId);
    else if (this.#left.has(validatorId)) coverage.add('validator came back');
    if (kind === 'add' && faultModel.hasLostState(validatorId))
      coverage.add('one with an old volume came back');
    if (isByzantine) coverage.add(kind === 'add' ? 'Byzantine member added' : 'Byzantine member removed');
  }

  #inFlight(): readonly Change[] {
    const { refused } = this.workload;
    return this.#offered.flatMap(({ txId, change }) => {
      const isOver = change === undefined || this.ledger.sealed.has(txId) || refused.has(txId);
      return isOver ? [] : change;
    });
  }

  #isSuspended(txId: string): boolean {
    const { members, faultModel } = this.#options;
    return members.some(({ id, engine }) => {
      const register = engine?.registers.get(this.registerId);
      return !faultModel.isByzantine(id) && register?.pool.find(txId) !== undefined;
    });
  }
}
