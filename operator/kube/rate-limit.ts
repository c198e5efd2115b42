import { rest, type Timing } from './time.ts';

export interface Rate {
  readonly perSecond: number;
  /** Most that may go at once after a quiet time. */
  readonly burst: number;
}

/** A token bucket. Tokens may be promised ahead of time, so that waiters go in the order in which they came. */
export interface Bucket {
  /** Takes a token and gives the milliseconds to wait before it may be used. */
  reserve(): number;
  /** Takes a token only when one is there. */
  take(): boolean;
  /** Takes a token and waits for it; a wait that is aborted gives the token back. */
  wait(signal?: AbortSignal): Promise<void>;
}

/** A full bucket. */
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
        await rest(timing, waitMs, signal);
      } catch (error) {
        tokens += 1;
        throw error;
      }
    },
  };
}

/** Pauses between tries. */
export interface Backoff {
  /** Milliseconds before the next try: uniform between the floor and a ceiling that doubles each time. */
  next(): number;
  /** Called when a try went well. */
  reset(): void;
}

/** Exponential backoff with full jitter, in milliseconds from `firstMs` to `lastMs`. */
export function createBackoff(limits: { firstMs: number; lastMs: number }, timing: Timing): Backoff {
  let tries = 0;
  return {
    next: () => {
      const ceiling = Math.min(limits.lastMs, limits.firstMs * 2 ** Math.min(tries + 1, 30));
      tries += 1;
      return limits.firstMs + timing.random() * (ceiling - limits.firstMs);
    },
    reset: () => {
      tries = 0;
    },
  };
}
