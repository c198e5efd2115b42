export interface LineOptions<T> {
  /** Batches at the same time. */
  readonly most: number;
  /** Acts once everything that has arrived is queued. */
  soon(act: () => void): void;
  /** Never rejects. */
  admit(batch: readonly T[]): Promise<void>;
}

const largestBatch = 256;

/** What waits to be admitted, in the order of its arrival; it is taken in batches that grow while others are under way. */
export class Line<T> {
  readonly #options: LineOptions<T>;
  readonly #waiting: T[] = [];
  #batches = 0;
  #scheduled = false;

  constructor(options: LineOptions<T>) {
    this.#options = options;
  }

  get size(): number {
    return this.#waiting.length;
  }

  push(item: T): void {
    this.#waiting.push(item);
    this.#schedule();
  }

  #schedule(): void {
    const { most, soon, admit } = this.#options;
    if (this.#scheduled || this.#batches >= most || this.#waiting.length === 0) return;
    this.#scheduled = true;
    soon(() => {
      this.#scheduled = false;
      if (this.#waiting.length === 0) return;
      this.#batches += 1;
      void admit(this.#waiting.splice(0, largestBatch)).finally(() => {
        this.#batches -= 1;
        this.#schedule();
      });
      this.#schedule();
    });
  }
}
