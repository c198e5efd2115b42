import type { Candidate } from './judge.ts';

interface Coming {
  readonly promise: Promise<unknown>;
  /** Sequence number in the order of arrival. */
  readonly place: number;
}

/** Transactions in flight, by register, until they are on disk or refused. */
export class UnderWay {
  /** By register and transaction. */
  readonly #coming = new Map<string, Map<string, Coming>>();
  #arrivals = 0;

  /** @returns its sequence number in the order of arrival */
  add({ registerId, txId }: Pick<Candidate, 'registerId' | 'txId'>, promise: Promise<unknown>): number {
    this.#arrivals += 1;
    const coming = this.#coming.get(registerId) ?? new Map<string, Coming>();
    this.#coming.set(registerId, coming.set(txId, { promise, place: this.#arrivals }));
    return this.#arrivals;
  }

  /** Removes the entry unless the transaction was submitted again meanwhile. */
  remove({ registerId, txId }: Pick<Candidate, 'registerId' | 'txId'>, promise: Promise<unknown>): void {
    const coming = this.#coming.get(registerId);
    if (coming?.get(txId)?.promise === promise) coming.delete(txId);
    if (coming?.size === 0) this.#coming.delete(registerId);
  }

  /** Resolves once those of the transactions that are in flight are on disk or refused. */
  async settled(registerId: string, transactionIds: Iterable<string>): Promise<void> {
    const coming = [...transactionIds].flatMap((txId) => this.#coming.get(registerId)?.get(txId) ?? []);
    await Promise.allSettled(coming.map(({ promise }) => promise));
  }

  /** Waits for predecessors of the candidates that arrived earlier. The order of arrival rules out cycles. */
  async predecessors(candidates: Iterable<Candidate>, before: number): Promise<void> {
    const coming: Promise<unknown>[] = [];
    for (const { registerId, previousTransactionId } of candidates) {
      if (previousTransactionId === undefined) continue;
      const found = this.#coming.get(registerId)?.get(previousTransactionId);
      if (found !== undefined && found.place < before) coming.push(found.promise);
    }
    if (coming.length > 0) await Promise.allSettled(coming);
  }
}
