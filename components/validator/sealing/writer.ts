import { isAppError } from '#core/errors/errors.ts';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Ledger, SealedDocket, WriteAnswer } from './ports.ts';
import type { Scheduler } from './scheduler.ts';

export interface WriterOptions {
  readonly registerId: string;
  readonly ledger: Pick<Ledger, 'writeDocket' | 'findRegister'>;
  readonly scheduler: Scheduler;
  readonly log: Logger;
  nowMs(): number;
  /** It is stored, by this member or another one; `attested` names the attestations it was stored with when this one did. */
  onStored(sealed: SealedDocket, attested: readonly string[] | undefined): void;
  /** The register service holds another docket there, or calls ours invalid: a safety violation or a broken store. */
  onRefused(sealed: SealedDocket, answer: WriteAnswer): void;
}

interface Queued {
  readonly sealed: SealedDocket;
  readonly attestation: Promise<ConsensusVote | undefined>;
  /** Attestations of other members, by member. */
  readonly others: Map<string, ConsensusVote>;
  /** When this member stores it although that is another one's task; 0 when it is its own. */
  dueAtMs: number;
  /** It has been given to the register service, or is on its way there. */
  isHanded: boolean;
  /** What comes of handing it over while the one before it is being stored; undefined when that must be done again. */
  ahead?: Promise<Handed | undefined>;
}

/** What the register service said of a docket, and the attestations that it was given with it. */
interface Handed {
  readonly answer: WriteAnswer;
  readonly attested: readonly ConsensusVote[];
}

const retryMs = { first: 100, last: 5000 } as const;
/** A rumour that nobody waits for is looked into so much later, with others that come in the meantime. */
const rumourMs = 500;
/** So many dockets whose fate is not known are worth a question. */
const manyUnknown = 8;

/**
 * Sees to it that the decided dockets of one register are stored, in order (D19). The member whose task it is hands its
 * docket over as soon as the ones before are said to be stored, or while it is storing the one before itself. The others
 * wait, ask the register service when their time has come, and hand over what it still lacks.
 */
export class DocketWriter {
  readonly #options: WriterOptions;
  readonly #queue: Queued[] = [];
  #busy = false;
  #writing: Queued | undefined;
  #stopped = false;
  #delayMs: number = retryMs.first;
  #retryAtMs = 0;
  /** Dockets that the register service holds, as others say. */
  #rumour = 0;
  /** When the register service is asked whether a rumour is true. */
  #askAtMs = Number.POSITIVE_INFINITY;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Decided dockets that are not known to be stored. */
  get size(): number {
    return this.#queue.length;
  }

  /** Of those, the ones that nobody says are stored. */
  get inFlight(): number {
    return this.#queue.filter((queued) => numberOf(queued) >= this.#rumour).length;
  }

  get sealed(): SealedDocket[] {
    return this.#queue.map((queued) => queued.sealed);
  }

  /** `afterMs` is 0 when storing it is this member's own task. */
  enqueue(sealed: SealedDocket, attestation: Promise<ConsensusVote | undefined>, afterMs: number): void {
    const dueAtMs = afterMs === 0 ? 0 : this.#options.nowMs() + afterMs;
    this.#queue.push({ sealed, attestation, others: new Map(), dueAtMs, isHanded: false });
    this.#sendAhead();
    this.#go();
  }

  /** Another member's attestation of a docket that is not stored yet. */
  attest(docketNumber: number, vote: ConsensusVote): void {
    const queued = this.#queue.find((each) => numberOf(each) === docketNumber);
    if (queued?.dueAtMs !== 0 || queued.sealed.docket.header.hash !== vote.docketHash) return;
    queued.others.set(vote.validatorId, vote);
  }

