export interface LineOptions<T> {
  /** Concurrent batches. */
  readonly most: number;
  /** Runs the callback once all messages that have arrived are queued. */
  soon(act: () => void): void;
  /** Never rejects. */
  admit(batch: readonly T[]): Promise<void>;
}

const largestBatch = 256;

/** Submissions waiting for admission, in order of arrival. They are taken in batches, which grow while others are in flight. */
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
