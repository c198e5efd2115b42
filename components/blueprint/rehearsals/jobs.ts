import { AppError, isAppError } from '#core/errors/errors.ts';
import { type JobOptions, startJob } from '#kit/clock/jobs.ts';
import { type EndDeps, end, eraseWallets, settle } from './ending.ts';
import { listLeft, listUnerased, listWalked, type Rehearsal } from './store.ts';

const everyMs = 60_000;
const idleMs = 7 * 86_400_000;
/** A start that takes longer was interrupted. */
const preparationMs = 10 * 60_000;

/**
 * Ends what an interrupted request left: rehearsals whose instance has ended, those without a request for 7 days, and
 * those that were never prepared. Keys that could not be erased at the end are erased. A rehearsal that fails stops no
 * other one.
 * @throws AppError unavailable when an outage alone was the cause; AggregateError of all failures else
 */
export async function tidyRehearsals(deps: EndDeps, signal?: AbortSignal): Promise<void> {
  const failures: unknown[] = [];
  const tidyEach = async (
    rehearsals: readonly Rehearsal[],
    tidy: (rehearsal: Rehearsal) => Promise<unknown>,
  ) => {
    for (const rehearsal of rehearsals) {
      if (signal?.aborted === true) return;
      await tidy(rehearsal).catch((error: unknown) => failures.push(error));
    }
  };
  await tidyEach(await listWalked(deps.db.read), (walked) => settle(deps, walked));
  const now = deps.clock.nowMs();
  const before = { prepared: new Date(now - idleMs), unprepared: new Date(now - preparationMs) };
  await tidyEach(await listLeft(deps.db.read, before), (left) => end(deps, left, 'Abandoned'));
  await tidyEach(await listUnerased(deps.db.read), (ended) => eraseWallets(deps, ended));
  report(failures);
}

function report(failures: readonly unknown[]): void {
  const [first] = failures;
  if (failures.length === 0) return;
  const message = `${failures.length} rehearsals could not be tidied`;
  const cause = new AggregateError(failures, message);
  if (isAppError(first) && failures.every((each) => isAppError(each, 'unavailable')))
    throw new AppError('unavailable', first.code, `${message}: ${first.message}`, { cause });
  throw cause;
}

/** Tidies every minute; returns the function that stops it. */
export function startTidyingRehearsals({ deps, ...options }: { readonly deps: EndDeps } & JobOptions) {
  const run = (signal: AbortSignal) => tidyRehearsals(deps, signal);
  return startJob({ name: 'rehearsals', everyMs, run }, options).stop;
}
