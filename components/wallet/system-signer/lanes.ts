/** Work that arrives on one stream: in order within a lane, side by side across lanes, answers as they come. */
export class Lanes<T> implements AsyncIterable<T> {
  readonly #limit: number;
  readonly #tails = new Map<string, Promise<void>>();
  #answers: T[] = [];
  #running = 0;
  #end: { readonly error?: unknown } | undefined;
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;

  /** @param limit tasks at a time; `admit` waits beyond it */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get ended(): boolean {
    return this.#end !== undefined;
  }

  /** Runs the task when those before it in its lane are done. Resolves when another task may be admitted. */
  async admit(lane: string, task: () => Promise<T>): Promise<void> {
    this.#running += 1;
    const before = this.#tails.get(lane) ?? Promise.resolve();
    const tail = before.then(() => this.#run(task));
    this.#tails.set(lane, tail);
    tail.finally(() => this.#leave(lane, tail));
    while (this.#running >= this.#limit && !this.ended) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wakeWriter = resolve;
      await promise;
    }
  }

  /** Nothing more is admitted; answers of running tasks still come. The first end counts. */
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
      // In two steps: the array may be another one once the task is done.
      const answer = await task();
      this.#answers.push(answer);
    } catch (error) {
      this.end(error);
    }
  }

  #leave(lane: string, tail: Promise<void>): void {
    this.#running -= 1;
    if (this.#tails.get(lane) === tail) this.#tails.delete(lane);
    this.#wakeReader?.();
    this.#wakeWriter?.();
  }
}
