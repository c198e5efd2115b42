interface AdmissionQueueOptions<T> {
  /** Concurrent batches. */
  readonly maxBatches: number;
  /** Runs the callback once all messages that have arrived are queued. */
  defer(callback: () => void): void;
  /** Never rejects. */
  admit(batch: readonly T[]): Promise<void>;
}

const maxBatch = 256;

/** Submissions waiting for admission, in order of arrival. They are taken in batches, which grow while others are in flight. */
export class AdmissionQueue<T> {
  readonly #options: AdmissionQueueOptions<T>;
  readonly #waiting: T[] = [];
  #batches = 0;
  #scheduled = false;

  constructor(options: AdmissionQueueOptions<T>) {
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
    const { maxBatches, defer, admit } = this.#options;
    if (this.#scheduled || this.#batches >= maxBatches || this.#waiting.length === 0) return;
    this.#scheduled = true;
    defer(() => {
      this.#scheduled = false;
      if (this.#waiting.length === 0) return;
      this.#batches += 1;
      void admit(this.#waiting.splice(0, maxBatch)).finally(() => {
        this.#batches -= 1;
        this.#schedule();
      });
      this.#schedule();
    });
  }
}
