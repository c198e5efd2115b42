import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { pruneEvents } from '#kit/db/outbox.ts';
import type { Logger } from '#kit/log/log.ts';
import type { RegisterSchema } from '../database/schema.ts';
import { pruneRegistrations } from '../registrations/store.ts';
import { findPurgeable, finishPurge, purgeDockets } from './store.ts';

export interface HousekeepingDeps {
  readonly database: Database<RegisterSchema>;
  readonly clock: Clock;
  readonly log: Logger;
}

const firstMs = 60_000;
const everyMs = 3_600_000;
/** Finalised registrations answer a repeated finalize for so long, expired ones say that they expired. */
const keptRegistrationsMs = 24 * 3_600_000;
const keptEventsDays = 7;
/** Data of a deleted register stays so long (L-19). */
const keptDeletedMs = 7 * 24 * 3_600_000;
const docketsPerStep = 500;

/** Steps of their own, so that a large register holds no lock for long. */
async function purgeDeleted(deps: HousekeepingDeps): Promise<void> {
  const { database, clock } = deps;
  const now = new Date(clock.nowMs());
  const deletedBefore = new Date(now.getTime() - keptDeletedMs);
  for (const registerNo of await findPurgeable(database.read, { deletedBefore, now })) {
    const step = () => database.transact((tx) => purgeDockets(tx, registerNo, docketsPerStep));
    while (await step());
    await database.transact((tx) => finishPurge(tx, registerNo, new Date(clock.nowMs())));
  }
}

/** Deletes what nobody asks for any more; several replicas may do it at once. */
export async function keepHouse(deps: HousekeepingDeps): Promise<void> {
  const before = new Date(deps.clock.nowMs() - keptRegistrationsMs);
  await deps.database.transact((tx) => pruneRegistrations(tx, before));
  await deps.database.transact((tx) => pruneEvents(tx, keptEventsDays));
  await purgeDeleted(deps);
}

/** Keeps house soon after a start and every hour; returns what ends it. */
export function startHousekeeping(deps: HousekeepingDeps): () => void {
  const keep = () => {
    keepHouse(deps).catch((error: unknown) => deps.log.warn({ err: error }, 'housekeeping failed'));
  };
  const first = setTimeout(keep, firstMs);
  const timer = setInterval(keep, everyMs);
  for (const each of [first, timer]) each.unref();
  return () => {
    clearTimeout(first);
    clearInterval(timer);
  };
}
