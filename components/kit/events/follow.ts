import type { Bus } from '#kit/bus/bus.ts';
import { startPollLoop } from '#kit/clock/poll-loop.ts';
import type { Timers } from '#kit/clock/timing.ts';
import type { Logger } from '#kit/log/log.ts';

/** A line for the log about reads that fail. */
export interface FailureReport {
  readonly level: 'info' | 'warn' | 'error';
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

export interface FollowOptions {
  /**
   * Reads the next page of the log and applies it. False: more can be read at once, so the next page is read without a
   * pause. A rejection leaves the position where it was; the page is read again.
   * @param signal aborts at `stop`
   */
  readonly readPage: (signal: AbortSignal) => Promise<boolean>;
  /** Carries the wake signals; when absent, only the poll interval starts reads. */
  readonly bus?: Pick<Bus, 'subscribe'> | undefined;
  /** Subject of the wake signal. */
  readonly subject: string;
  /** Milliseconds between two reads without a wake signal, which may be lost. */
  readonly pollMs: number;
  /**
   * Milliseconds; after consecutive failures the pause doubles from `pollMs` up to this. A wake signal ends every pause.
   * `pollMs` when absent: the pause does not grow.
   */
  readonly longestRetryMs?: number | undefined;
  readonly log: Logger;
  /** The log line for a failure. One outage has one line, and another one when the message changes. */
  readonly report: (error: unknown) => FailureReport;
  /** Message of the log line when the log is read again after an outage. */
  readonly recovered: string;
  /** Called at each failure, for a counter. */
  readonly onFailed?: (() => void) | undefined;
  /** Those of the process when absent; they do not keep it alive. */
  readonly timers?: Timers | undefined;
}

export interface Follower {
  /** Ends the read under way; resolves when it is over. No other read begins. */
  stop(): Promise<void>;
}

/**
 * Follows a log that another service keeps: reads it at once, at each wake signal and at the poll interval, until
 * nothing more is there. The caller keeps the position, so it decides what a restart means: `startConsumer` stores it
 * with the effect, a view in memory starts from a new snapshot.
 */
export function followLog(options: FollowOptions): Follower {
  const { readPage, pollMs, longestRetryMs = pollMs, log } = options;
  const ending = new AbortController();
  const { signal } = ending;
  let failures = 0;
  let reported: string | undefined;

  async function readAll(): Promise<void> {
    for (let complete = false; !complete && !signal.aborted; ) complete = await readPage(signal);
    failures = 0;
    if (reported !== undefined) log.info(options.recovered);
    reported = undefined;
  }

  function fail(error: unknown): void {
    failures += 1;
    options.onFailed?.();
    const { level, fields, message } = options.report(error);
    if (message !== reported) log[level](fields, message);
    reported = message;
  }

  const loop = startPollLoop(
    async () => {
      try {
        await readAll();
      } catch (error) {
        // A read that stop interrupts has not failed.
        if (!signal.aborted) fail(error);
      }
      return failures === 0 ? pollMs : Math.min(pollMs * 2 ** (failures - 1), longestRetryMs);
    },
    { timers: options.timers },
  );
  const unsubscribe = options.bus?.subscribe(options.subject, () => loop.wake());
  return {
    async stop() {
      ending.abort();
      unsubscribe?.();
      await loop.stop();
    },
  };
}
