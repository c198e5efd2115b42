import { AppError } from '#core/errors/errors.ts';

const windowMs = 1_000;
/** A member that catches up requests a few dockets a second; larger demands are served in later windows. */
const most = { questions: 500, bytes: 32 * 1024 * 1024 } as const;

const mostAsking = 1_024;

interface Asked {
  sinceMs: number;
  questions: number;
  bytes: number;
}

/**
 * Limits the answers that each validator may request per second. Answers stay in memory until the requester reads them, so
 * unlimited requests could exhaust it.
 */
export class Questions {
  readonly #asked = new Map<string, Asked>();

  /** Throws AppError rate_limited TOO_MANY_QUESTIONS when the limit of the current second is reached. */
  answer<T>(from: string, make: () => { readonly answer: T; readonly sizeBytes: number }): T {
    const nowMs = performance.now();
    let asked = this.#asked.get(from);
    if (asked === undefined || nowMs - asked.sinceMs >= windowMs) {
      asked = { sinceMs: nowMs, questions: 0, bytes: 0 };
      if (this.#asked.size >= mostAsking) this.#asked.clear();
      this.#asked.set(from, asked);
    }
    if (asked.questions >= most.questions || asked.bytes >= most.bytes) {
      const options = { retryAfterSeconds: 1 };
      throw new AppError(
        'rate_limited',
        'TOO_MANY_QUESTIONS',
        'too many requests or bytes in one second; retry later',
        options,
      );
    }
    asked.questions += 1;
    const { answer, sizeBytes } = make();
    asked.bytes += sizeBytes;
    return answer;
  }
}
