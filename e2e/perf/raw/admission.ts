import type { RawLog } from './log.ts';
import { assertBound, packTransactions, type RawTransaction } from './transaction.ts';
import type { Wire } from './wire.ts';

export interface AdmissionOptions {
  readonly store: Wire;
  readonly log: RawLog;
  verify(checks: readonly Uint8Array[]): Promise<void>;
  /**
   * Called with transactions that are verified and new and whose write has begun; those of clients are announced to the
   * others.
   */
  accepted(transactions: readonly RawTransaction[], ofClients: readonly RawTransaction[]): void;
}

interface Arrived {
  readonly transaction: RawTransaction;
  /** Absent when another member announced it. */
  readonly answer: (() => void) | undefined;
}

const batchesAtOnce = 2;
const largestBatch = 256;

/** The minimum of admission: every signature verified once, one query to the store, one forced write a batch. */
export class RawAdmission {
  readonly #options: AdmissionOptions;
  readonly #arrived: Arrived[] = [];
  #admitting = 0;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** `answer` is called once the transaction is on disk. */
  submit(transaction: RawTransaction, answer: () => void): void {
    this.#arrived.push({ transaction, answer });
    void this.#admit();
  }

  /** Accepts transactions that another member announced. */
  hinted(transactions: readonly RawTransaction[]): void {
    for (const transaction of transactions) {
      assertBound(transaction);
      this.#arrived.push({ transaction, answer: undefined });
    }
    void this.#admit();
  }

  async #admit(): Promise<void> {
    if (this.#admitting >= batchesAtOnce) return;
    this.#admitting += 1;
    const { verify, store, log, accepted } = this.#options;
    while (this.#arrived.length > 0) {
      const batch = this.#arrived.splice(0, largestBatch);
      const transactions = batch.map((one) => one.transaction);
      await verify(transactions.map(({ check }) => check));
      const ids = transactions.map(({ id }) => id.toString('hex')).join(',');
      // The answer decides nothing here: a lagging member may receive transactions that a quorum has sealed meanwhile.
      await store.call(Buffer.from(`?${ids}`));
      const forced = log.force(packTransactions(transactions));
      accepted(
        transactions,
        batch.flatMap(({ transaction, answer }) => (answer === undefined ? [] : transaction)),
      );
      await forced;
      for (const { answer } of batch) answer?.();
    }
    this.#admitting -= 1;
  }
}
