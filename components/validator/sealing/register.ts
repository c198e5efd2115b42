import { encodeHex } from '#core/encoding/hex.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { AppError } from '#core/errors/errors.ts';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import { chooseTransactions } from '../building/choose.ts';
import { buildDocket, type Docket } from '../building/docket.ts';
import type { DecidedDocket, LogRecord, Mode, OwnMessage, Tombstone } from '../log/entries.ts';
import { Pool, type PoolBounds } from '../pool/pool.ts';
import { Tombstones } from '../pool/tombstones.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import { Conductor, type ConductorOptions } from './conductor.ts';
import type { Ledger, SealedDocket, WriteAnswer } from './ports.ts';
import type { Serials } from './serials.ts';
import { applyDocket, type RegisterState } from './state.ts';
import { DocketWriter } from './writer.ts';

export interface RegisterOptions
  extends Omit<ConductorOptions, 'build' | 'onDecided' | 'onEvidence' | 'onFailed'> {
  readonly ledger: Ledger;
  readonly serials: Serials;
  readonly bounds: Omit<PoolBounds, 'maxPerSender'>;
  readonly metrics: SealingMetrics;
  /** JSON text of docket 0, from its transaction. */
  genesisConfig(genesis: PooledTransaction): string;
  onFailed(error: unknown): void;
}

export interface SealingMetrics {
  decided(transactions: number, rounds: number): void;
  stored(transactions: number): void;
  equivocation(): void;
}

export type RegisterStatus = Mode | 'Halted';

export interface SealResult {
  readonly outcome: 'sealed' | 'nothing-pending' | 'not-running' | 'timeout';
  readonly docketNumber: number;
}

/** Decided dockets that may wait to be stored before no further one is decided (D19). */
const mostUnstored = 16;
const mostPerDocket = 10_000;
/** With a docket on its way to the store, this many transactions are worth another one at once. */
const worthwhile = 250;

interface Waiter {
  readonly docketNumber: number;
  readonly resolve: () => void;
}

/** One register at this validator: what waits, what is decided, what is being stored, and whether it may go on. */
export class Register {
  readonly id: string;
  readonly pool: Pool;
  readonly tombstones: Tombstones;
  readonly #options: RegisterOptions;
  readonly #conductor: Conductor;
  readonly #writer: DocketWriter;
  readonly #waiters = new Set<Waiter>();
  readonly #startedAtMs: number;
  #state: RegisterState;
  #mode: Mode = 'Running';
  #haltedBecause: string | undefined;
  #decidedAtMs = 0;
  #docketsBuilt = 0;
  #processed = 0;
  #storedHeight: number;
  #limit: number | undefined;
  #seals = 0;

