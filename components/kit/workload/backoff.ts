const firstMs = 100;
const lastMs = 10_000;

/** Growing pauses between attempts, 0.1 to 10 seconds. */
export class Backoff {
  #pauseMs = firstMs;

  /** Half of the pause is random, so that replicas do not retry at the same time. */
  next(): number {
    const pauseMs = this.#pauseMs * (0.5 + Math.random() / 2);
    this.#pauseMs = Math.min(this.#pauseMs * 2, lastMs);
    return pauseMs;
  }

  reset(): void {
    this.#pauseMs = firstMs;
  }
}
