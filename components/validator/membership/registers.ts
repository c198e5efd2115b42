import type { Verifier } from '#core/crypto/verify.ts';
import { AppError } from '#core/errors/errors.ts';
import { validationError } from '#core/errors/validation-codes.ts';
import type { Docket } from '../building/docket.ts';
import { decodeTransaction, type LogRecord, type Tombstone } from '../log/entries.ts';
import type { Recovered } from '../log/recovery.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import type { SealedDocket } from '../sealing/ports.ts';
import { Register, type RegisterOptions, rebuildDocket } from '../sealing/register.ts';
import { buildState, type RegisterState } from '../sealing/state.ts';
import { genesisConfigOf, genesisState, judgeGenesis, readControlRecord } from './genesis.ts';

export interface RegistersOptions extends Omit<RegisterOptions, 'genesisConfig' | 'append'> {
  append(...records: LogRecord[]): Promise<number>;
  /** The installation: network of the registers that begin here. */
  readonly networkId: string;
  readonly verifier: Verifier;
}

const unknownForMs = 1_000;
const mostUnknown = 10_000;
const lookupBatch = 500;

interface Pending {
  readonly transaction: PooledTransaction;
  readonly segment: number;
  /** The sealed transaction that it repeats, else empty. */
  readonly sealedReplay: string;
}

function replayTombstone({ registerId, txId }: PooledTransaction, holder: string, atMs: number): Tombstone {
  const message = `The transaction repeats ${holder}`;
  return { registerId, txId, status: 'rejected', code: 'VAL_REPLAY_001', message, atMs };
}

/** The registers that this validator is a member of. */
export class Registers {
  readonly #options: RegistersOptions;
  readonly #registers = new Map<string, Register>();
  readonly #loading = new Map<string, Promise<Register | undefined>>();
  readonly #unknown = new Map<string, number>();

  constructor(options: RegistersOptions) {
    this.#options = options;
  }

  get(registerId: string): Register | undefined {
    return this.#registers.get(registerId);
  }

  all(): Iterable<Register> {
    return this.#registers.values();
  }

  get size(): number {
    return this.#registers.size;
  }

  /** Asks the register service for a register that is not known here, at most once a second. */
  async find(registerId: string): Promise<Register | undefined> {
    const known = this.#registers.get(registerId);
    if (known !== undefined) return known;
    const nowMs = this.#options.clock.nowMs();
    if ((this.#unknown.get(registerId) ?? 0) > nowMs) return undefined;
    const register = await this.#load(registerId, undefined);
    if (register === undefined) this.#rememberUnknown(registerId, nowMs + unknownForMs);
    return register;
  }

  /** Begins a register, or gives the one that has begun. Throws AppError for a record that may not begin one. */
  async begin(registerId: string, payload: Uint8Array): Promise<Register> {
    const known = this.#registers.get(registerId);
    // One that never got its genesis transaction begins anew, with the record that comes now.
    const isEmpty = known !== undefined && known.state.height === 0 && known.pool.isEmpty;
    if (known !== undefined && !isEmpty) return known;
    const { self, verifier, networkId } = this.#options;
    const record = readControlRecord(payload);
    const violations = judgeGenesis(record, registerId, self, verifier);
    if (violations.length > 0) throw validationError(violations);
    if (known !== undefined) {
      known.stop();
      this.#registers.delete(registerId);
    }
    const sealed = await this.#load(registerId, undefined);
    return sealed ?? this.#registers.get(registerId) ?? this.#add(genesisState(record, networkId));
  }

  /** Takes up a register after a start, with what the log said of it. */
  async restore(registerId: string, recovered: Recovered | undefined): Promise<void> {
    await this.#load(registerId, recovered);
  }

  stop(): void {
    for (const register of this.#registers.values()) register.stop();
  }

  #rememberUnknown(registerId: string, untilMs: number): void {
    this.#unknown.delete(registerId);
    this.#unknown.set(registerId, untilMs);
    const [oldest] = this.#unknown.keys();
    if (this.#unknown.size > mostUnknown && oldest !== undefined) this.#unknown.delete(oldest);
  }

  #load(registerId: string, recovered: Recovered | undefined): Promise<Register | undefined> {
    let loading = this.#loading.get(registerId);
    if (loading === undefined) {
      loading = this.#loadOnce(registerId, recovered).finally(() => this.#loading.delete(registerId));
      this.#loading.set(registerId, loading);
    }
    return loading;
  }

  async #loadOnce(registerId: string, recovered: Recovered | undefined): Promise<Register | undefined> {
    const state = await this.#stateOf(registerId, recovered);
    if (state === undefined) return undefined;
    const known = this.#registers.get(registerId);
    if (known !== undefined) return known;
    const pending = recovered === undefined ? [] : await this.#stillPending(registerId, recovered);
    const register = this.#add(state);
    if (recovered === undefined) return register;
    await this.#fillPool(register, recovered, pending);
    await this.#restoreDockets(register, state, recovered);
    return register;
  }

  /** What the register service holds; before docket 0 is stored, what the genesis transaction in the log says. */
  async #stateOf(registerId: string, recovered: Recovered | undefined): Promise<RegisterState | undefined> {
    const { self, networkId, ledger } = this.#options;
    const facts = await ledger.findRegister(registerId);
    if (facts !== undefined && facts.height > 0) {
      const snapshot = recovered?.snapshot;
      if (snapshot !== undefined && facts.height < snapshot.height) {
        throw new AppError(
          'internal',
          'REGISTER_ROLLED_BACK',
          `The register service lost dockets of ${registerId}`,
          {
            details: { verified: snapshot.height, stored: facts.height },
          },
        );
      }
      return facts.members.some((member) => member.validatorId === self) ? buildState(facts) : undefined;
    }
    for (const placed of recovered?.transactions.values() ?? []) {
      const transaction = decodeTransaction(placed.transaction);
      if (transaction.type === 'Genesis')
        return genesisState(readControlRecord(transaction.payload), networkId);
    }
    return undefined;
  }

