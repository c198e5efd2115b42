import { isAppError } from '#core/errors/errors.ts';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Scheduler } from '#kit/clock/timers.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Ledger, SealedDocket, WriteAnswer } from './ports.ts';

interface WriterOptions {
  readonly registerId: string;
  readonly ledger: Pick<Ledger, 'writeDocket' | 'findRegister'>;
  readonly scheduler: Scheduler;
  readonly log: Logger;
  nowMs(): number;
  /** The docket is stored. `attested` names the attestations stored with it when this member stored it. */
  onStored(sealed: SealedDocket, attested: readonly string[] | undefined): void;
  /** The register service has another docket at that height or judges this one invalid: a safety violation or a damaged store. */
  onRefused(sealed: SealedDocket, answer: WriteAnswer): void;
}

interface QueuedDocket {
  readonly sealed: SealedDocket;
  readonly attestation: Promise<ConsensusVote | undefined>;
  /** Attestations of other members, by member. */
  readonly others: Map<string, ConsensusVote>;
  /** When this member stores the docket in place of the designated writer; 0 when it is the writer. */
  dueAtMs: number;
  /** The docket has been sent to the register service. */
  isSent: boolean;
  /** The result of sending the docket while the previous one is being stored; undefined when it must be sent again. */
  pipelined?: Promise<WriteResult | undefined>;
}

/** The register service's answer about a docket, and the attestations sent with it. */
interface WriteResult {
  readonly answer: WriteAnswer;
  readonly attested: readonly ConsensusVote[];
}

const retryMs = { first: 100, last: 5000 } as const;
/** An unverified height is checked after this delay, together with later ones, unless a caller waits for it. */
const verifyDelayMs = 500;
/** A queue of this length is checked at the register service at once. */
const verifyQueueLength = 8;

/**
 * Stores the decided dockets of one register in order. The designated writer sends its docket as soon as the previous ones are
 * reported stored, or while it is storing the previous one itself. The other members wait, check the register service after
 * their delay, and store what is still missing.
 */
export class DocketWriter {
  readonly #options: WriterOptions;
  readonly #queue: QueuedDocket[] = [];
  #busy = false;
  #writing: QueuedDocket | undefined;
  #stopped = false;
  #delayMs: number = retryMs.first;
  #retryAtMs = 0;
  /** Number of dockets that the register service holds, as peers report; unverified. */
  #reportedHeight = 0;
  /** Time of the request that verifies the reported height. */
  #verifyAtMs = Number.POSITIVE_INFINITY;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Decided dockets that are not known to be stored. */
  get size(): number {
    return this.#queue.length;
  }

  /** Of those, the ones that no peer reports as stored. */
  get inFlight(): number {
    return this.#queue.filter((queued) => numberOf(queued) >= this.#reportedHeight).length;
  }

  get sealed(): SealedDocket[] {
    return this.#queue.map((queued) => queued.sealed);
  }

  /** `afterMs` is 0 when this member is the designated writer. */
  enqueue(sealed: SealedDocket, attestation: Promise<ConsensusVote | undefined>, afterMs: number): void {
    const dueAtMs = afterMs === 0 ? 0 : this.#options.nowMs() + afterMs;
    this.#queue.push({ sealed, attestation, others: new Map(), dueAtMs, isSent: false });
    this.#pipelineNext();
    this.#run();
  }

  /** Adds another member's attestation of a docket that is not stored yet. */
  attest(docketNumber: number, vote: ConsensusVote): void {
    const queued = this.#queue.find((each) => numberOf(each) === docketNumber);
    if (queued?.dueAtMs !== 0 || queued.sealed.docket.header.hash !== vote.docketHash) return;
    queued.others.set(vote.validatorId, vote);
  }

  /** A peer reports the register service's height. A false report is corrected by the register service's answer. */
  onReportedHeight(height: number): void {
    if (height <= this.#reportedHeight) return;
    this.#reportedHeight = height;
    this.#verifyAtMs = Math.min(this.#verifyAtMs, this.#options.nowMs() + verifyDelayMs);
    this.#run();
  }

  /** Verifies the stored height at once, because a caller waits for it. */
  verifyNow(): void {
    if (this.#queue.length === 0) return;
    this.#verifyAtMs = 0;
    this.#run();
  }

  /** The register service itself has confirmed this height. */
  settle(height: number): void {
    for (let next = this.#queue[0]; next !== undefined && numberOf(next) < height; next = this.#queue[0]) {
      this.#queue.shift();
      this.#options.onStored(next.sealed, undefined);
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#options.scheduler.clear(this.#key);
  }

  get #key(): string {
    return `write/${this.#options.registerId}`;
  }

  /** Runs the next possible step, one at a time, or schedules the earliest later one. */
  #run(): void {
    if (this.#busy || this.#stopped) return;
    const step = this.#next();
    if (step === undefined) return;
    this.#busy = true;
    void step().finally(() => {
      this.#busy = false;
      this.#run();
    });
  }

  #next(): (() => Promise<void>) | undefined {
    const head = this.#queue[0];
    if (head === undefined) return undefined;
    const nowMs = this.#options.nowMs();
    if (this.#retryAtMs > nowMs) return this.#sleepFor(this.#retryAtMs - nowMs);
    if (head.dueAtMs === 0) return () => this.#write(head);
    const following = this.#queue.findLast(
      (each) => each.dueAtMs === 0 && numberOf(each) <= this.#reportedHeight,
    );
    if (following !== undefined) return () => this.#write(following);
    const isDue = head.dueAtMs <= nowMs;
    const mustVerify = isDue || this.#verifyAtMs <= nowMs || this.#queue.length >= verifyQueueLength;
    if (mustVerify) return () => this.#verifyStored(isDue);
    return this.#sleepFor(Math.min(head.dueAtMs, this.#verifyAtMs) - nowMs);
  }

  #sleepFor(ms: number): undefined {
    this.#options.scheduler.set(this.#key, ms, () => this.#run());
    return undefined;
  }

