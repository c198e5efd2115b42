/** Source of time. Everything that depends on time receives one, so that tests control it. */
export interface Clock {
  /** Milliseconds since the epoch, UTC. */
  nowMs(): number;
  /** Microseconds since the epoch, UTC. */
  nowMicros(): bigint;
}

/** The clock of the machine. Microseconds are real: the monotonic clock refines the wall clock. */
export function systemClock(): Clock {
  return {
    nowMs: () => Date.now(),
    nowMicros: () => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)),
  };
}

/** A clock that moves only when a test moves it. */
export interface ManualClock extends Clock {
  /** Moves forward by milliseconds (fractions reach microseconds). */
  advance(ms: number): void;
  /** Jumps to milliseconds since the epoch. */
  set(ms: number): void;
}

/** A clock for tests, starting at `startMs` milliseconds since the epoch. */
export function manualClock(startMs: number): ManualClock {
  let micros = BigInt(Math.round(startMs * 1000));
  return {
    nowMs: () => Number(micros / 1000n),
    nowMicros: () => micros,
    advance: (ms) => {
      micros += BigInt(Math.round(ms * 1000));
    },
    set: (ms) => {
      micros = BigInt(Math.round(ms * 1000));
    },
  };
}
