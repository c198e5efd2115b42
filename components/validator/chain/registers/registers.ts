import type { Verifier } from '#core/crypto/verify.ts';
import { validationError } from '#core/errors/validation-codes.ts';
import { activeMembers } from '#core/ledger/governance/rules.ts';
import type { Docket } from '../building/docket.ts';
import type { Consensus } from '../consensus/bft1.ts';
import type { Tombstone } from '../pool/tombstones.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import { decodeTransaction, type LogRecord } from '../records/entries.ts';
import { findGap, type LoggedDockets, type RecoveredRegister } from '../records/recovery.ts';
import { conflictTombstone, replayTombstone } from '../sealing/eviction.ts';
import type { SealedDocket } from '../sealing/ports.ts';
import { rebuildDocket } from '../sealing/rebuild.ts';
import { RegisterChain, type RegisterOptions } from '../sealing/register-chain.ts';
import {
  type Genesis,
  genesisConfigOf,
  genesisState,
  judgeGenesis,
  readControlRecord,
} from '../state/genesis.ts';
import { buildState, isMember, type RegisterState } from '../state/state.ts';
import type { VolumeGaps } from './volume-gaps.ts';

export interface RegistersOptions extends Omit<RegisterOptions, 'genesisConfig' | 'append' | 'consensus'> {
  append(...records: LogRecord[]): Promise<number>;
  /** The installation: the network of registers that begin here. */
  readonly networkId: string;
  readonly verifier: Verifier;
  /** The consensus functions of a register; bft-1 when absent. */
  readonly consensusOf?: ((registerId: string) => Consensus) | undefined;
  /** The dockets of a register that the log holds, from one number on. Only allowed before anything is appended. */
  readLoggedDockets(registerId: string, from: number): Promise<LoggedDockets>;
  readonly gaps: VolumeGaps;
}

const unknownForMs = 1_000;
const maxUnknown = 10_000;
const lookupBatch = 500;
/** Upper bound of the duration of an admission. */
const admissionMs = 10_000;

interface LoggedEntry {
  readonly transaction: PooledTransaction;
  readonly segment: number;
}

interface PendingEntry extends LoggedEntry {
  /** The sealed transaction with the same replay key; empty when there is none. */
  readonly sealedReplay: string;
}

/** The registers that this validator is a member of. */
export class Registers {
  readonly #options: RegistersOptions;
  readonly #registers = new Map<string, RegisterChain>();
  readonly #loading = new Map<string, Promise<RegisterChain | undefined>>();
  readonly #unknown = new Map<string, number>();

  constructor(options: RegistersOptions) {
    this.#options = options;
  }

  get(registerId: string): RegisterChain | undefined {
    return this.#registers.get(registerId);
  }

  all(): Iterable<RegisterChain> {
    return this.#registers.values();
  }

  get size(): number {
    return this.#registers.size;
  }

