import { AppError } from '#core/errors/errors.ts';

const windowMs = 1_000;
/** A member that catches up asks for a few dockets a second; one that asks for more gets it in the next second. */
const most = { questions: 500, bytes: 32 * 1024 * 1024 } as const;

const mostAsking = 1_024;

interface Asked {
  sinceMs: number;
  questions: number;
  bytes: number;
}

/**
 * What each validator may ask for in a second: answers are made for it and wait in memory until it reads them, and nothing
 * but this keeps it from asking for all of them again and again.
 */
export class Questions {
  readonly #asked = new Map<string, Asked>();

  /** Throws AppError rate_limited TOO_MANY_QUESTIONS when the second's share is used up. */
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
      throw new AppError('rate_limited', 'TOO_MANY_QUESTIONS', 'asked for too much in a second', options);
    }
    asked.questions += 1;
    const { answer, sizeBytes } = make();
    asked.bytes += sizeBytes;
    return answer;
  }
}
