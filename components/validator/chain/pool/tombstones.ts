/** An accepted transaction that will never be sealed; kept for 24 h. */
export interface Tombstone {
  readonly registerId: string;
  readonly txId: string;
  readonly status: 'rejected' | 'expired';
  readonly code: string;
  readonly message: string;
  readonly atMs: number;
}

const keptMs = 24 * 60 * 60 * 1000;
const maxTombstones = 10_000;

/** Rejected and expired transactions of one register, kept for 24 h; bounded, oldest evicted first. */
export class Tombstones {
  readonly #byId = new Map<string, Tombstone>();

  add(tombstone: Tombstone, nowMs: number): void {
    this.#byId.delete(tombstone.txId);
    this.#byId.set(tombstone.txId, tombstone);
    this.sweep(nowMs);
  }

  find(txId: string): Tombstone | undefined {
    return this.#byId.get(txId);
  }

  remove(txId: string): void {
    this.#byId.delete(txId);
  }

  all(): Iterable<Tombstone> {
    return this.#byId.values();
  }

  sweep(nowMs: number): void {
    for (const [txId, tombstone] of this.#byId) {
      if (this.#byId.size <= maxTombstones && tombstone.atMs + keptMs > nowMs) return;
      this.#byId.delete(txId);
    }
  }
}
