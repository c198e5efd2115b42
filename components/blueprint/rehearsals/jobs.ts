import { type JobOptions, startJob } from '#kit/clock/jobs.ts';
import { type EndDeps, end, eraseWallets, settle } from './ending.ts';
import { listLeft, listUnerased, listWalked } from './store.ts';

const everyMs = 60_000;
const idleMs = 7 * 86_400_000;
/** A start that takes longer was interrupted. */
const preparationMs = 10 * 60_000;

/**
 * Ends what an interrupted request left: rehearsals whose instance has ended, those without a request for 7 days, and
 * those that were never prepared. Keys that could not be erased at the end are erased.
 */
export async function tidyRehearsals(deps: EndDeps, signal?: AbortSignal): Promise<void> {
  for (const walked of await listWalked(deps.db.read)) await settle(deps, walked);
  const now = deps.clock.nowMs();
  const before = { prepared: new Date(now - idleMs), unprepared: new Date(now - preparationMs) };
  for (const left of await listLeft(deps.db.read, before)) await end(deps, left, 'Abandoned');
  for (const ended of await listUnerased(deps.db.read)) {
    if (signal?.aborted === true) return;
    await eraseWallets(deps, ended);
  }
}

/** Tidies every minute; returns the function that stops it. */
export function startTidyingRehearsals({ deps, ...options }: { readonly deps: EndDeps } & JobOptions) {
  const run = (signal: AbortSignal) => tidyRehearsals(deps, signal);
  return startJob({ name: 'rehearsals', everyMs, run }, options).stop;
}
