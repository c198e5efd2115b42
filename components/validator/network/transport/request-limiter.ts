import { failure } from '../../errors.ts';

const windowMs = 1_000;
/** A member that catches up requests a few dockets a second; larger demands are served in later windows. */
const limits = { requests: 500, bytes: 32 * 1024 * 1024 } as const;

const maxRequesters = 1_024;

interface RequestUsage {
  sinceMs: number;
  requests: number;
  bytes: number;
}

/**
 * Limits the answers that each validator may request per second. Answers stay in memory until the requester reads them, so
 * unlimited requests could exhaust it.
 */
export class RequestLimiter {
  readonly #usage = new Map<string, RequestUsage>();

  /** Throws AppError rate_limited TOO_MANY_QUESTIONS when the limit of the current second is reached. */
  answer<T>(from: string, make: () => { readonly answer: T; readonly sizeBytes: number }): T {
    const nowMs = performance.now();
    let usage = this.#usage.get(from);
    if (usage === undefined || nowMs - usage.sinceMs >= windowMs) {
      usage = { sinceMs: nowMs, requests: 0, bytes: 0 };
      if (this.#usage.size >= maxRequesters) this.#usage.clear();
      this.#usage.set(from, usage);
    }
    if (usage.requests >= limits.requests || usage.bytes >= limits.bytes) {
      const options = { retryAfterSeconds: 1 };
      throw failure('TOO_MANY_QUESTIONS', options);
    }
    usage.requests += 1;
    const { answer, sizeBytes } = make();
    usage.bytes += sizeBytes;
    return answer;
  }
}
