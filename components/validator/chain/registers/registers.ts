import type { Verifier } from '#core/crypto/verify.ts';
import { validationError } from '#core/errors/validation-codes.ts';
import { activeMembers } from '#core/ledger/governance/rules.ts';
import type { Consensus } from '../consensus/bft1.ts';
import type { Tombstone } from '../pool/tombstones.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import { decodeTransaction } from '../records/entries.ts';
import type { RecoveredRegister } from '../records/recovery.ts';
import { conflictTombstone, replayTombstone } from '../sealing/eviction.ts';
import { RegisterChain } from '../sealing/register-chain.ts';
import type { RegisterOptions } from '../sealing/register-options.ts';
import {
  type Genesis,
  genesisConfigOf,
  genesisState,
  judgeGenesis,
  readControlRecord,
} from '../state/genesis.ts';
import { buildState, isMember, type RegisterState } from '../state/state.ts';
import { PinnedWorkflows } from '../workflows/pinned-workflows.ts';
import { resolveLogged } from '../workflows/resolve.ts';
import { findConflicting, findUnsealed, type PendingEntry } from './lookup.ts';
import type { RegisterTable } from './register-table.ts';
import { loggedOf, type RestoreOptions, restoreContent, restoreLostDockets } from './restore.ts';
import type { VolumeGaps } from './volume-gaps.ts';

interface RegistersOptions
  extends Omit<RegisterOptions, 'genesisConfig' | 'append' | 'consensus'>,
    Pick<RestoreOptions, 'append' | 'readLoggedDockets'> {
  /** The installation: the network of registers that begin here. */
  readonly networkId: string;
  readonly verifier: Verifier;
  /** The consensus functions of a register; bft-1 when absent. */
  readonly consensusOf?: ((registerId: string) => Consensus) | undefined;
  readonly gaps: VolumeGaps;
  /** Receives the registers; its other readers only read. */
  readonly table: RegisterTable;
}

const unknownForMs = 1_000;
const maxUnknown = 10_000;
/** Upper bound of the duration of an admission. */
const admissionMs = 10_000;

/** The registers that this validator is a member of. */
export class Registers {
  readonly #options: RegistersOptions;
  readonly #registers: RegisterTable;
  readonly #loading = new Map<string, Promise<RegisterChain | undefined>>();
  readonly #unknown = new Map<string, number>();

  constructor(options: RegistersOptions) {
    this.#options = options;
    this.#registers = options.table;
  }

  get(registerId: string): RegisterChain | undefined {
    return this.#registers.get(registerId);
  }

  all(): Iterable<RegisterChain> {
    return this.#registers.all();
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
      this.#registers.remove(registerId);
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
    // Admitted from here on, a transaction that the skipped dockets sealed would not be compared.
    register.keys.skip();
    const { sealed, repeated } = await this.#compareWaiting(register);
    register.fastForward(buildState(facts, this.#options.verifier), sealed);
    this.#dropRepeated(register, repeated);
    const again = async () => {
      const later = await this.#compareWaiting(register);
      register.removeSealed(later.sealed);
      this.#dropRepeated(register, later.repeated);
      this.#evict(register, await findConflicting(this.#options.ledger, [...register.pool.waiting()]));
    };
    // Retried until the register service answers: otherwise sealed transactions would be proposed here and refused by all peers.
    const later = () =>
      this.#options.scheduler.set(`jump/${registerId}`, admissionMs, () => void again().catch(later));
    later();
    return true;
  }

  /** The waiting transactions that the register service has sealed, and those that repeat a sealed one. */
  async #compareWaiting(register: RegisterChain) {
    const waiting = [...register.pool.waiting()].map((transaction) => ({ transaction, segment: 0 }));
    const pending = await findUnsealed(this.#options.ledger, register.id, waiting);
    const open = new Set(pending.map(({ transaction }) => transaction.txId));
    const sealed = waiting.flatMap(({ transaction: { txId } }) => (open.has(txId) ? [] : txId));
    return { sealed, repeated: pending.filter(({ sealedReplay }) => sealedReplay !== '') };
  }

  /** Turns transactions that repeat a sealed one into tombstones. */
  #dropRepeated(register: RegisterChain, repeated: readonly PendingEntry[]): void {
    const atMs = this.#options.clock.nowMs();
    this.#drop(
      register,
      repeated.map(({ transaction, sealedReplay }) => replayTombstone(transaction, sealedReplay, atMs)),
    );
  }

  stop(): void {
    for (const register of this.#registers.all()) register.stop();
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
    const reason = recovered && (await restoreLostDockets(this.#options, registerId, recovered));
    const state = await this.#stateOf(registerId, recovered);
    if (state === undefined) {
      if (reason !== undefined) this.#options.log.error({ registerId }, reason);
      return undefined;
    }
    const known = this.#registers.get(registerId);
    if (known !== undefined) return known;
    const { ledger } = this.#options;
    const workflows = new PinnedWorkflows(registerId, ledger);
    const unsealed =
      recovered === undefined ? [] : await findUnsealed(ledger, registerId, loggedOf(recovered));
    const pending = await resolveLogged(ledger, workflows, unsealed);
    const conflicting = await findConflicting(
      this.#options.ledger,
      pending.map(({ transaction }) => transaction),
    );
    const register = this.#add(state, workflows);
    if (recovered !== undefined) this.#options.peers.restoreEvidence(registerId, recovered.evidence);
    if (reason !== undefined) register.halt(reason);
    else if (recovered !== undefined) {
      const content = { recovered, pending };
      await restoreContent(this.#options, register, content, () => this.#evict(register, conflicting));
    }
    return register;
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

  #add(state: RegisterState, workflows?: PinnedWorkflows): RegisterChain {
    const { networkId } = this.#options;
    const consensus = this.#options.consensusOf?.(state.registerId);
    const register = new RegisterChain(
      {
        ...this.#options,
        consensus,
        genesisConfig: (genesis) => genesisConfigOf(genesis.payload, networkId),
      },
      state,
      workflows,
    );
    this.#registers.add(register);
    this.#unknown.delete(state.registerId);
    return register;
  }

  /** Turns conflicting transactions into tombstones, so that their status can be queried. */
  #evict(register: RegisterChain, conflicting: readonly PooledTransaction[]): void {
    const atMs = this.#options.clock.nowMs();
    this.#drop(
      register,
      conflicting.map((each) => conflictTombstone(each, atMs)),
    );
  }

  /** Drops transactions and their descendants, and logs the tombstones. */
  #drop(register: RegisterChain, tombstones: readonly Tombstone[]): void {
    const { append, onFailed } = this.#options;
    for (const value of tombstones.flatMap((each) => register.drop(each)))
      append({ kind: 'tombstone', value }).catch(onFailed);
  }
}
