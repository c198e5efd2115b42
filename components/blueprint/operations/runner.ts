import { z } from 'zod';
import type { JsonObject } from '#core/encoding/json.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { type PollLoop, startPollLoop } from '#kit/clock/poll-loop.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import type { SubmissionAnswer } from '../clients/ledger.ts';
import type { FileTables } from '../database/file-tables.ts';
import type { OperationTables } from '../database/operation-tables.ts';
import { refusal } from '../errors.ts';
import {
  inputSchema,
  type LeasedOperation,
  type OperationInput,
  type RunningStatus,
  type StepTask,
} from './operation.ts';
import { outcomeOf } from './outcome.ts';
import type { OperationSeal } from './sealing.ts';
import {
  complete,
  fail,
  findOperation,
  hasEvent,
  type Lease,
  leaseDue,
  moveTo,
  postpone,
  purgeOperations,
  renewLease,
  saveAcceptance,
  saveDraft,
  saveSubmission,
  startAnew,
} from './store.ts';

/** An unsigned transaction with all its randomness. */
export interface Draft {
  /** JSON. */
  readonly transaction: JsonObject;
  readonly recipientCount: number;
  readonly warnings: readonly string[];
}

/** A signed transaction: the bytes that are sent. */
export interface SignedDraft {
  readonly submission: Buffer;
  readonly txId: string;
  readonly expiresAt: Date;
}

/** What makes a step of an operation; `E` is an evaluated step, which is kept in memory alone. */
export interface Pipeline<E> {
  /** Evaluates a step against the present state. Errors as a caller may read them. */
  evaluate(task: StepTask, input: OperationInput, subjectToken: string): Promise<E>;
  /** Builds the transaction of an evaluated step; `report` tells what it does. */
  build(task: StepTask, evaluated: E, report: (status: RunningStatus) => Promise<void>): Promise<Draft>;
  sign(task: StepTask, transaction: unknown, subjectToken: string): Promise<SignedDraft>;
  submit(registerId: string, submission: Buffer): Promise<SubmissionAnswer>;
  /** Whether a transaction is a step, as far as the ledger was read. */
  isSealed(registerId: string, txId: string): Promise<boolean>;
  /** Whether the predecessor of a signed transaction is still the last step of its instance, as far as that was read. */
  isNext(task: StepTask, submission: Buffer): Promise<boolean>;
}

type Signed = Pick<SignedDraft, 'submission' | 'txId'>;

interface RunnerOptions<E> {
  readonly db: Database<OperationTables & FileTables>;
  readonly seal: OperationSeal;
  readonly clock: Clock;
  readonly log: Logger;
  /** Names this replica in leases. */
  readonly replica: string;
  readonly pipeline: Pipeline<E>;
  /** Resolves when a step was folded, or after milliseconds. */
  readonly nextStep: (timeoutMs: number) => Promise<void>;
  /** Signals that the outbox has new rows. */
  readonly notify: () => void;
}

const leaseMs = 15_000;
const renewMs = 5_000;
const pollMs = 1_000;
const passLimit = 16;
const mostForks = 3;
const mostFaults = 5;
const waitMs = 250;
/** Between two submissions of the same bytes, milliseconds. */
const resendMs = 2_000;
const longestResendMs = 15_000;
/** A docket can be under way when a transaction expires. */
const graceMs = 60_000;
const longestRetryMs = 5_000;
const keptDays = 7;
const purgeEveryMs = 3_600_000;

const delegationSchema = z.object({ token: z.string() });

/** The operation ended, or another replica works on it. */
class LostLease extends Error {}

/**
 * Carries operations out. Each is leased for 15 s, so that one replica works on it and another one continues when that
 * one dies. The transaction is committed before it is signed, and with its signature before it is sent; the same bytes are
 * sent until they are sealed or cannot be sealed any more.
 */
export class OperationRunner<E> {
  readonly #options: RunnerOptions<E>;
  readonly #evaluated = new Map<string, E>();
  readonly #running = new Map<string, Promise<void>>();
  /** Called with an operation of an id when it has ended here. */
  readonly #watchers = new Map<string, Set<(ended: LeasedOperation) => void>>();
  #loop: PollLoop | undefined;
  #isStopped = false;
  #purgeAtMs = 0;

  constructor(options: RunnerOptions<E>) {
    this.#options = options;
  }