  /** Somebody says that the register service holds that many dockets. What rests on a lie is put right by the answer. */
  hear(height: number): void {
    if (height <= this.#rumour) return;
    this.#rumour = height;
    this.#askAtMs = Math.min(this.#askAtMs, this.#options.nowMs() + rumourMs);
    this.#go();
  }

  /** Somebody here waits for the answer. */
  ask(): void {
    if (this.#queue.length === 0) return;
    this.#askAtMs = 0;
    this.#go();
  }

  /** The register service holds that many dockets, as it says itself. */
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

  /** Does what can be done now, one thing at a time, or sets the alarm for what comes first. */
  #go(): void {
    if (this.#busy || this.#stopped) return;
    const step = this.#next();
    if (step === undefined) return;
    this.#busy = true;
    void step().finally(() => {
      this.#busy = false;
      this.#go();
    });
  }

  #next(): (() => Promise<void>) | undefined {
    const head = this.#queue[0];
    if (head === undefined) return undefined;
    const nowMs = this.#options.nowMs();
    if (this.#retryAtMs > nowMs) return this.#sleep(this.#retryAtMs - nowMs);
    if (head.dueAtMs === 0) return () => this.#write(head);
    const following = this.#queue.findLast((each) => each.dueAtMs === 0 && numberOf(each) <= this.#rumour);
    if (following !== undefined) return () => this.#write(following);
    const isDue = head.dueAtMs <= nowMs;
    const mustAsk = isDue || this.#askAtMs <= nowMs || this.#queue.length >= manyUnknown;
    if (mustAsk) return () => this.#inquire(isDue);
    return this.#sleep(Math.min(head.dueAtMs, this.#askAtMs) - nowMs);
  }

  #sleep(ms: number): undefined {
    this.#options.scheduler.set(this.#key, ms, () => this.#go());
    return undefined;
  }

  async #inquire(isDue: boolean): Promise<void> {
    const { ledger, registerId, log } = this.#options;
    this.#askAtMs = Number.POSITIVE_INFINITY;
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
      this.#rumour = height;
      this.#delayMs = retryMs.first;
      const head = this.#queue[0];
      if (head === undefined || before !== this.#queue.length) return;
      if (isDue) head.dueAtMs = 0;
      else this.#rest();
    } catch (error) {
      log.warn({ err: error, registerId, retryInMs: this.#delayMs }, 'the register service does not answer');
      this.#rest();
    }
  }

  /** The docket behind the one that is being stored goes on its way too: the register service judges it meanwhile. */
  #sendAhead(): void {
    const writing = this.#writing;
    if (writing?.isHanded !== true || this.#stopped) return;
    const at = this.#queue.indexOf(writing);
    const next = at === -1 ? undefined : this.#queue[at + 1];
    if (next?.dueAtMs !== 0) return;
    next.ahead ??= this.#hand(next).then(
      (handed) => (isStored(handed.answer) ? handed : undefined),
      () => undefined,
    );
  }

  async #hand(queued: Queued): Promise<Handed> {
    const { sealed, others } = queued;
    const own = await queued.attestation;
    const attested = own === undefined ? [...others.values()] : [own, ...others.values()];
    const answer = this.#options.ledger.writeDocket(sealed, attested);
    queued.isHanded = true;
    this.#sendAhead();
    return { answer: await answer, attested };
  }

  async #write(queued: Queued): Promise<void> {
    const { log, registerId } = this.#options;
    const docketNumber = numberOf(queued);
    this.#writing = queued;
    this.#sendAhead();
    let handed: Handed;
    try {
      handed = (await queued.ahead) ?? (await this.#hand(queued));
    } catch (error) {
      // What others attested must not be what the register service stumbles over, either.
      if (!isAppError(error, 'unavailable') && !isAppError(error, 'timeout')) queued.others.clear();
      log.warn({ err: error, registerId, docketNumber, retryInMs: this.#delayMs }, 'docket not stored yet');
      this.#rest();
      return;
    } finally {
      this.#writing = undefined;
    }
    const { answer, attested } = handed;
    if (this.#stopped) return;
    if (answer.outcome === 'out-of-order' && answer.height < docketNumber) {
      log.warn({ registerId, docketNumber, height: answer.height }, 'the register service is behind');
      this.#rumour = answer.height;
      this.#rest();
      return;
    }
    if (answer.outcome === 'invalid' && queued.others.size > 0) {
      // What others attested must not be what keeps the docket out.
      queued.others.clear();
      return;
    }
    if (!isStored(answer)) {
      this.#refuse(queued, answer);
      return;
    }
    this.#delayMs = retryMs.first;
    this.settle(docketNumber);
    // the register service may have said it of this one while the answer was on its way
    if (this.#queue[0] !== queued) return;
    this.#queue.shift();
    this.#rumour = Math.max(this.#rumour, docketNumber + 1);
    const names = attested.map((vote) => vote.validatorId);
    this.#options.onStored(queued.sealed, answer.outcome === 'stored' ? names : undefined);
  }

  #refuse(queued: Queued, answer: WriteAnswer): void {
    this.#stopped = true;
    this.#options.onRefused(queued.sealed, answer);
  }

  #rest(): void {
    this.#retryAtMs = this.#options.nowMs() + this.#delayMs;
    this.#delayMs = Math.min(this.#delayMs * 2, retryMs.last);
  }
}

function isStored({ outcome }: WriteAnswer): boolean {
  return outcome === 'stored' || outcome === 'replayed';
}

function numberOf(queued: Queued): number {
  return queued.sealed.docket.header.docketNumber;
}

function hashOf(queued: Queued): string {
  return queued.sealed.docket.header.hash;
}
