import { sleep, type Timing } from '#kit/clock/timing.ts';

export interface Rate {
  readonly perSecond: number;
  /** Tokens in a full bucket. */
  readonly burst: number;
}

/** A token bucket. Tokens can be reserved ahead of time, so that callers are served in order of arrival. */
export interface Bucket {
  /** Reserves a token; returns the milliseconds until it is available. */
  reserve(): number;
  /** Takes a token if one is available. */
  take(): boolean;
  /** Reserves a token and waits for it; an aborted wait returns the token. */
  wait(signal?: AbortSignal): Promise<void>;
}

/** Creates a full bucket. */
export function createBucket(rate: Rate, timing: Timing): Bucket {
  let tokens = rate.burst;
  let filledAt = timing.monotonicMs();
  const fill = () => {
    const now = timing.monotonicMs();
    tokens = Math.min(rate.burst, tokens + ((now - filledAt) * rate.perSecond) / 1000);
    filledAt = now;
  };
  const reserve = () => {
    fill();
    tokens -= 1;
    return tokens >= 0 ? 0 : (-tokens * 1000) / rate.perSecond;
  };
  return {
    reserve,
    take: () => {
      fill();
      if (tokens < 1) return false;
      tokens -= 1;
      return true;
    },
    wait: async (signal) => {
      signal?.throwIfAborted();
      const waitMs = reserve();
      if (waitMs === 0) return;
      try {
        await sleep(timing, waitMs, signal);
      } catch (error) {
        tokens += 1;
        throw error;
      }
    },
  };
}

/** Delays between attempts. */
export interface Backoff {
  /** Milliseconds until the next attempt: uniform between the minimum and a ceiling that doubles each time. */
  next(): number;
  /** Starts again at the first delay, after a success. */
  reset(): void;
}

/** Exponential backoff with full jitter, in milliseconds from `firstMs` to `lastMs`. */
export function createBackoff(limits: { firstMs: number; lastMs: number }, timing: Timing): Backoff {
  let attempts = 0;
  return {
    next: () => {
      const ceiling = Math.min(limits.lastMs, limits.firstMs * 2 ** Math.min(attempts + 1, 30));
      attempts += 1;
      return limits.firstMs + timing.random() * (ceiling - limits.firstMs);
    },
    reset: () => {
      attempts = 0;
    },
  };
}
