/** Log roots of a register's latest sizes, for the checkpoints that were issued a moment ago. */
export class RecentRoots {
  readonly #roots = new Map<number, string>();
  readonly #kept: number;

  constructor(kept = 64) {
    this.#kept = kept;
  }

  /** @param root lower hex of the RFC 6962 root over the first `size` dockets */
  add(size: number, root: string): void {
    this.#roots.set(size, root);
    this.#roots.delete(size - this.#kept);
  }

  /** Undefined for a size that is not reached yet or no longer kept. */
  at(size: number): string | undefined {
    return this.#roots.get(size);
  }
}
