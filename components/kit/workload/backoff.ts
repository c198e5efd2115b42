const FIRST_MS = 100;
const LAST_MS = 10_000;

/** Growing pauses between attempts, 0.1 to 10 seconds. */
export class Backoff {
  #pauseMs = FIRST_MS;

  /** Half of the pause is random, so that replicas do not retry at the same time. */
  next(): number {
    const pauseMs = this.#pauseMs * (0.5 + Math.random() / 2);
    this.#pauseMs = Math.min(this.#pauseMs * 2, LAST_MS);
    return pauseMs;
  }

  reset(): void {
    this.#pauseMs = FIRST_MS;
  }
}
