/** Bounded waits that can be ended all at once. */
interface Waits {
  /** The result of a promise; undefined after `ms` and once waits have ended. A late result is ignored. */
  within<T>(promise: Promise<T>, ms: number): Promise<T | undefined>;
  /** Resolves after `ms`, or once waits have ended. */
  rest(ms: number): Promise<void>;
  end(): void;
}

/**
 * Waits whose timers are unref'd. Each one releases all of its state when it is over, however long the object lives.
 */
export function createWaits(): Waits {
  const ends = new Set<() => void>();
  let isOver = false;

  async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
    const late = Promise.withResolvers<undefined>();
    const end = () => late.resolve(undefined);
    if (isOver) end();
    const timer = setTimeout(end, ms);
    timer.unref();
    ends.add(end);
    try {
      return await Promise.race([promise, late.promise]);
    } finally {
      clearTimeout(timer);
      ends.delete(end);
    }
  }

  return {
    within,
    rest: (ms) => within(new Promise<undefined>(() => undefined), ms),
    end() {
      isOver = true;
      for (const end of ends) end();
    },
  };
}
