import type { Logger } from '#kit/log/log.ts';
import type { Cancel, Timing } from '../kube/time.ts';
import type { Installation } from './installation.ts';
import type { Installations } from './installations.ts';
import type { Link } from './sessions.ts';

export interface ReadyLinksOptions {
  readonly links: { of(installation: Installation): Promise<Pick<Link, 'token'>> };
  readonly installations: Installations;
  readonly timing: Timing;
  readonly log: Logger;
}

/** Between two looks; a token that is still good costs nothing. */
const LOOK_MS = 10_000;

/**
 * Holds identity and service token of every installation ready, whether this process leads or not: who takes over need
 * not wait for them. Nothing is changed by it. Returns the function that ends it.
 */
export function keepLinksReady({ links, installations, timing, log }: ReadyLinksOptions): () => void {
  const asking = new Set<Installation>();
  let cancel: Cancel | undefined;
  const open = async (installation: Installation): Promise<void> => {
    if (asking.has(installation)) return;
    asking.add(installation);
    try {
      const { token } = await links.of(installation);
      await token();
    } catch (error) {
      // who leads says so in the conditions
      log.debug({ err: error, subject: installation.namespace }, 'No identity or token yet');
    } finally {
      asking.delete(installation);
    }
  };
  const look = () => {
    for (const each of installations.all()) void open(each);
  };
  const lookAgain = () => {
    look();
    cancel = timing.after(LOOK_MS, lookAgain);
  };
  const unsubscribe = installations.subscribe(look);
  lookAgain();
  return () => {
    cancel?.();
    unsubscribe();
  };
}
