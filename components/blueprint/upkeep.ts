import type { Job } from '#kit/clock/jobs.ts';
import type { Database } from '#kit/db/db.ts';
import { pruneEvents } from '#kit/db/outbox.ts';
import type { BlueprintDatabase } from './database/schema.ts';

const everyMs = 10 * 60_000;
/** The hub replays a day of events. */
const keptEventsDays = 2;

/** Deletes events that no client can ask for any more. */
export function eventRetention(db: Pick<Database<BlueprintDatabase>, 'transact'>): Job {
  return {
    name: 'event-retention',
    everyMs,
    run: () => db.transact((tx) => pruneEvents(tx, keptEventsDays)),
  };
}
