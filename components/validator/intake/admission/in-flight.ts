import type { Candidate } from '../verification/judge.ts';

interface InFlightEntry {
  readonly promise: Promise<unknown>;
  /** Sequence number in the order of arrival. */
  readonly sequence: number;
}

/** Transactions in flight, by register, until they are on disk or refused. */
export class InFlight {
  /** By register and transaction. */
  readonly #inFlight = new Map<string, Map<string, InFlightEntry>>();
  #arrivals = 0;

  /** @returns its sequence number in the order of arrival */
  add({ registerId, txId }: Pick<Candidate, 'registerId' | 'txId'>, promise: Promise<unknown>): number {
    this.#arrivals += 1;
    const entries = this.#inFlight.get(registerId) ?? new Map<string, InFlightEntry>();
    this.#inFlight.set(registerId, entries.set(txId, { promise, sequence: this.#arrivals }));
    return this.#arrivals;
  }

  /** Removes the entry unless the transaction was submitted again meanwhile. */
  remove({ registerId, txId }: Pick<Candidate, 'registerId' | 'txId'>, promise: Promise<unknown>): void {
    const entries = this.#inFlight.get(registerId);
    if (entries?.get(txId)?.promise === promise) entries.delete(txId);
    if (entries?.size === 0) this.#inFlight.delete(registerId);
  }

  /** Resolves once those of the transactions that are in flight are on disk or refused. */
  async settled(registerId: string, transactionIds: Iterable<string>): Promise<void> {
    const entries = [...transactionIds].flatMap((txId) => this.#inFlight.get(registerId)?.get(txId) ?? []);
    await Promise.allSettled(entries.map(({ promise }) => promise));
  }

  /** Waits for predecessors of the candidates that arrived earlier. The order of arrival rules out cycles. */
  async predecessors(candidates: Iterable<Candidate>, before: number): Promise<void> {
    const entries: Promise<unknown>[] = [];
    for (const { registerId, previousTransactionId } of candidates) {
      if (previousTransactionId === undefined) continue;
      const found = this.#inFlight.get(registerId)?.get(previousTransactionId);
      if (found !== undefined && found.sequence < before) entries.push(found.promise);
    }
    if (entries.length > 0) await Promise.allSettled(entries);
  }
}
