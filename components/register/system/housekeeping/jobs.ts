import type { Clock } from '#kit/clock/clock.ts';
import { type JobOptions, startJob } from '#kit/clock/jobs.ts';
import type { Database } from '#kit/db/db.ts';
import { pruneEvents } from '#kit/db/outbox.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { pruneRegistrations } from '../../registers/creation/store.ts';
import { findPurgeable, finishPurge, purgeDockets } from './store.ts';

interface HousekeepingDeps {
  readonly database: Database<RegisterSchema>;
  readonly clock: Clock;
}

const firstMs = 60_000;
const everyMs = 3_600_000;
/** Retention of registrations: finalised ones answer a repeated finalize, expired ones answer that they expired. */
const keptRegistrationsMs = 24 * 3_600_000;
const keptEventsDays = 7;
/** Retention of the data of a deleted register. */
const keptDeletedMs = 7 * 24 * 3_600_000;
const docketsPerStep = 500;

/** Deletes in small steps, so that a large register holds no lock for long. */
async function purgeDeleted(deps: HousekeepingDeps, signal: AbortSignal): Promise<void> {
  const { database, clock } = deps;
  const now = new Date(clock.nowMs());
  const deletedBefore = new Date(now.getTime() - keptDeletedMs);
  for (const registerNo of await findPurgeable(database.read, { deletedBefore, now })) {
    const step = () => database.transact((tx) => purgeDockets(tx, registerNo, docketsPerStep));
    while (await step()) signal.throwIfAborted();
    await database.transact((tx) => finishPurge(tx, registerNo, new Date(clock.nowMs())));
  }
}

/**
 * Deletes expired data; several replicas may run it concurrently.
 * @param signal ends the run between two steps; the next run continues
 */
export async function runHousekeeping(deps: HousekeepingDeps, signal: AbortSignal): Promise<void> {
  const before = new Date(deps.clock.nowMs() - keptRegistrationsMs);
  await deps.database.transact((tx) => pruneRegistrations(tx, before));
  await deps.database.transact((tx) => pruneEvents(tx, keptEventsDays));
  await purgeDeleted(deps, signal);
}

/** Runs housekeeping shortly after the start and every hour; returns the function that stops it. */
export function startHousekeeping(deps: HousekeepingDeps & JobOptions): () => Promise<void> {
  const run = (signal: AbortSignal) => runHousekeeping(deps, signal);
  return startJob({ name: 'housekeeping', firstMs, everyMs, run }, deps).stop;
}
