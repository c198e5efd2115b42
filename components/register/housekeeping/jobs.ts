import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { pruneEvents } from '#kit/db/outbox.ts';
import type { Logger } from '#kit/log/log.ts';
import type { RegisterSchema } from '../database/schema.ts';
import { pruneRegistrations } from '../registrations/store.ts';

export interface HousekeepingDeps {
  readonly database: Database<RegisterSchema>;
  readonly clock: Clock;
  readonly log: Logger;
}

const everyMs = 3_600_000;
/** Finalised registrations answer a repeated finalize for so long, expired ones say that they expired. */
const keptRegistrationsMs = 24 * 3_600_000;
const keptEventsDays = 7;

/** Deletes what nobody asks for any more; several replicas may do it at once. */
export async function keepHouse(deps: HousekeepingDeps): Promise<void> {
  const before = new Date(deps.clock.nowMs() - keptRegistrationsMs);
  await deps.database.transact((tx) => pruneRegistrations(tx, before));
  await deps.database.transact((tx) => pruneEvents(tx, keptEventsDays));
}

/** Keeps house every hour; returns what ends it. */
export function startHousekeeping(deps: HousekeepingDeps): () => void {
  const timer = setInterval(() => {
    keepHouse(deps).catch((error: unknown) => deps.log.warn({ err: error }, 'housekeeping failed'));
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}
