import { startPollLoop } from '#kit/clock/poll-loop.ts';
import type { Timers } from '#kit/clock/timing.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Installation } from '../api/installation.ts';
import type { Installations } from './installations.ts';
import type { ServiceSession } from './sessions.ts';

export interface SessionWarmupOptions {
  readonly sessions: { of(installation: Installation): Promise<Pick<ServiceSession, 'token'>> };
  readonly installations: Installations;
  readonly timing: Timers;
  readonly log: Logger;
}

/** Interval; a valid token causes no call. */
const warmupIntervalMs = 10_000;

/**
 * Keeps identity and service token of every installation ready in every process, so that a new leader need not wait for
 * them. It changes nothing at the services. Returns a function that stops it.
 */
export function warmUpSessions({ sessions, installations, timing, log }: SessionWarmupOptions): () => void {
  const opening = new Set<Installation>();
  const open = async (installation: Installation): Promise<void> => {
    if (opening.has(installation)) return;
    opening.add(installation);
    try {
      const { token } = await sessions.of(installation);
      await token();
    } catch (error) {
      // the leader reports this in the conditions
      log.debug({ err: error, subject: installation.namespace }, 'No identity or token yet');
    } finally {
      opening.delete(installation);
    }
  };
  const openAll = () => {
    for (const each of installations.all()) void open(each);
  };
  const unsubscribe = installations.subscribe(openAll);
  const loop = startPollLoop(
    async () => {
      openAll();
      return warmupIntervalMs;
    },
    { timers: timing },
  );
  return () => {
    void loop.stop();
    unsubscribe();
  };
}
