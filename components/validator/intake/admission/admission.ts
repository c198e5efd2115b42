import { rememberedAddresses } from '#core/crypto/address.ts';
import { isAppError } from '#core/errors/errors.ts';
import { validationError, validationViolation } from '#core/errors/validation-codes.ts';
import type { VerifyItem } from '#kit/crypto/verify-pool.ts';
import type { LookupAnswer } from '../../chain/keys/lookup.ts';
import type { PooledTransaction } from '../../chain/pool/transaction.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import { notReady } from '../../chain/sealing/status.ts';
import { failure } from '../../errors.ts';
import { loadPinned, type Question, questionOf } from '../lookup/question.ts';
import {
  buildCandidate,
  type Candidate,
  judgeSignatures,
  judgeTimes,
  refuseIf,
  signatureChecks,
} from '../verification/judge.ts';
import { parseSubmission, type Submission } from '../verification/submission.ts';
import { type PeerTransaction, parsePeerTransaction } from '../verification/verify-peer-transactions.ts';
import { AdmissionQueue } from './admission-queue.ts';
import { type Admitted, behind, poolFull, unreadable } from './answer.ts';
import { findPooledDuplicate, findSealedDuplicate, pooledType } from './duplicates.ts';
import { InFlight } from './in-flight.ts';
import { type InsertFacts, linkCandidate } from './link.ts';
import type { AdmissionOptions } from './options.ts';
import { PendingSubmission } from './pending-submission.ts';

/** The source of a submission. Only the register service may begin a register. */
export interface Origin {
  readonly isRegisterService: boolean;
  /** Another validator forwarded the submission. */
  readonly isForwarded?: boolean;
  /** Another validator has accepted and announced the transaction; it is not announced again. */
  readonly isPeer?: boolean;
  /** Set for users, whose organisation must subscribe to the register. Services are trusted. */
  readonly person?: { readonly organizationId: string | undefined };
  /** Throws AppError for a register that the source may not name. */
  readonly assertRegister?: (registerId: string) => void;
}

interface CandidateSubmission {
  readonly candidate: Candidate;
  readonly register: RegisterChain;
  readonly pending: PendingSubmission;
}

interface QueuedSubmission extends CandidateSubmission {
  readonly checks: readonly VerifyItem[];
  readonly isPeer: boolean;
  /** Sequence number in the order of arrival. */
  readonly sequence: number;
}

interface AddedSubmission {
  readonly waiting: QueuedSubmission;
  readonly transaction: PooledTransaction;
}

interface LinkedSubmission {
  readonly waiting: QueuedSubmission;
  readonly question: Question;
}

/** Concurrent batches. No client waits for announced transactions, so they are admitted one batch at a time and batches grow. */
const maxConcurrentBatches = { submitted: 2, announced: 1 } as const;
const maxWaiting = 20_000;
const announcedOrigin: Origin = { isRegisterService: false, isPeer: true };
const maxGenesisBytes = 524_288;

