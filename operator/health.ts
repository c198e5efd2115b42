import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { AppError } from '#core/errors/errors.ts';
import type { ReadinessCheck } from '#kit/http/http.ts';
import { operatorError } from './errors.ts';
import type { Leader } from './kube/leader.ts';

/** Largest event loop delay of a healthy process. */
const maxDelayMs = 5_000;
/** Attempts to renew the lease happen every two seconds; after this time without one the process is stuck. */
const maxAttemptAgeMs = 60_000;

interface LoopWatch {
  readonly check: ReadinessCheck;
  stop(): void;
}

/** Fails when the event loop was blocked since the last check. */
export function watchLoop(): LoopWatch {
  const delays = monitorEventLoopDelay({ resolution: 20 });
  delays.enable();
  return {
    check: {
      name: 'event loop',
      check: () => {
        const worstMs = delays.max / 1_000_000;
        delays.reset();
        if (worstMs > maxDelayMs) throw stuck(`the event loop was blocked for ${Math.round(worstMs)} ms`);
      },
    },
    stop: () => void delays.disable(),
  };
}

/** Fails when there was no attempt to acquire or renew the lease for too long. */
export function leaseCheck(leader: Leader): ReadinessCheck {
  return {
    name: 'lease',
    check: () => {
      const ageMs = Math.round(leader.lastAttemptAgeMs());
      if (ageMs > maxAttemptAgeMs) throw stuck(`no attempt to acquire or renew the lease for ${ageMs} ms`);
    },
  };
}

function stuck(message: string): AppError {
  return operatorError('STUCK', message);
}
