/** Waits for others that are bounded, and that can be ended all at once. */
export interface Waits {
  /** What a promise comes to; undefined after `ms` and once waits are ended. A late one is left to itself. */
  within<T>(promise: Promise<T>, ms: number): Promise<T | undefined>;
  /** Resolves after `ms`, or once waits are ended. */
  rest(ms: number): Promise<void>;
  end(): void;
}

/** Waits that keep no process alive. Each forgets all about itself when it is over, however long it is until the end. */
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