/**
 * Accepts submissions. Checks that need one submission alone run on arrival. The rest runs in batches: signatures on the
 * verify pool, one lookup at the register service, one forced write, then all answers.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #submitted: AdmissionQueue<QueuedSubmission>;
  readonly #announced: AdmissionQueue<QueuedSubmission>;
  readonly #inFlight = new InFlight();
  readonly #addressOf = rememberedAddresses(10_000);
  #reading: Promise<void> = Promise.resolve();

  constructor(options: AdmissionOptions) {
    this.#options = options;
    const queue = (maxBatches: number) =>
      new AdmissionQueue<QueuedSubmission>({
        maxBatches,
        defer: options.defer,
        admit: (batch) => this.#admit(batch),
      });
    this.#submitted = queue(maxConcurrentBatches.submitted);
    this.#announced = queue(maxConcurrentBatches.announced);
  }

  /** Resolves once the transaction is verified and on disk; otherwise rejects with an AppError that carries the status. */
  submit(text: string, origin: Origin): Promise<Admitted> {
    return this.#receive(() => parseSubmission(text, this.#addressOf), origin);
  }

  /** Submits a transaction that another validator has accepted and announced. It is not announced again. */
  submitAnnounced(announced: PeerTransaction): Promise<Admitted> {
    return this.#receive(() => parsePeerTransaction(announced, this.#addressOf), announcedOrigin);
  }

  /**
   * Reads batches sequentially. Read concurrently, every batch would be complete only when all are, and its signature checks
   * and lookups would start as late as those of the last batch.
   * @param read passes what it reads to `submit`; it must not wait for external events
   */
  readSequentially(read: () => Promise<void>): Promise<void> {
    const reading = this.#reading.then(read);
    this.#reading = reading.catch(() => undefined);
    return reading;
  }

  #receive(read: () => Submission, origin: Origin): Promise<Admitted> {
    const pending = new PendingSubmission(this.#options.submissionAnswered);
    try {
      this.#start(read, origin, pending);
    } catch (error) {
      pending.refuse(error);
    }
    return pending.promise;
  }

  /** Queues the submission synchronously when the register is loaded and the subscription is cached. */
  #start(read: () => Submission, origin: Origin, pending: PendingSubmission): void {
    const { assertWorking, assertAccepting, getRegister, subscriptions } = this.#options;
    assertWorking();
    const submission = read();
    const { registerId, type } = submission.envelope;
    origin.assertRegister?.(registerId);
    const isGenesis = type === 'Genesis';
    // The register service sends genesis to each member, and a proposal may need transactions that peers have accepted.
    if (origin.isPeer !== true && !isGenesis) assertAccepting();
    const register = isGenesis ? undefined : getRegister(registerId);
    const { person } = origin;
    const mayEnter = person === undefined || subscriptions.isCached(person.organizationId, registerId);
    if (register === undefined || !mayEnter) {
      this.#resolveRegister(submission, origin, pending).catch((error: unknown) => pending.refuse(error));
      return;
    }
    if (origin.isPeer !== true) pending.attributeTo(register.work);
    this.#queue(register, submission, origin, pending);
  }

  async #resolveRegister(submission: Submission, origin: Origin, pending: PendingSubmission): Promise<void> {
    const { findRegister, subscriptions } = this.#options;
    const { registerId, type } = submission.envelope;
    const register =
      type === 'Genesis' ? await this.#beginRegister(submission, origin) : await findRegister(registerId);
    if (register === undefined) {
      throw failure('REGISTER_NOT_FOUND', { message: `Register ${registerId} is not run by this validator` });
    }
    if (origin.isPeer !== true) pending.attributeTo(register.work);
    if (origin.person !== undefined)
      await subscriptions.assertSubscribed(origin.person.organizationId, registerId);
    this.#queue(register, submission, origin, pending);
  }

  /** The queue keeps the candidate and its signature checks only, to bound memory. */
  #queue(register: RegisterChain, submission: Submission, origin: Origin, pending: PendingSubmission): void {
    if (!register.isOpen) throw notReady(register.id, register.status);
    const candidate = buildCandidate(submission, register.state.rules);
    refuseIf(judgeTimes(submission, this.#options.clock.nowMs()));
    const known = findPooledDuplicate(register, candidate);
    if (known !== undefined) {
      void this.#answerKnown({ register, candidate, pending }, known);
      return;
    }
    if (this.#submitted.size + this.#announced.size >= maxWaiting) throw poolFull('count');
    const sequence = this.#inFlight.add(candidate, pending.promise);
    const isPeer = origin.isPeer === true;
    const queue = isPeer ? this.#announced : this.#submitted;
    queue.push({ checks: signatureChecks(submission), candidate, register, isPeer, pending, sequence });
  }

  #admitted({ candidate, pending }: CandidateSubmission, admitted: Admitted): void {
    this.#inFlight.remove(candidate, pending.promise);
    pending.admit(admitted);
  }

  #refused({ candidate, pending }: CandidateSubmission, error: unknown): void {
    this.#inFlight.remove(candidate, pending.promise);
    pending.refuse(error);
  }

  /** Resolves once those of the transactions that are in flight here are on disk or refused. */
  settled(registerId: string, transactionIds: Iterable<string>): Promise<void> {
    return this.#inFlight.settled(registerId, transactionIds);
  }

  /** Genesis must come from the register service and be signed by the register-control key of the installation. */
  async #beginRegister(submission: Submission, origin: Origin): Promise<RegisterChain> {
    const systemKey = await this.#options.systemKey();
    const [signature] = submission.signatures;
    const isSystem =
      origin.isRegisterService &&
      submission.signatures.length === 1 &&
      `${signature?.algorithm}:${signature?.publicKey}` === systemKey;
    if (!isSystem) refuseIf([validationViolation('VAL_PERM_002', 'Metadata.Type')]);
    const checks = await this.#options.verify(signatureChecks(submission));
    refuseIf(judgeSignatures(checks));
    const genesis = buildCandidate(submission, {
      maxTransactionBytes: maxGenesisBytes,
      requireBoundTxId: false,
    });
    return this.#options.beginRegister(submission.envelope.registerId, genesis);
  }

  /** A duplicate is answered only once the transaction is on disk, even when another submission delivered it. */
  async #onDisk(register: RegisterChain, known: Admitted): Promise<Admitted> {
    const { unlessFull, append } = this.#options;
    if (register.pool.find(known.transactionId)?.segment === 0) await unlessFull(append());
    return known;
  }

  async #admit(batch: readonly QueuedSubmission[]): Promise<void> {
    const epoch = this.#options.epochs.begin();
    const registers = new Set(batch.map((waiting) => waiting.register));
    try {
      const signed = await this.#verified(batch);
      if (signed.length > 0) await this.#link(signed);
    } catch (error) {
      for (const waiting of batch) this.#refused(waiting, error);
    } finally {
      this.#options.epochs.end(epoch);
      for (const register of registers) register.pool.forgetStored(this.#options.epochs.oldestActive);
    }
  }

  async #verified(batch: readonly QueuedSubmission[]): Promise<QueuedSubmission[]> {
    const verdicts = await this.#options.verify(batch.flatMap(({ checks }) => checks));
    let at = 0;
    return batch.filter((waiting) => {
      const { length } = waiting.checks;
      const violations = judgeSignatures(verdicts.slice(at, at + length));
      at += length;
      if (violations.length > 0) this.#refused(waiting, validationError(violations));
      return violations.length === 0;
    });
  }

  /**
   * Transactions that are certainly new continue at once; the register service is asked about the others, in one request.
   * The answer and the pool together tell what is known, so no await separates an answer of the keys from the insertion.
   */
  async #link(batch: readonly QueuedSubmission[]): Promise<void> {
    const candidates = batch.map(({ candidate }) => candidate);
    await this.#inFlight.predecessors(candidates, batch[0]?.sequence ?? 0);
    const uncertain: LinkedSubmission[] = [];
    const added: AddedSubmission[] = [];
    for (const waiting of batch) {
      const { register, candidate } = waiting;
      const question = questionOf(register, candidate, (previous) => pooledType(register, previous));
      const answer = this.#options.lookup.certain(question);
      if (answer === undefined) uncertain.push({ waiting, question });
      else added.push(...this.#insert(waiting, { answer, pinned: question.pinned }));
    }
    const persisted = this.#persist(added);
    const asked = uncertain.length === 0 ? undefined : this.#linkAsked(uncertain);
    // Both parts end before the batch does, because its epoch keeps stored transactions in the pool.
    await Promise.allSettled([persisted, asked]);
    await persisted;
  }

  /** Never rejects. */
  async #linkAsked(uncertain: readonly LinkedSubmission[]): Promise<void> {
    try {
      const answers = await this.#ask(uncertain.map(({ question }) => question));
      const workflows = await Promise.allSettled(
        uncertain.map(({ question }, index) => loadPinned(question, answers[index])),
      );
      await this.#persist(
        uncertain.flatMap(({ waiting }, index) => {
          const loaded = workflows[index];
          if (loaded?.status === 'fulfilled')
            return this.#insert(waiting, { answer: answers[index], pinned: loaded.value });
          this.#refused(waiting, unreadable(loaded?.reason));
          return [];
        }),
      );
    } catch (error) {
      for (const { waiting } of uncertain) this.#refused(waiting, error);
    }
  }

  /**
   * A refusal by register rules may be wrong when this member has not decided the latest dockets yet. It then answers with a
   * retryable error instead.
   */
  async #refuse(waiting: QueuedSubmission, error: unknown): Promise<void> {
    const { id, state } = waiting.register;
    const isByRules = isAppError(error) && /^VAL_(?:PERM|POLICY)_/.test(error.code);
    this.#refused(waiting, isByRules && (await this.#isBehind(id, state.height)) ? behind(id) : error);
  }

  async #answerKnown(submission: CandidateSubmission, known: Admitted): Promise<void> {
    try {
      this.#admitted(submission, await this.#onDisk(submission.register, known));
    } catch (error) {
      this.#refused(submission, error);
    }
  }

  async #isBehind(registerId: string, height: number): Promise<boolean> {
    try {
      const stored = await this.#options.ledger.findRegister(registerId);
      return stored !== undefined && stored.height > height;
    } catch (error) {
      return isAppError(error, 'unavailable');
    }
  }

  async #ask(questions: readonly Question[]): Promise<readonly LookupAnswer[]> {
    try {
      const answers = await this.#options.lookup.ask(questions);
      if (answers.length === questions.length) return answers;
    } catch (cause) {
      throw failure('VAL_CHAIN_TRANSIENT', {
        message: 'The register service is unavailable; retry',
        cause,
        retryAfterSeconds: 1,
      });
    }
    throw failure('VAL_CHAIN_TRANSIENT', { retryAfterSeconds: 1 });
  }

  /** Inserts a transaction into the pool, or answers a known or inadmissible one. */
  #insert(waiting: QueuedSubmission, facts: InsertFacts): readonly AddedSubmission[] {
    try {
      const outcome = this.#add(waiting, facts);
      if (!('added' in outcome)) return [{ waiting, transaction: outcome }];
      void this.#answerKnown(waiting, outcome);
    } catch (error) {
      void this.#refuse(waiting, error);
    }
    return [];
  }

  #add(waiting: QueuedSubmission, { answer, pinned }: InsertFacts): PooledTransaction | Admitted {
    const { candidate, register } = waiting;
    const { clock } = this.#options;
    const known =
      findPooledDuplicate(register, candidate) ?? findSealedDuplicate(candidate, answer, clock.nowMs());
    if (known !== undefined) return known;
    const transaction = linkCandidate(register, candidate, { answer, pinned, clock });
    register.pool.add(transaction);
    register.tombstones.remove(candidate.txId);
    return transaction;
  }

  /**
   * While the disk is full, the transactions stay queued for writing. The client is answered to retry; they do not count as accepted.
   */
  async #persist(added: readonly AddedSubmission[]): Promise<void> {
    if (added.length === 0) return;
    const forced = this.#options.append(
      ...added.map(({ transaction }) => ({ kind: 'transaction' as const, value: transaction })),
    );
    this.#announce(added);
    try {
      await this.#options.unlessFull(this.#recordSegments(forced, added));
    } catch (error) {
      for (const { waiting } of added) this.#refused(waiting, error);
      return;
    }
    for (const { waiting, transaction } of added) {
      const { registerId, txId: transactionId, addedAtMs } = transaction;
      this.#admitted(waiting, { transactionId, registerId, addedAtMs, added: true });
    }
  }

  async #recordSegments(
    forced: Promise<number>,
    added: readonly Pick<AddedSubmission, 'waiting'>[],
  ): Promise<void> {
    try {
      const segment = await forced;
      for (const { waiting } of added) waiting.register.pool.setSegment(waiting.candidate.txId, segment);
    } catch (error) {
      for (const { waiting } of added) waiting.register.pool.remove(waiting.candidate.txId);
      throw error;
    }
  }

  /**
   * Announces the transactions and allows proposals before the write completes. Messages of this member that refer to them
   * follow them in the log and are sent only once they are on disk.
   */
  #announce(added: readonly AddedSubmission[]): void {
    for (const register of new Set(added.map(({ waiting }) => waiting.register))) {
      const submitted = added.filter(({ waiting }) => waiting.register === register && !waiting.isPeer);
      const transactions = submitted.map(({ transaction }) => transaction);
      if (submitted.length > 0) this.#options.accepted(register.id, transactions);
      register.wake();
    }
  }
}
