/** Wakes a loop between two passes, at a notification or at the end of the interval. */
export interface WakeSignal {
  /** Ends the current wait, or the next one before it begins: a notification during a pass is not lost. */
  notify(): void;
  /** Resolves after `ms` milliseconds or at a notification. One wait at a time. */
  wait(ms: number): Promise<void>;
}

/** Creates an unsignalled wake signal; its timers are unref'd. */
export function createWakeSignal(): WakeSignal {
  let signalled = Promise.withResolvers<void>();
  return {
    notify: () => signalled.resolve(),
    async wait(ms) {
      const timer = setTimeout(signalled.resolve, ms);
      timer.unref();
      await signalled.promise;
      clearTimeout(timer);
      signalled = Promise.withResolvers<void>();
    },
  };
}

/** Work that is repeated, one pass at a time. */
export interface PollLoop {
  /** The next pass begins as soon as none is under way. */
  wake(): void;
  /** Resolves when the current pass is over; no other pass begins. */
  stop(): Promise<void>;
}

/**
 * Starts a loop; its first pass begins at once.
 * @param pass returns the milliseconds until the next pass; it must not reject
 */
export function startPollLoop(pass: () => Promise<number>): PollLoop {
  const signal = createWakeSignal();
  let isStopped = false;
  const loop = async (): Promise<void> => {
    while (!isStopped) await signal.wait(await pass());
  };
  const running = loop();
  return {
    wake: () => signal.notify(),
    async stop() {
      isStopped = true;
      signal.notify();
      await running;
    },
  };
}
