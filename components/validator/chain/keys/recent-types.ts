/** Memory of one transaction: its id and an entry of a map. */
const entryBytes = 192;

/** Types of the latest transactions of a register, by id. */
export class RecentTypes {
  readonly #kept: number;
  #newer = new Map<string, string>();
  #older = new Map<string, string>();
  /** Those of them that are steps. */
  #newerSteps = new Set<string>();
  #olderSteps = new Set<string>();

  /** @param kept number of transactions that are kept at least, once there are so many; at most twice as many are kept */
  constructor(kept: number) {
    this.#kept = kept;
  }

  get bytes(): number {
    const entries = this.#newer.size + this.#older.size + this.#newerSteps.size + this.#olderSteps.size;
    return entries * entryBytes;
  }

  add(txId: string, type: string, isStep: boolean): void {
    if (this.#newer.size >= this.#kept) {
      this.#older = this.#newer;
      this.#newer = new Map();
      this.#olderSteps = this.#newerSteps;
      this.#newerSteps = new Set();
    }
    this.#newer.set(txId, type);
    if (isStep) this.#newerSteps.add(txId);
  }

  isStep(txId: string): boolean {
    return this.#newerSteps.has(txId) || this.#olderSteps.has(txId);
  }

  find(txId: string): string | undefined {
    return this.#newer.get(txId) ?? this.#older.get(txId);
  }

  clear(): void {
    this.#newer = new Map();
    this.#older = new Map();
    this.#newerSteps = new Set();
    this.#olderSteps = new Set();
  }
}