  /** The register, if this validator is a member by its own state. */
  getOwn(registerId: string): RegisterChain | undefined {
    const known = this.#registers.get(registerId);
    return known !== undefined && isMember(known, this.#options.self) ? known : undefined;
  }

  /** As getOwn; also asks the register service for an unknown register, at most once a second. */
  async find(registerId: string): Promise<RegisterChain | undefined> {
    const own = this.getOwn(registerId);
    if (own !== undefined) return own;
    const known = this.#registers.get(registerId);
    const nowMs = this.#options.clock.nowMs();
    if ((this.#unknown.get(registerId) ?? 0) > nowMs) return undefined;
    const register = await (known === undefined ? this.#load(registerId, undefined) : this.#rejoin(known));
    if (register === undefined) this.#rememberUnknown(registerId, nowMs + unknownForMs);
    return register;
  }

  /** A validator that left the set no longer decides dockets, so the register service's state shows whether it was admitted again. */
  #rejoin(register: RegisterChain): Promise<RegisterChain | undefined> {
    return this.#once(register.id, async () => {
      await this.fastForward(register.id);
      return isMember(register, this.#options.self) ? register : undefined;
    });
  }

  /** Begins a register, or returns the one that has begun. Throws AppError for an inadmissible control record. */
  async begin(registerId: string, genesis: Genesis): Promise<RegisterChain> {
    const known = this.#registers.get(registerId);
    // A register that never got its genesis transaction is begun again with the new record.
    const isEmpty = known !== undefined && known.state.height === 0 && known.pool.isEmpty;
    if (known !== undefined && !isEmpty) return known;
    const { self, verifier, networkId } = this.#options;
    const record = readControlRecord(genesis.payload);
    const violations = judgeGenesis(record, registerId, self, verifier);
    if (violations.length > 0) throw validationError(violations);
    if (known !== undefined) {
      known.stop();
      this.#registers.delete(registerId);
    }
    const sealed = await this.#load(registerId, undefined);
    return sealed ?? this.#registers.get(registerId) ?? this.#add(genesisState(genesis, networkId, verifier));
  }

  /** Restores a register after a start from the log's state. */
  async restore(registerId: string, recovered: RecoveredRegister | undefined): Promise<void> {
    const register = await this.#load(registerId, recovered);
    if (register !== undefined) this.#options.gaps.compare(registerId, recovered, register.state.height);
  }

  /**
   * Fast-forwards a register to the register service's state when that is ahead; false when it is not. Waiting transactions
   * that were sealed meanwhile are looked up, and looked up again after the admissions in flight have ended.
   */
  async fastForward(registerId: string): Promise<boolean> {
    const register = this.#registers.get(registerId);
    const facts = await this.#options.ledger.findRegister(registerId);
    if (register === undefined || facts === undefined || facts.height <= register.state.height) return false;
    register.fastForward(buildState(facts, this.#options.verifier), await this.#sealedOf(register));
    const again = async () => {
      register.removeSealed(await this.#sealedOf(register));
      this.#evict(register, await this.#findConflicting([...register.pool.waiting()]));
    };
    // Retried until the register service answers: otherwise sealed transactions would be proposed here and refused by all peers.
    const later = () =>
      this.#options.scheduler.set(`jump/${registerId}`, admissionMs, () => void again().catch(later));
    later();
    return true;
  }

  /** The ids of waiting transactions that the register service has sealed. */
  async #sealedOf(register: RegisterChain): Promise<string[]> {
    const waiting = [...register.pool.waiting()].map((transaction) => ({ transaction, segment: 0 }));
    const pending = await this.#findUnsealed(register.id, waiting);
    const open = new Set(pending.map(({ transaction }) => transaction.txId));
    return waiting.flatMap(({ transaction: { txId } }) => (open.has(txId) ? [] : txId));
  }

  stop(): void {
    for (const register of this.#registers.values()) register.stop();
  }

  #rememberUnknown(registerId: string, untilMs: number): void {
    this.#unknown.delete(registerId);
    this.#unknown.set(registerId, untilMs);
    const [oldest] = this.#unknown.keys();
    if (this.#unknown.size > maxUnknown && oldest !== undefined) this.#unknown.delete(oldest);
  }

  #load(registerId: string, recovered: RecoveredRegister | undefined): Promise<RegisterChain | undefined> {
    return this.#once(registerId, () => this.#loadOnce(registerId, recovered));
  }

  #once(
    registerId: string,
    act: () => Promise<RegisterChain | undefined>,
  ): Promise<RegisterChain | undefined> {
    let loading = this.#loading.get(registerId);
    if (loading === undefined) {
      loading = act().finally(() => this.#loading.delete(registerId));
      this.#loading.set(registerId, loading);
    }
    return loading;
  }

  async #loadOnce(
    registerId: string,
    recovered: RecoveredRegister | undefined,
  ): Promise<RegisterChain | undefined> {
    const reason = recovered && (await this.#restoreLostDockets(registerId, recovered));
    const state = await this.#stateOf(registerId, recovered);
    if (state === undefined) {
      if (reason !== undefined) this.#options.log.error({ registerId }, reason);
      return undefined;
    }
    const known = this.#registers.get(registerId);
    if (known !== undefined) return known;
    const pending = recovered === undefined ? [] : await this.#findUnsealed(registerId, loggedOf(recovered));
    const conflicting = await this.#findConflicting(pending.map(({ transaction }) => transaction));
    const register = this.#add(state);
    if (recovered !== undefined) this.#options.peers.restoreEvidence(registerId, recovered.evidence);
    if (reason !== undefined) register.halt(reason);
    else if (recovered !== undefined) {
      const secondSuccessors = findSecondSuccessors(pending);
      await this.#restorePool(
        register,
        recovered,
        pending.filter((each) => !secondSuccessors.has(each.transaction.txId)),
      );
      this.#evict(register, conflicting);
      await this.#restoreDockets(register, recovered, secondSuccessors);
    }
    return register;
  }

  /**
   * A register service that is behind what it had stored was restored from an older state. Missing dockets that this log
   * still holds become decided and not stored again; the register service verifies them like any other. Returns the reason
   * why the register must halt when the log lacks one of them.
   */
  async #restoreLostDockets(registerId: string, recovered: RecoveredRegister): Promise<string | undefined> {
    const { ledger, log } = this.#options;
    const height = (await ledger.findRegister(registerId))?.height;
    const { storedHeight } = recovered;
    if (height !== undefined && height >= storedHeight) return undefined;
    if (storedHeight === 0) return undefined;
    if (height === undefined)
      return `the register service had docket ${storedHeight - 1} of this register and no longer knows the register; restore its database`;
    const loggedDockets = await this.#options.readLoggedDockets(registerId, height);
    const gap = findGap(loggedDockets, height, storedHeight);
    if (gap !== undefined) {
      return `the register service lost dockets ${height} to ${storedHeight - 1}, and the log of this validator lacks docket ${gap}; restore its database`;
    }
    for (const [number, docket] of loggedDockets.decided) recovered.decided.set(number, docket);
    for (const [txId, placed] of loggedDockets.transactions) recovered.transactions.set(txId, placed);
    log.warn(
      { registerId, height, storedHeight },
      'the register service lost dockets; this validator stores them again from its log',
    );
    return undefined;
  }

  /** The register service's state; before docket 0 is stored, the state that the logged genesis transaction defines. */
  async #stateOf(
    registerId: string,
    recovered: RecoveredRegister | undefined,
  ): Promise<RegisterState | undefined> {
    const { self, networkId, ledger, verifier } = this.#options;
    const facts = await ledger.findRegister(registerId);
    // A deleted register is not resumed, whatever the log still holds.
    if (facts?.status === 'Deleted') return undefined;
    if (facts !== undefined && facts.height > 0) {
      const isOurs = activeMembers(facts.ledger).some((member) => member.validatorId === self);
      // Transactions accepted before this validator left the set must still be transferred to the remaining members.
      const mayOwe = recovered !== undefined && recovered.transactions.size > 0;
      return isOurs || mayOwe ? buildState(facts, verifier) : undefined;
    }
    for (const placed of recovered?.transactions.values() ?? []) {
      const transaction = decodeTransaction(placed.transaction);
      if (transaction.type === 'Genesis') return genesisState(transaction, networkId, verifier);
    }
    return undefined;
  }

  #add(state: RegisterState): RegisterChain {
    const { networkId } = this.#options;
    const consensus = this.#options.consensusOf?.(state.registerId);
    const register = new RegisterChain(
      {
        ...this.#options,
        consensus,
        genesisConfig: (genesis) => genesisConfigOf(genesis.payload, networkId),
      },
      state,
    );
    this.#registers.set(state.registerId, register);
    this.#unknown.delete(state.registerId);
    return register;
  }

