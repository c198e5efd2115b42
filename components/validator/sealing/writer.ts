import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Ledger, SealedDocket, WriteAnswer } from './ports.ts';
import type { Scheduler } from './scheduler.ts';

export interface WriterOptions {
  readonly registerId: string;
  readonly ledger: Ledger;
  readonly scheduler: Scheduler;
  readonly log: Logger;
  onStored(sealed: SealedDocket): void;
  /** The register service holds another docket there, or calls ours invalid: a safety violation or a broken store. */
  onRefused(sealed: SealedDocket, answer: WriteAnswer): void;
}

interface Queued {
  readonly sealed: SealedDocket;
  readonly attestation: Promise<ConsensusVote | undefined>;
}

const retryMs = { first: 100, last: 5000 } as const;

/** Hands the decided dockets of one register to the register service, in order and one at a time, until each is stored. */
export class DocketWriter {
  readonly #options: WriterOptions;
  readonly #queue: Queued[] = [];
  #writing = false;
  #stopped = false;
  #delayMs: number = retryMs.first;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Decided dockets that are not stored. */
  get size(): number {
    return this.#queue.length;
  }

  get sealed(): SealedDocket[] {
    return this.#queue.map((queued) => queued.sealed);
  }

  enqueue(sealed: SealedDocket, attestation: Promise<ConsensusVote | undefined>): void {
    this.#queue.push({ sealed, attestation });
    if (!this.#writing) void this.#drain();
  }

  stop(): void {
    this.#stopped = true;
    this.#options.scheduler.clear(this.#retryKey);
  }

  get #retryKey(): string {
    return `write/${this.#options.registerId}`;
  }

  async #drain(): Promise<void> {
    this.#writing = true;
    for (let next = this.#queue[0]; next !== undefined && !this.#stopped; next = this.#queue[0]) {
      const done = await this.#write(next);
      if (!done) return;
    }
    this.#writing = false;
  }

  /** False when the queue rests: until the retry, or for good. */
  async #write({ sealed, attestation }: Queued): Promise<boolean> {
    const { ledger, log, registerId } = this.#options;
    const { docketNumber } = sealed.docket.header;
    let answer: WriteAnswer;
    try {
      answer = await ledger.writeDocket(sealed, await attestation);
    } catch (error) {
      log.warn({ err: error, registerId, docketNumber, retryInMs: this.#delayMs }, 'docket not stored yet');
      this.#retry();
      return false;
    }
    if (this.#stopped) return false;
    if (answer.outcome === 'out-of-order' && answer.height < docketNumber) {
      log.warn({ registerId, docketNumber, height: answer.height }, 'the register service is behind');
      this.#retry();
      return false;
    }
    if (answer.outcome !== 'stored' && answer.outcome !== 'replayed') {
      this.#stopped = true;
      this.#options.onRefused(sealed, answer);
      return false;
    }
    this.#delayMs = retryMs.first;
    this.#queue.shift();
    this.#options.onStored(sealed);
    return true;
  }

  #retry(): void {
    if (this.#stopped) return;
    this.#options.scheduler.set(this.#retryKey, this.#delayMs, () => void this.#drain());
    this.#delayMs = Math.min(this.#delayMs * 2, retryMs.last);
  }
}
