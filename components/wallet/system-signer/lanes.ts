/**
 * Runs the tasks of a stream: sequentially within a lane, concurrently across lanes. Answers are yielded as they
 * complete.
 */
export class Lanes<T> implements AsyncIterable<T> {
  readonly #limit: number;
  readonly #tails = new Map<string, Promise<void>>();
  #answers: T[] = [];
  #running = 0;
  #end: { readonly error?: unknown } | undefined;
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;

  /** @param limit maximum number of admitted tasks; `admit` waits beyond it */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get ended(): boolean {
    return this.#end !== undefined;
  }

  /** Runs the task after the earlier tasks of its lane. Resolves when another task may be admitted. */
  async admit(lane: string, task: () => Promise<T>): Promise<void> {
    this.#running += 1;
    const before = this.#tails.get(lane) ?? Promise.resolve();
    const tail = before.then(() => this.#run(task));
    this.#tails.set(lane, tail);
    tail.finally(() => this.#release(lane, tail));
    while (this.#running >= this.#limit && !this.ended) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wakeWriter = resolve;
      await promise;
    }
  }

  /** Ends the iteration after the answers of running tasks. Only the first call has an effect. */
  end(error?: unknown): void {
    this.#end ??= error === undefined ? {} : { error };
    this.#wakeReader?.();
    this.#wakeWriter?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (;;) {
      const batch = this.#answers;
      this.#answers = [];
      yield* batch;
      if (this.#answers.length > 0) continue;
      if (this.#end !== undefined && this.#running === 0) break;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wakeReader = resolve;
      await promise;
    }
    if (this.#end.error !== undefined) throw this.#end.error;
  }

  async #run(task: () => Promise<T>): Promise<void> {
    if (this.#end?.error !== undefined) return;
    try {
      // Awaited before the push, because the reader may have replaced the array meanwhile.
      const answer = await task();
      this.#answers.push(answer);
    } catch (error) {
      this.end(error);
    }
  }

  #release(lane: string, tail: Promise<void>): void {
    this.#running -= 1;
    if (this.#tails.get(lane) === tail) this.#tails.delete(lane);
    this.#wakeReader?.();
    this.#wakeWriter?.();
  }
}
