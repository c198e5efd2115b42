import { monitorEventLoopDelay } from 'node:perf_hooks';
import { AppError } from '#core/errors/errors.ts';
import type { ReadinessCheck } from '#kit/http/http.ts';
import type { Leader } from './kube/leader.ts';

/** A loop that was held up this long since the last look is no loop to lead with. */
const MAX_DELAY_MS = 5_000;
/** The lease is looked at every two seconds; this long without a look and nothing turns any more. */
const MAX_TURN_MS = 60_000;

export interface LoopWatch {
  readonly check: ReadinessCheck;
  stop(): void;
}

/** Fails when the event loop was held up since it was last asked. */
export function watchLoop(): LoopWatch {
  const delays = monitorEventLoopDelay({ resolution: 20 });
  delays.enable();
  return {
    check: {
      name: 'event loop',
      check: () => {
        const worstMs = delays.max / 1_000_000;
        delays.reset();
        if (worstMs > MAX_DELAY_MS) throw stuck(`the event loop was held up for ${Math.round(worstMs)} ms`);
      },
    },
    stop: () => void delays.disable(),
  };
}

/** Fails when nobody has looked at the lease for long. */
export function leaseCheck(leader: Leader): ReadinessCheck {
  return {
    name: 'lease',
    check: () => {
      const ageMs = Math.round(leader.lastAttemptAgeMs());
      if (ageMs > MAX_TURN_MS) throw stuck(`the lease was not looked at for ${ageMs} ms`);
    },
  };
}

function stuck(message: string): AppError {
  return new AppError('unavailable', 'STUCK', message);
}