  /** The transactions that the register service has not sealed. Fails as a whole. */
  async #findUnsealed(registerId: string, logged: readonly LoggedEntry[]): Promise<PendingEntry[]> {
    const pending: PendingEntry[] = [];
    for (let at = 0; at < logged.length; at += lookupBatch) {
      const batch = logged.slice(at, at + lookupBatch);
      const queries = batch.map(({ transaction }) => ({
        registerId,
        transactionId: transaction.txId,
        previousTransactionId: '',
        replayKey: transaction.replayKey ?? '',
      }));
      const answers = await this.#options.ledger.lookup(queries);
      for (const [index, each] of batch.entries()) {
        const answer = answers[index];
        if (answer?.sealedRecordHash === '') pending.push({ ...each, sealedReplay: answer.sealedReplay });
      }
    }
    return pending;
  }

  /** The waiting transactions whose predecessor has another exclusive successor by now. Fails as a whole. */
  async #findConflicting(waiting: readonly PooledTransaction[]): Promise<PooledTransaction[]> {
    const exclusive = waiting.filter(({ exclusivePredecessor }) => exclusivePredecessor);
    const conflicting: PooledTransaction[] = [];
    for (let at = 0; at < exclusive.length; at += lookupBatch) {
      const batch = exclusive.slice(at, at + lookupBatch);
      const queries = batch.map(({ registerId, txId: transactionId, previousTransactionId = '' }) => ({
        registerId,
        transactionId,
        previousTransactionId,
        replayKey: '',
      }));
      const answers = await this.#options.ledger.lookup(queries);
      const isConflicting = (successor: string, txId: string) => successor !== '' && successor !== txId;
      conflicting.push(
        ...batch.filter(({ txId }, index) => isConflicting(answers[index]?.previousSuccessor ?? '', txId)),
      );
    }
    return conflicting;
  }

  /** Turns conflicting transactions into tombstones, so that their status can be queried. */
  #evict(register: RegisterChain, conflicting: readonly PooledTransaction[]): void {
    const { clock, append, onFailed } = this.#options;
    const tombstones = conflicting.flatMap((each) => register.drop(conflictTombstone(each, clock.nowMs())));
    for (const value of tombstones) append({ kind: 'tombstone', value }).catch(onFailed);
  }

  /**
   * Restores the pool. The log of an earlier version may hold Actions with the same replay key. One of them stays, preferably
   * that of a docket in progress, because the register service would refuse a docket with the second one.
   */
  async #restorePool(
    register: RegisterChain,
    recovered: RecoveredRegister,
    pending: readonly PendingEntry[],
  ): Promise<void> {
    const { clock, append } = this.#options;
    const nowMs = clock.nowMs();
    for (const tombstone of recovered.tombstones.values()) register.tombstones.add(tombstone, nowMs);
    const headers = [...recovered.decided.values(), ...recovered.own].flatMap(({ header }) => header ?? []);
    const inFlight = new Set(headers.flatMap((header) => header.transactionIds));
    const isInFlight = ({ transaction }: PendingEntry) => inFlight.has(transaction.txId);
    const ordered = [...pending.filter(isInFlight), ...pending.filter((each) => !isInFlight(each))];
    const replays: Tombstone[] = [];
    for (const each of ordered) {
      const { txId, replayKey } = each.transaction;
      const holder = replayKey && (register.pool.findReplay(replayKey) ?? each.sealedReplay);
      if (holder && !isInFlight(each)) replays.push(replayTombstone(each.transaction, holder, nowMs));
      register.pool.add(each.transaction);
      register.pool.setSegment(txId, each.segment);
    }
    const dropped = replays.flatMap((tombstone) => register.drop(tombstone));
    if (dropped.length > 0) await append(...dropped.map((value) => ({ kind: 'tombstone' as const, value })));
  }

  async #restoreDockets(
    register: RegisterChain,
    recovered: RecoveredRegister,
    secondSuccessors: ReadonlyMap<string, PooledTransaction>,
  ): Promise<void> {
    const others = recovered.others.map(({ transaction }) => decodeTransaction(transaction));
    const find = (txId: string) => {
      const first = register.pool.find(txId)?.transaction ?? secondSuccessors.get(txId);
      const same = others.filter((each) => each.txId === txId);
      return first === undefined ? same : [first, ...same];
    };
    const decided: SealedDocket[] = [];
    for (let number = register.state.height; ; number += 1) {
      const known = recovered.decided.get(number);
      const docket = known && rebuildDocket(known.header, find);
      if (known === undefined || docket === undefined) break;
      decided.push({ docket, certificate: known.certificate });
    }
    const ownDockets = recovered.own.flatMap((own): Docket[] => {
      const docket = own.header && rebuildDocket(own.header, find);
      return docket === undefined ? [] : [docket];
    });
    if (register.status === 'Halted') return;
    await register.restore({ decided, own: recovered.own, ownDockets, mode: recovered.mode });
  }
}

function loggedOf({ transactions }: RecoveredRegister): LoggedEntry[] {
  return [...transactions.values()].map(({ transaction, segment }) => ({
    transaction: decodeTransaction(transaction),
    segment,
  }));
}

/**
 * The log also holds transactions that a proposal needed and the pool could not take: second successors of one transaction,
 * and their descendants. The first successor waits as before; the others are kept for a docket that is decided or locked.
 */
function findSecondSuccessors(pending: readonly LoggedEntry[]): Map<string, PooledTransaction> {
  const successors = new Map<string, string>();
  const secondSuccessors = new Map<string, PooledTransaction>();
  for (const { transaction } of pending) {
    const { txId, previousTransactionId: previous, exclusivePredecessor } = transaction;
    if (previous === undefined) continue;
    const isSecond = exclusivePredecessor && successors.has(previous);
    if (isSecond || secondSuccessors.has(previous)) secondSuccessors.set(txId, transaction);
    else successors.set(previous, txId);
  }
  return secondSuccessors;
}