  #add(state: RegisterState): Register {
    const { networkId } = this.#options;
    const register = new Register(
      { ...this.#options, genesisConfig: (genesis) => genesisConfigOf(genesis.payload, networkId) },
      state,
    );
    this.#registers.set(state.registerId, register);
    this.#unknown.delete(state.registerId);
    return register;
  }

  /** The log's transactions that the register service has not sealed. Fails as a whole. */
  async #stillPending(registerId: string, recovered: Recovered): Promise<Pending[]> {
    const logged = [...recovered.transactions.values()].map(({ transaction, segment }) => ({
      transaction: decodeTransaction(transaction),
      segment,
    }));
    const pending: Pending[] = [];
    for (let at = 0; at < logged.length; at += lookupBatch) {
      const batch = logged.slice(at, at + lookupBatch);
      const questions = batch.map(({ transaction }) => ({
        registerId,
        transactionId: transaction.txId,
        previousTransactionId: '',
        replayKey: transaction.replayKey ?? '',
      }));
      const answers = await this.#options.ledger.lookup(questions);
      for (const [index, each] of batch.entries()) {
        const answer = answers[index];
        if (answer?.sealedRecordHash === '') pending.push({ ...each, sealedReplay: answer.sealedReplay });
      }
    }
    return pending;
  }

  /**
   * Puts back what waits. A log that is older than the rule may hold Actions that repeat each other (L-39): one of them
   * stays, the one of a docket under way before others, because the register would refuse the docket of a second one.
   */
  async #fillPool(register: Register, recovered: Recovered, pending: readonly Pending[]): Promise<void> {
    const { clock, append } = this.#options;
    const nowMs = clock.nowMs();
    for (const tombstone of recovered.tombstones.values()) register.tombstones.add(tombstone, nowMs);
    const headers = [...recovered.decided.values(), ...recovered.own].flatMap(({ header }) => header ?? []);
    const underWay = new Set(headers.flatMap((header) => header.transactionIds));
    const isUnderWay = ({ transaction }: Pending) => underWay.has(transaction.txId);
    const ordered = [...pending.filter(isUnderWay), ...pending.filter((each) => !isUnderWay(each))];
    const repeated: Tombstone[] = [];
    for (const each of ordered) {
      const { txId, replayKey } = each.transaction;
      const holder = replayKey && (register.pool.findReplay(replayKey) ?? each.sealedReplay);
      if (holder && !isUnderWay(each)) repeated.push(replayTombstone(each.transaction, holder, nowMs));
      register.pool.add(each.transaction);
      register.pool.place(txId, each.segment);
    }
    const dropped = repeated.flatMap((tombstone) => register.drop(tombstone));
    if (dropped.length > 0) await append(...dropped.map((value) => ({ kind: 'tombstone' as const, value })));
  }

  async #restoreDockets(register: Register, state: RegisterState, recovered: Recovered): Promise<void> {
    const find = (txId: string) => register.pool.find(txId)?.transaction;
    const decided: SealedDocket[] = [];
    for (let number = state.height; ; number += 1) {
      const known = recovered.decided.get(number);
      const docket = known && rebuildDocket(known.header, find);
      if (known === undefined || docket === undefined) break;
      decided.push({ docket, certificate: known.certificate });
    }
    const ownDockets = recovered.own.flatMap((own): Docket[] => {
      const docket = own.header && rebuildDocket(own.header, find);
      return docket === undefined ? [] : [docket];
    });
    await register.restore({ decided, own: recovered.own, ownDockets, mode: recovered.mode });
  }
}
