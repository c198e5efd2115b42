import { type Clock, systemClock } from '#kit/clock/clock.ts';

/** Takes back what was asked for; doing so late or twice does nothing. */
export type Cancel = () => void;

/** All that depends on time and chance, in one place, so that tests own both. */
export interface Timing extends Clock {
  /** Milliseconds of a clock that nobody sets: only differences mean something. */
  monotonicMs(): number;
  /** Uniform in [0, 1). */
  random(): number;
  /** Runs `act` once, `ms` milliseconds from now. */
  after(ms: number, act: () => void): Cancel;
}

/** The machine's own time and chance. */
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
 * Resolves after `ms` milliseconds, at once when there are none.
 * @throws the reason of the signal when that comes first
 */
export function rest(timing: Timing, ms: number, signal?: AbortSignal): Promise<void> {
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

/** Kubernetes MicroTime: RFC 3339 with exactly six decimals, which Lease and Event demand. */
export function microTime(clock: Clock): string {
  const micros = clock.nowMicros();
  const seconds = new Date(Number(micros / 1000n)).toISOString().slice(0, 19);
  return `${seconds}.${String(micros % 1_000_000n).padStart(6, '0')}Z`;
}