  constructor(options: RegisterOptions, state: RegisterState) {
    this.id = state.registerId;
    this.#options = options;
    this.#state = state;
    this.#storedHeight = state.height;
    this.#startedAtMs = options.clock.nowMs();
    this.pool = new Pool({ ...options.bounds, maxPerSender: state.rules.maxPendingPerSender });
    this.tombstones = new Tombstones();
    this.#writer = new DocketWriter({
      registerId: this.id,
      ledger: options.ledger,
      scheduler: options.scheduler,
      log: options.log,
      onStored: (sealed) => this.#onStored(sealed),
      onRefused: (sealed, answer) => this.#onRefused(sealed, answer),
    });
    this.#conductor = new Conductor(
      {
        ...options,
        build: () => this.#build(),
        onDecided: (docket, certificate) => this.#onDecided(docket, certificate),
        onEvidence: (evidence) => {
          options.metrics.equivocation();
          options.log.error({ registerId: this.id, evidence }, 'equivocation');
        },
      },
      state,
    );
  }

  get state(): RegisterState {
    return this.#state;
  }

  get status(): RegisterStatus {
    return this.#haltedBecause === undefined ? this.#mode : 'Halted';
  }

  /** Paused registers take transactions in, stopped and halted ones do not. */
  get isOpen(): boolean {
    return this.status === 'Running' || this.status === 'Paused';
  }

  get facts() {
    return {
      startedAtMs: this.#startedAtMs,
      decidedAtMs: this.#decidedAtMs,
      docketsBuilt: this.#docketsBuilt,
      transactionsProcessed: this.#processed,
      storedHeight: this.#storedHeight,
      unstored: this.#writer.size,
      height: this.#conductor.height,
      round: this.#conductor.round,
      step: this.#conductor.step,
      quorum: this.#conductor.quorum,
      haltedBecause: this.#haltedBecause,
    };
  }

  /** What must outlive a log segment, on its way into another one. */
  *carry(segment: number, into: number): Iterable<LogRecord> {
    const { height, headHash } = this.#state;
    yield {
      kind: 'snapshot',
      value: {
        registerId: this.id,
        height: this.#storedHeight,
        headHash: height === this.#storedHeight ? headHash : '',
      },
    };
    if (this.#mode !== 'Running') yield { kind: 'mode', value: { registerId: this.id, mode: this.#mode } };
    for (const value of this.tombstones.all()) yield { kind: 'tombstone', value };
    for (const value of this.pool.moveSegment(segment, into)) yield { kind: 'transaction', value };
    for (const { docket, certificate } of this.#writer.sealed) {
      yield { kind: 'decided', value: { header: docket.header, certificate } };
    }
    for (const value of this.#conductor.own) yield { kind: 'own', value };
  }

  /** Something may have become possible: transactions came, a docket was stored, a mode changed. */
  wake(): void {
    if (this.status !== 'Running' || !this.#conductor.isIdle || this.pool.size === 0) return;
    const unstored = this.#writer.size;
    if (unstored >= mostUnstored) return;
    if (unstored > 0 && this.pool.size < this.#worthwhile() && this.#limit === undefined) {
      const { docketBuildIntervalMs } = this.#state.rules;
      const waitMs = this.#decidedAtMs + docketBuildIntervalMs - this.#options.clock.nowMs();
      if (waitMs > 0) {
        this.#options.scheduler.set(`build/${this.id}`, waitMs, () => this.wake());
        return;
      }
    }
    this.#conductor.work();
  }

  /** Proposes now and waits until what that decides is stored. */
  async seal(maxTransactions: number | undefined, timeoutMs: number): Promise<SealResult> {
    const { scheduler } = this.#options;
    if (this.status !== 'Running') return { outcome: 'not-running', docketNumber: 0 };
    const isBusy = this.#writer.size > 0 || !this.#conductor.isIdle;
    if (this.pool.size === 0 && !isBusy) return { outcome: 'nothing-pending', docketNumber: 0 };
    const docketNumber =
      this.pool.size > 0 || !this.#conductor.isIdle ? this.#state.height : this.#state.height - 1;
    const { promise, resolve } = Promise.withResolvers<'sealed' | 'timeout'>();
    const waiter = { docketNumber, resolve: () => resolve('sealed') };
    this.#seals += 1;
    const key = `seal/${this.id}/${this.#seals}`;
    this.#waiters.add(waiter);
    scheduler.set(key, timeoutMs, () => resolve('timeout'));
    this.#limit = maxTransactions;
    this.wake();
    const outcome = await promise;
    scheduler.clear(key);
    this.#waiters.delete(waiter);
    return { outcome, docketNumber };
  }

  setMode(mode: Mode): void {
    this.#mode = mode;
    this.wake();
  }

  /** What has been accepted and will never be sealed; its descendants go the same way. */
  drop(tombstone: Tombstone): Tombstone[] {
    const removed = this.pool.remove(tombstone.txId);
    const { nowMs } = this.#options.clock;
    const tombstones = removed.map((transaction) =>
      transaction.txId === tombstone.txId
        ? tombstone
        : {
            ...tombstone,
            txId: transaction.txId,
            status: 'rejected' as const,
            code: 'VAL_CHAIN_001',
            message: `The previous transaction ${tombstone.txId} is ${tombstone.status}`,
          },
    );
    for (const each of tombstones) this.tombstones.add(each, nowMs());
    return tombstones;
  }

  /** Puts back what the log held when the process started, before anything else happens here. */
  async restore(recovered: {
    decided: readonly SealedDocket[];
    own: readonly OwnMessage[];
    ownDockets: readonly Docket[];
    mode: Mode;
  }): Promise<void> {
    this.#mode = recovered.mode;
    for (const sealed of recovered.decided) this.#take(sealed);
    if (recovered.decided.length > 0) this.#conductor.begin(this.#state);
    const current = recovered.own.filter((own) => own.message.height === this.#state.height);
    await this.#conductor.resume(current, recovered.ownDockets);
    this.wake();
  }

  stop(): void {
    this.#conductor.stop();
    this.#writer.stop();
    this.#options.scheduler.clear(`build/${this.id}`);
  }

  #worthwhile(): number {
    return Math.min(worthwhile, this.#state.rules.maxTransactionsPerDocket);
  }

  #build(): Docket | undefined {
    if (this.status !== 'Running') return undefined;
    const { clock, signer } = this.#options;
    const { rules, height } = this.#state;
    const chosen = chooseTransactions(this.#candidates(height), (txId) => this.#waiting(txId), {
      maxTransactions:
        height === 0 ? 1 : Math.min(rules.maxTransactionsPerDocket, this.#limit ?? mostPerDocket),
      maxBytes: rules.maxDocketBytes,
      atMs: height === 0 ? 0 : clock.nowMs(),
    });
    this.#limit = undefined;
    const [first] = chosen;
    if (first === undefined) return undefined;
    return buildDocket(this.#state, chosen, {
      validatorAddress: signer.key.walletAddress,
      nowMicros: clock.nowMicros(),
      genesisConfig: height === 0 ? this.#options.genesisConfig(first) : undefined,
    });
  }

  /** Docket 0 holds exactly the genesis transaction (L-34). */
  *#candidates(height: number): Iterable<PooledTransaction> {
    for (const transaction of this.pool.waiting()) {
      if ((transaction.type === 'Genesis') === (height === 0)) yield transaction;
    }
  }

  #waiting(txId: string): PooledTransaction | undefined {
    const known = this.pool.find(txId);
    return known?.stage === 'waiting' ? known.transaction : undefined;
  }

  #onDecided(docket: Docket, certificate: Certificate): void {
    const { metrics } = this.#options;
    this.#append({ kind: 'decided', value: { header: docket.header, certificate } });
    this.#take({ docket, certificate });
    this.#docketsBuilt += 1;
    metrics.decided(docket.transactions.length, certificate.round + 1);
    this.#conductor.begin(this.#state);
    this.wake();
  }

  #take(sealed: SealedDocket): void {
    const { header } = sealed.docket;
    this.#state = applyDocket(this.#state, header);
    this.#decidedAtMs = this.#options.clock.nowMs();
    this.pool.markSealing(header.transactionIds);
    this.#writer.enqueue(sealed, this.#attest(sealed));
  }

  /** The specification's vote. A docket is stored without it rather than late: it can be added later (D19). */
  async #attest({ docket: { header } }: SealedDocket): Promise<ConsensusVote | undefined> {
    const { signer, clock, self, log } = this.#options;
    const { hash: docketHash, registerId } = header;
    const timestamp = formatLedgerTimestamp(clock.nowMicros());
    try {
      const signature = await signer.sign({
        kind: 'attestation',
        registerId,
        docketHash,
        approved: true,
        timestamp,
      });
      const { publicKey, walletAddress } = signer.key;
      return {
        docketHash,
        validatorAddress: walletAddress,
        approved: true,
        timestamp,
        signature: encodeHex(signature),
        validatorId: self,
        algorithm: 'ED25519',
        publicKey,
      };
    } catch (error) {
      log.warn({ err: error, registerId, docketNumber: header.docketNumber }, 'docket not attested');
      return undefined;
    }
  }

  #onStored({ docket }: SealedDocket): void {
    const { serials, metrics } = this.#options;
    const { docketNumber, transactionIds } = docket.header;
    this.#append({ kind: 'stored', value: { registerId: this.id, docketNumber } });
    this.pool.markStored(transactionIds, serials.latest);
    this.pool.forgetStored(serials.oldestActive);
    this.#storedHeight = docketNumber + 1;
    this.#processed += transactionIds.length;
    metrics.stored(transactionIds.length);
    for (const waiter of this.#waiters) if (waiter.docketNumber <= docketNumber) waiter.resolve();
    this.wake();
  }

  #onRefused({ docket }: SealedDocket, answer: WriteAnswer): void {
    const { docketNumber, hash } = docket.header;
    this.#haltedBecause = `docket ${docketNumber} was refused by the register service: ${answer.outcome}`;
    this.#options.log.error({ registerId: this.id, docketNumber, hash, ...answer }, 'register halted');
    this.#conductor.stop();
  }

  /** Losing one of these costs a repetition after a restart, not safety; the log reports its own failure. */
  #append(record: LogRecord): void {
    this.#options.append(record).catch((error: unknown) => this.#options.onFailed(error));
  }
}

/** Rebuilds a decided docket from the log; undefined when one of its transactions is not there. */
export function rebuildDocket(
  header: DecidedDocket['header'],
  find: (txId: string) => PooledTransaction | undefined,
): Docket | undefined {
  const transactions = header.transactionIds.flatMap((txId) => find(txId) ?? []);
  return transactions.length === header.transactionIds.length ? { header, transactions } : undefined;
}

/** Refuses what a register that is not open cannot take. */
export function notReady(registerId: string, status: RegisterStatus): AppError {
  return new AppError('unavailable', 'REGISTER_NOT_READY', `Register ${registerId} is ${status}`, {
    retryAfterSeconds: 5,
  });
}
