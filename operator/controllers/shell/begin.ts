import type { Caches } from './caches.ts';
import type { Shell } from './shell.ts';

/**
 * Lets controllers work in a process that leads from now on, after a new look at everything: what the former leader did
 * last may not have reached the caches of this one, and would be undone.
 */
export async function begin(caches: Caches, shells: readonly Shell[]): Promise<void> {
  await caches.renew();
  for (const shell of shells) shell.start();
}
