import type { Scheduler } from '#kit/clock/timers.ts';
import type { Logger } from '#kit/log/log.ts';

interface Announcement {
  readonly validatorId: string;
  readonly publicKey: string;
  readonly algorithm: 'ED25519';
  readonly endpoint: string;
  readonly version: string;
  readonly features: string[];
}

const everyMs = 60_000;
const retryMs = { first: 250, last: 10_000 } as const;

/**
 * Announces this validator and its endpoint to the register service, every minute and sooner after a failure. Resolves after
 * the first success.
 */
export function keepAnnounced(
  announce: (announcement: Announcement) => Promise<unknown>,
  announcement: Announcement,
  deps: { readonly scheduler: Scheduler; readonly log: Logger },
): Promise<void> {
  const { scheduler, log } = deps;
  let delayMs: number = retryMs.first;
  return new Promise((resolve) => {
    const attempt = async (): Promise<void> => {
      let nextMs: number = everyMs;
      try {
        await announce(announcement);
        delayMs = retryMs.first;
        resolve();
      } catch (error) {
        nextMs = delayMs;
        delayMs = Math.min(delayMs * 2, retryMs.last);
        log.warn(
          { err: error, retryInMs: nextMs },
          'the register service did not accept the announcement of this validator; it is repeated',
        );
      }
      scheduler.set('announce', nextMs, () => void attempt());
    };
    void attempt();
  });
}
