import type { Candidate } from './judge.ts';

interface Coming {
  readonly promise: Promise<unknown>;
  readonly arrival: number;
}

/** Transactions on their way in, by register, until they are on disk or refused. */
export class UnderWay {
  readonly #coming = new Map<string, Coming>();
  #arrivals = 0;

  /** @returns its place in the order of arrival */
  add({ registerId, txId }: Pick<Candidate, 'registerId' | 'txId'>, promise: Promise<unknown>): number {
    this.#arrivals += 1;
    this.#coming.set(keyOf(registerId, txId), { promise, arrival: this.#arrivals });
    return this.#arrivals;
  }

  /** Forgets it, unless it came once more meanwhile. */
  remove({ registerId, txId }: Pick<Candidate, 'registerId' | 'txId'>, promise: Promise<unknown>): void {
    const key = keyOf(registerId, txId);
    if (this.#coming.get(key)?.promise === promise) this.#coming.delete(key);
  }

  /** Resolves once those of the transactions that are on their way in are on disk or refused. */
  async settled(registerId: string, transactionIds: Iterable<string>): Promise<void> {
    const coming = [...transactionIds].flatMap((txId) => this.#coming.get(keyOf(registerId, txId)) ?? []);
    await Promise.allSettled(coming.map(({ promise }) => promise));
  }

  /** Waits for what candidates follow, where that arrived before: nobody waits in a circle. */
  async predecessors(candidates: Iterable<Candidate>, before: number): Promise<void> {
    const coming: Promise<unknown>[] = [];
    for (const { registerId, previousTransactionId } of candidates) {
      if (previousTransactionId === undefined) continue;
      const found = this.#coming.get(keyOf(registerId, previousTransactionId));
      if (found !== undefined && found.arrival < before) coming.push(found.promise);
    }
    if (coming.length > 0) await Promise.allSettled(coming);
  }
}

function keyOf(registerId: string, transactionId: string): string {
  return `${registerId}/${transactionId}`;
}
