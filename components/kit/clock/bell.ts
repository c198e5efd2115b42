/** What a loop waits at between two rounds: somebody rings, or the time is up. */
export interface Bell {
  /** Ends the rest under way, or the next one before it begins: what came during a round is not slept over. */
  ring(): void;
  /** Resolves after `ms` milliseconds or at a ring. One rest at a time. */
  rest(ms: number): Promise<void>;
}

/** A bell that nobody has rung yet. A rest keeps no process alive. */
export function createBell(): Bell {
  let rung = Promise.withResolvers<void>();
  return {
    ring: () => rung.resolve(),
    async rest(ms) {
      const timer = setTimeout(rung.resolve, ms);
      timer.unref();
      await rung.promise;
      clearTimeout(timer);
      rung = Promise.withResolvers<void>();
    },
  };
}

/** Work that is done in rounds, one after the other. */
export interface Rounds {
  /** The next round begins as soon as no other one is under way. */
  kick(): void;
  /** Resolves when the round under way is over; no other one begins. */
  stop(): Promise<void>;
}

/**
 * Begins the first round at once.
 * @param round gives the milliseconds of rest until the next one; it may not reject
 */
export function startRounds(round: () => Promise<number>): Rounds {
  const bell = createBell();
  let isStopped = false;
  const loop = async (): Promise<void> => {
    while (!isStopped) await bell.rest(await round());
  };
  const running = loop();
  return {
    kick: () => bell.ring(),
    async stop() {
      isStopped = true;
      bell.ring();
      await running;
    },
  };
}
