const PAUSE_AT = 64;
const RESUME_AT = 16;

interface Source {
  pause(): unknown;
  resume(): unknown;
}

/**
 * Turns the events of a stream into one async iteration, bounded: the stream is paused while 64 messages wait. Messages
 * that arrived before the end are delivered before the end or its error.
 */
export class Inbox<T> implements AsyncIterable<T> {
  readonly #source: Source;
  #items: T[] = [];
  #paused = false;
  #end: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(source: Source) {
    this.#source = source;
  }

  push(item: T): void {
    this.#items.push(item);
    if (!this.#paused && this.#items.length >= PAUSE_AT) {
      this.#paused = true;
      this.#source.pause();
    }
    this.#wake?.();
  }

  /** Ends the iteration, with an error when one is given. Only the first call counts. */
  end(error?: unknown): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (;;) {
      const batch = this.#items;
      this.#items = [];
      yield* batch;
      if (this.#items.length > 0) continue;
      if (this.#paused && this.#items.length <= RESUME_AT) {
        this.#paused = false;
        this.#source.resume();
      }
      if (this.#end !== undefined && this.#items.length === 0) break;
      if (this.#items.length === 0) await this.#arrival();
    }
    if (this.#end.error !== undefined) throw this.#end.error;
  }

  async #arrival(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await promise;
    this.#wake = undefined;
  }
}