  async #verifyStored(isDue: boolean): Promise<void> {
    const { ledger, registerId, log } = this.#options;
    this.#verifyAtMs = Number.POSITIVE_INFINITY;
    try {
      const facts = await ledger.findRegister(registerId);
      if (this.#stopped) return;
      const height = facts?.height ?? 0;
      const last = this.#queue.find((queued) => numberOf(queued) === height - 1);
      if (last !== undefined && facts !== undefined && hashOf(last) !== facts.headHash) {
        this.#refuse(last, { outcome: 'divergent', height, refusals: [] });
        return;
      }
      const before = this.#queue.length;
      this.settle(height);
      this.#reportedHeight = height;
      this.#delayMs = retryMs.first;
      const head = this.#queue[0];
      if (head === undefined || before !== this.#queue.length) return;
      if (isDue) head.dueAtMs = 0;
      else this.#backOff();
    } catch (error) {
      log.warn(
        { err: error, registerId, retryInMs: this.#delayMs },
        'the register service did not answer; the check of stored dockets is repeated',
      );
      this.#backOff();
    }
  }

  /** Sends the next docket while the current one is being stored, so that the register service judges it meanwhile. */
  #pipelineNext(): void {
    const writing = this.#writing;
    if (writing?.isSent !== true || this.#stopped) return;
    const at = this.#queue.indexOf(writing);
    const next = at === -1 ? undefined : this.#queue[at + 1];
    if (next?.dueAtMs !== 0) return;
    next.pipelined ??= this.#send(next).then(
      (result) => (isStored(result.answer) ? result : undefined),
      () => undefined,
    );
  }

  async #send(queued: QueuedDocket): Promise<WriteResult> {
    const { sealed, others } = queued;
    const own = await queued.attestation;
    const attested = own === undefined ? [...others.values()] : [own, ...others.values()];
    const answer = this.#options.ledger.writeDocket(sealed, attested);
    queued.isSent = true;
    this.#pipelineNext();
    return { answer: await answer, attested };
  }

  async #write(queued: QueuedDocket): Promise<void> {
    const { log, registerId } = this.#options;
    const docketNumber = numberOf(queued);
    this.#writing = queued;
    this.#pipelineNext();
    let result: WriteResult;
    try {
      result = (await queued.pipelined) ?? (await this.#send(queued));
    } catch (error) {
      // The error may be caused by a peer's attestation, so the retry omits them.
      if (!isAppError(error, 'unavailable') && !isAppError(error, 'timeout')) queued.others.clear();
      log.warn(
        { err: error, registerId, docketNumber, retryInMs: this.#delayMs },
        'a docket could not be stored; it is sent again',
      );
      this.#backOff();
      return;
    } finally {
      this.#writing = undefined;
    }
    const { answer, attested } = result;
    if (this.#stopped) return;
    if (answer.outcome === 'out-of-order' && answer.height < docketNumber) {
      log.warn(
        { registerId, docketNumber, height: answer.height },
        'the register service lacks earlier dockets; they are sent again',
      );
      this.#reportedHeight = answer.height;
      this.#backOff();
      return;
    }
    if (answer.outcome === 'invalid' && queued.others.size > 0) {
      // A peer's invalid attestation must not keep the docket out, so the retry omits them.
      queued.others.clear();
      return;
    }
    if (!isStored(answer)) {
      this.#refuse(queued, answer);
      return;
    }
    this.#delayMs = retryMs.first;
    this.settle(docketNumber);
    // the register service may have confirmed this docket in another answer meanwhile
    if (this.#queue[0] !== queued) return;
    this.#queue.shift();
    this.#reportedHeight = Math.max(this.#reportedHeight, docketNumber + 1);
    const names = attested.map((vote) => vote.validatorId);
    this.#options.onStored(queued.sealed, answer.outcome === 'stored' ? names : undefined);
  }

  #refuse(queued: QueuedDocket, answer: WriteAnswer): void {
    this.#stopped = true;
    this.#options.onRefused(queued.sealed, answer);
  }

  #backOff(): void {
    this.#retryAtMs = this.#options.nowMs() + this.#delayMs;
    this.#delayMs = Math.min(this.#delayMs * 2, retryMs.last);
  }
}

function isStored({ outcome }: WriteAnswer): boolean {
  return outcome === 'stored' || outcome === 'replayed';
}

function numberOf(queued: QueuedDocket): number {
  return queued.sealed.docket.header.docketNumber;
}

function hashOf(queued: QueuedDocket): string {
  return queued.sealed.docket.header.hash;
}
