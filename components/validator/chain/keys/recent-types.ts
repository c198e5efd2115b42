/** Memory of one transaction: its id and an entry of a map. */
const entryBytes = 192;

/** Types of the latest transactions of a register, by id. */
export class RecentTypes {
  readonly #kept: number;
  #newer = new Map<string, string>();
  #older = new Map<string, string>();

  /** @param kept number of transactions that are kept at least, once there are so many; at most twice as many are kept */
  constructor(kept: number) {
    this.#kept = kept;
  }

  get bytes(): number {
    return (this.#newer.size + this.#older.size) * entryBytes;
  }

  add(txId: string, type: string): void {
    if (this.#newer.size >= this.#kept) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(txId, type);
  }

  find(txId: string): string | undefined {
    return this.#newer.get(txId) ?? this.#older.get(txId);
  }

  clear(): void {
    this.#newer = new Map();
    this.#older = new Map();
  }
}
