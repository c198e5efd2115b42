import { backgroundTimers, type Timers } from './timing.ts';

/** Wakes a loop between two passes, at a notification or at the end of the interval. */
interface WakeSignal {
  /** Ends the current wait, or the next one before it begins: a notification during a pass is not lost. */
  notify(): void;
  /** Resolves after `ms` milliseconds or at a notification. One wait at a time. */
  wait(ms: number): Promise<void>;
}

/**
 * Creates an unsignalled wake signal.
 * @param timers those of the process when absent; they do not keep it alive
 */
export function createWakeSignal(timers: Timers = backgroundTimers()): WakeSignal {
  let signalled = Promise.withResolvers<void>();
  return {
    notify: () => signalled.resolve(),
    async wait(ms) {
      const cancel = timers.after(ms, signalled.resolve);
      await signalled.promise;
      cancel();
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

interface PollLoopOptions {
  /** Milliseconds until the first pass; 0 when absent: it begins at once. */
  readonly firstMs?: number | undefined;
  /** Those of the process when absent; they do not keep it alive. */
  readonly timers?: Timers | undefined;
}

/**
 * Starts a loop.
 * @param pass returns the milliseconds until the next pass; it must not reject
 */
export function startPollLoop(pass: () => Promise<number>, options: PollLoopOptions = {}): PollLoop {
  const { firstMs = 0, timers } = options;
  const signal = createWakeSignal(timers);
  let isStopped = false;
  const loop = async (): Promise<void> => {
    if (firstMs > 0) await signal.wait(firstMs);
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
