import { type Clock, systemClock } from '#kit/clock/clock.ts';

/** Cancels a timer; late and repeated calls do nothing. */
export type Cancel = () => void;

/** The only source of time and randomness, so that tests control both. */
export interface Timing extends Clock {
  /** Milliseconds of the monotonic clock; only differences are meaningful. */
  monotonicMs(): number;
  /** Uniform in [0, 1). */
  random(): number;
  /** Runs `act` once, `ms` milliseconds from now. */
  after(ms: number, act: () => void): Cancel;
}

/** Time and randomness of the machine. */
export function systemTiming(): Timing {
  return {
    ...systemClock(),
    monotonicMs: () => performance.now(),
    random: () => Math.random(),
    after: (ms, act) => {
      const timer = setTimeout(act, ms);
      return () => clearTimeout(timer);
    },
  };
}

/**
 * Resolves after `ms` milliseconds, immediately for zero or less.
 * @throws the reason of the signal when it aborts first
 */
export function sleep(timing: Timing, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    if (ms <= 0) return resolve();
    const onAbort = () => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = timing.after(ms, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** Kubernetes MicroTime for Lease and Event: RFC 3339 with exactly six decimals. */
export function microTime(clock: Clock): string {
  const micros = clock.nowMicros();
  const seconds = new Date(Number(micros / 1000n)).toISOString().slice(0, 19);
  return `${seconds}.${String(micros % 1_000_000n).padStart(6, '0')}Z`;
}
