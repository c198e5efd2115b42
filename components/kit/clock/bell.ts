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
