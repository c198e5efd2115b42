/** The bytes that the pools of a validator share, whatever register they are of (notes/ledger.md L-79). */
export class Budget {
  readonly maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /** Held by all pools: what waits and what is being sealed. */
  get bytes(): number {
    return this.#bytes;
  }

  hasRoomFor(sizeBytes: number): boolean {
    return this.#bytes + sizeBytes <= this.maxBytes;
  }

  /** What a pool takes up, or negative what it gives back. Decided dockets are held whatever the bound is. */
  hold(bytes: number): void {
    this.#bytes += bytes;
  }
}
