/** Outcome of counting one request. */
interface LimitDecision {
  readonly allowed: boolean;
  readonly remaining: number;
  /** Seconds until a request is allowed again; 0 when allowed. */
  readonly retryAfterSeconds: number;
  /** Seconds until the whole limit is available again. */
  readonly resetSeconds: number;
}

/** Counts requests by key in memory. */
export interface Counter {
  take(key: string, nowMs: number): LimitDecision;
  readonly size: number;
}

/** Maximum number of keys of a counter; beyond it, the oldest are dropped. */
const maxKeys = 100_000;

interface Window {
  startMs: number;
  current: number;
  previous: number;
}

/** At most `limit` in any window, by the weighted sum of two adjacent windows. Refused requests do not count. */
export function slidingWindow(limit: number, windowSeconds: number): Counter {
  const windowMs = windowSeconds * 1_000;
  const windows = new Map<string, Window>();
  return {
    get size() {
      return windows.size;
    },
    take: (key, nowMs) => {
      const window = currentWindow(windows, key, nowMs, windowMs);
      const elapsed = (nowMs - window.startMs) / windowMs;
      const used = window.previous * (1 - elapsed) + window.current;
      const resetSeconds = Math.ceil((2 * windowMs - (nowMs - window.startMs)) / 1_000);
      if (used + 1 > limit) {
        const waitMs = waitForRoom(window, limit, nowMs, windowMs);
        return {
          allowed: false,
          remaining: 0,
          retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)),
          resetSeconds,
        };
      }
      window.current += 1;
      return { allowed: true, remaining: Math.floor(limit - used - 1), retryAfterSeconds: 0, resetSeconds };
    },
  };
}

/** Milliseconds until the weighted sum allows one more request. */
function waitForRoom(window: Window, limit: number, nowMs: number, windowMs: number): number {
  const room = limit - 1;
  if (window.current <= room && window.previous > 0) {
    const elapsed = 1 - (room - window.current) / window.previous;
    return window.startMs + elapsed * windowMs - nowMs;
  }
  const elapsed = window.current === 0 ? 0 : 1 - room / window.current;
  return window.startMs + (1 + Math.max(0, elapsed)) * windowMs - nowMs;
}

function currentWindow(windows: Map<string, Window>, key: string, nowMs: number, windowMs: number): Window {
  const known = windows.get(key);
  const startMs = Math.floor(nowMs / windowMs) * windowMs;
  if (known === undefined) {
    const window = { startMs, current: 0, previous: 0 };
    windows.set(key, window);
    forget(windows, (other) => startMs - other.startMs >= 2 * windowMs);
    return window;
  }
  if (startMs > known.startMs) {
    known.previous = startMs - known.startMs === windowMs ? known.current : 0;
    known.current = 0;
    known.startMs = startMs;
  }
  return known;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

/** Bursts of `limit`, refilled steadily. */
export function tokenBucket(limit: number, refillPerSecond: number): Counter {
  const buckets = new Map<string, Bucket>();
  const fillMs = (limit / refillPerSecond) * 1_000;
  return {
    get size() {
      return buckets.size;
    },
    take: (key, nowMs) => {
      const bucket = buckets.get(key) ?? { tokens: limit, atMs: nowMs };
      const gained = (Math.max(0, nowMs - bucket.atMs) / 1_000) * refillPerSecond;
      bucket.tokens = Math.min(limit, bucket.tokens + gained);
      bucket.atMs = nowMs;
      if (!buckets.has(key)) {
        buckets.set(key, bucket);
        forget(buckets, (other) => nowMs - other.atMs >= fillMs);
      }
      const allowed = bucket.tokens >= 1;
      if (allowed) {
        bucket.tokens -= 1;
      }
      return {
        allowed,
        remaining: Math.floor(bucket.tokens),
        retryAfterSeconds: allowed ? 0 : Math.max(1, Math.ceil((1 - bucket.tokens) / refillPerSecond)),
        resetSeconds: Math.ceil((limit - bucket.tokens) / refillPerSecond),
      };
    },
  };
}

/** Drops entries that no longer matter, and the oldest beyond the maximum, so that memory stays bounded. */
function forget<T>(entries: Map<string, T>, isOver: (entry: T) => boolean): void {
  if (entries.size <= maxKeys) {
    return;
  }
  for (const [key, entry] of entries) {
    if (isOver(entry)) {
      entries.delete(key);
    }
  }
  for (const key of entries.keys()) {
    if (entries.size <= maxKeys - maxKeys / 10) {
      break;
    }
    entries.delete(key);
  }
}
