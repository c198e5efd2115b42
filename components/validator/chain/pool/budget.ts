/** The memory budget that all pools of a validator share. */
export class Budget {
  readonly maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /** Bytes held by all pools: waiting transactions and those being sealed. */
  get bytes(): number {
    return this.#bytes;
  }

  fits(sizeBytes: number): boolean {
    return this.#bytes + sizeBytes <= this.maxBytes;
  }

  /** Adds a pool's bytes, or subtracts them when negative. Decided dockets are held even above the limit. */
  hold(bytes: number): void {
    this.#bytes += bytes;
  }
}
