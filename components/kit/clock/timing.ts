import { type Clock, systemClock } from './clock.ts';

/** Cancels a timer; late and repeated calls do nothing. */
export type Cancel = () => void;

/** Source of timers. What waits receives one, so that tests let time pass. */
export interface Timers {
  /** Runs `act` once, `ms` milliseconds from now. */
  after(ms: number, act: () => void): Cancel;
}

/** The only source of time and randomness of a program, so that tests control all of it. */
export interface Timing extends Clock, Timers {
  /** Milliseconds of the monotonic clock; only differences are meaningful. */
  monotonicMs(): number;
  /** Uniform in [0, 1). */
  random(): number;
}

/** Time and randomness of the machine. Its timers keep the process alive. */
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

/** Timers of the machine that do not keep the process alive. */
export function backgroundTimers(): Timers {
  return {
    after: (ms, act) => {
      const timer = setTimeout(act, ms);
      timer.unref();
      return () => clearTimeout(timer);
    },
  };
}

/**
 * Resolves after `ms` milliseconds, immediately for zero or less.
 * @throws the reason of the signal when it aborts first
 */
export function sleep(timers: Timers, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    if (ms <= 0) return resolve();
    const onAbort = () => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = timers.after(ms, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