  /** Takes up operations that no replica works on, at once and every second. */
  begin(): void {
    this.#loop = startPollLoop(async () => {
      await this.takeUp().catch((error: unknown) => {
        this.#options.log.warn({ err: error }, 'operations cannot be read');
      });
      return pollMs;
    });
  }

  /** No other operation begins; resolves when those under way have come to a point where they can go on. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#loop?.stop();
    await Promise.all(this.#running.values());
  }

  /** A lease of this replica from now on. */
  lease(): Lease {
    const nowMs = this.#options.clock.nowMs();
    return { owner: this.#options.replica, now: new Date(nowMs), until: new Date(nowMs + leaseMs) };
  }

  /** Starts an operation that was inserted with a lease of this replica. */
  start(operation: LeasedOperation, evaluated: E): void {
    this.#evaluated.set(operation.id, evaluated);
    this.#launch(operation);
  }

  /** Leases what is due and starts it. */
  async takeUp(): Promise<void> {
    if (this.#isStopped) return;
    const lease = this.lease();
    const due = await this.#options.db.transact((tx) => leaseDue(tx, lease, passLimit));
    for (const operation of due) this.#launch(operation);
    if (this.#options.clock.nowMs() < this.#purgeAtMs) return;
    this.#purgeAtMs = this.#options.clock.nowMs() + purgeEveryMs;
    const before = new Date(this.#options.clock.nowMs() - keptDays * 86_400_000);
    await this.#options.db.transact((tx) => purgeOperations(tx, before));
  }

  /** Resolves when nothing is under way here. */
  async settle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  /** The operation when it has ended, or as it is after a time; `undefined` when it does not exist. */
  async waitForEnd(id: string, timeoutMs: number): Promise<LeasedOperation | undefined> {
    const { db } = this.#options;
    const { promise, resolve } = Promise.withResolvers<LeasedOperation | undefined>();
    const timer = setTimeout(() => resolve(undefined), timeoutMs).unref();
    const watchers = this.#watchers.get(id) ?? new Set();
    this.#watchers.set(id, watchers.add(resolve));
    try {
      const operation = await findOperation(db.read, id);
      if (operation === undefined || operation.completedAt !== undefined) return operation;
      return (await promise) ?? (await findOperation(db.read, id));
    } finally {
      clearTimeout(timer);
      watchers.delete(resolve);
      if (watchers.size === 0) this.#watchers.delete(id);
    }
  }

  #launch(operation: LeasedOperation): void {
    if (this.#isStopped || this.#running.has(operation.id)) return;
    const run = this.#run(operation).finally(() => {
      this.#running.delete(operation.id);
      this.#evaluated.delete(operation.id);
    });
    this.#running.set(operation.id, run);
  }

  /** Never rejects. */
  async #run(operation: LeasedOperation): Promise<void> {
    const { log } = this.#options;
    const { id } = operation;
    const renewal = setInterval(() => {
      void this.#renew(id);
    }, renewMs).unref();
    try {
      await this.#carryOut(operation);
    } catch (error) {
      if (error instanceof LostLease) return;
      await this.#giveUpOrRetry(id, error).catch((cause: unknown) => {
        log.warn({ err: cause, operationId: id }, 'an operation waits for the end of its lease');
      });
    } finally {
      clearInterval(renewal);
    }
  }

  async #renew(id: string): Promise<void> {
    const { db, log } = this.#options;
    await db
      .transact((tx) => renewLease(tx, id, this.lease()))
      .catch((error: unknown) => log.warn({ err: error, operationId: id }, 'a lease was not prolonged'));
  }

  async #carryOut(operation: LeasedOperation): Promise<void> {
    let current = operation;
    while (!this.#isStopped && current.completedAt === undefined) {
      current = await (current.submission === undefined ? this.#prepare(current) : this.#deliver(current));
    }
    if (current.completedAt === undefined) await this.#postpone(current, 0, 0);
  }

  /** Evaluates, builds and signs, as far as that was not committed before. */
  async #prepare(operation: LeasedOperation): Promise<LeasedOperation> {
    const { pipeline, seal } = this.#options;
    const { id } = operation;
    const subjectToken = this.#authorityOf(operation);
    let { draft } = operation;
    if (draft === undefined) {
      const known = this.#evaluated.get(id);
      this.#evaluated.delete(id);
      const evaluated = known ?? (await pipeline.evaluate(operation, this.#inputOf(operation), subjectToken));
      const built = await pipeline.build(operation, evaluated, async (status) => {
        await this.#commit((tx) => moveTo(tx, id, this.lease(), status));
      });
      draft = seal.seal(id, 'draft', built.transaction);
      const saved = { ...built, draft };
      await this.#commit((tx) => saveDraft(tx, id, this.lease(), saved));
    }
    const transaction = seal.open(id, 'draft', draft);
    const signed = await pipeline.sign(operation, transaction, subjectToken);
    return this.#commit((tx) => saveSubmission(tx, id, this.lease(), signed));
  }

  /** Sends the signed transaction until it is sealed; the same bytes each time. */
  async #deliver(operation: LeasedOperation): Promise<LeasedOperation> {
    const { submission, txId } = operation;
    if (submission === undefined || txId === undefined) throw new Error('a submission has no bytes');
    const signed = { submission, txId };
    if (operation.isAccepted && (await this.#isSealed(operation, txId))) return this.#complete(operation.id);
    let current = operation;
    for (let pauseMs = resendMs; !this.#isStopped; pauseMs = Math.min(2 * pauseMs, longestResendMs)) {
      current = await this.#send(current, signed);
      if (current.completedAt !== undefined || current.submission === undefined) return current;
      if (await this.#waitForSeal(current, txId, pauseMs)) return this.#complete(current.id);
    }
    return current;
  }

  /** Sends it once. The operation is complete afterwards, or evaluated anew, or waits for the seal. */
  async #send(operation: LeasedOperation, { submission, txId }: Signed): Promise<LeasedOperation> {
    const { pipeline, clock } = this.#options;
    const { id, registerId, expiresAt, isAccepted } = operation;
    if (clock.nowMs() > (expiresAt?.getTime() ?? 0) + graceMs) throw refusal('SUBMISSION_EXPIRED');
    const outcome = outcomeOf(await pipeline.submit(registerId, submission));
    if (outcome === 'sealed') return this.#complete(id);
    if (outcome === 'fork') return this.#judgeFork(operation, { submission, txId });
    return isAccepted ? operation : this.#commit((tx) => saveAcceptance(tx, id, this.lease()));
  }

  #isSealed({ registerId }: LeasedOperation, txId: string): Promise<boolean> {
    return this.#options.pipeline.isSealed(registerId, txId);
  }

  /** Looks for the sealed step at each fold and, less and less often, without one. */
  async #waitForSeal(operation: LeasedOperation, txId: string, pauseMs: number): Promise<boolean> {
    const { clock, nextStep } = this.#options;
    const untilMs = clock.nowMs() + pauseMs;
    for (let ms = waitMs; !this.#isStopped && clock.nowMs() < untilMs; ms *= 2) {
      await nextStep(Math.min(ms, Math.max(1, untilMs - clock.nowMs())));
      if (await this.#isSealed(operation, txId)) return true;
    }
    return false;
  }

  /**
   * Another transaction follows the same step. While it is not sealed, ours may still be; when it is, the input is
   * evaluated anew behind it.
   */
  async #judgeFork(operation: LeasedOperation, { submission, txId }: Signed): Promise<LeasedOperation> {
    const { pipeline } = this.#options;
    const { id, forks } = operation;
    if (await this.#isSealed(operation, txId)) return this.#complete(id);
    if (await pipeline.isNext(operation, submission)) return operation;
    if (forks >= mostForks) throw refusal('VAL_CHAIN_FORK');
    return this.#commit((tx) => startAnew(tx, id, this.lease(), forks + 1));
  }

  #authorityOf({ id, sealedDelegation, delegationExpiresAt }: LeasedOperation): string {
    const { seal, clock } = this.#options;
    if (sealedDelegation === undefined || delegationExpiresAt.getTime() <= clock.nowMs())
      throw refusal('AUTHORITY_EXPIRED');
    return delegationSchema.parse(seal.open(id, 'delegation', sealedDelegation)).token;
  }

  #inputOf({ id, sealedInput }: LeasedOperation): OperationInput {
    if (sealedInput === undefined) throw new Error('a running operation has no input');
    return inputSchema.parse(this.#options.seal.open(id, 'input', sealedInput));
  }

  async #commit(
    act: (tx: Transactor<OperationTables & FileTables>) => Promise<LeasedOperation | undefined>,
  ): Promise<LeasedOperation> {
    const changed = await this.#options.db.transact(act);
    if (changed === undefined) throw new LostLease();
    if (changed.completedAt !== undefined)
      for (const watch of this.#watchers.get(changed.id) ?? []) watch(changed);
    if (hasEvent(changed)) this.#options.notify();
    return changed;
  }

  #complete(id: string): Promise<LeasedOperation> {
    return this.#commit((tx) => complete(tx, id, this.lease()));
  }

  /** What a person must change ends the operation; an outage does not. */
  async #giveUpOrRetry(id: string, error: unknown): Promise<void> {
    const { db, log } = this.#options;
    const operation = await findOperation(db.read, id);
    if (operation === undefined || operation.completedAt !== undefined) return;
    const attempts = operation.attempts + 1;
    const isKnown = isAppError(error) && error.kind !== 'internal';
    const isOutage =
      isAppError(error, 'unavailable') || isAppError(error, 'timeout') || isAppError(error, 'rate_limited');
    if (isKnown && (!isOutage || error.code === 'SUBMISSION_EXPIRED')) {
      // A service that refuses the delegated token no longer recognises it.
      const { code, message } = error.kind === 'unauthenticated' ? refusal('AUTHORITY_EXPIRED') : error;
      await this.#commit((tx) => fail(tx, id, this.lease(), { code, message }));
      return;
    }
    if (!isOutage) log.error({ err: error, operationId: id }, 'an operation cannot go on');
    if (!isOutage && operation.submission === undefined && attempts >= mostFaults) {
      const failure = { code: 'INTERNAL_ERROR', message: 'an internal error occurred' };
      await this.#commit((tx) => fail(tx, id, this.lease(), failure));
      return;
    }
    const pauseMs = Math.min(waitMs * 2 ** Math.min(attempts, 8), longestRetryMs);
    await this.#postpone(operation, attempts, pauseMs);
  }

  async #postpone(operation: LeasedOperation, attempts: number, pauseMs: number): Promise<void> {
    const lease = this.lease();
    const nextAt = new Date(lease.now.getTime() + pauseMs);
    await this.#options.db.transact((tx) => postpone(tx, operation.id, lease, { attempts, nextAt }));
  }
}
