import { HOLDER_EVENTS } from '#core/events/holder-events.ts';
import type { Job } from '#kit/clock/jobs.ts';
import type { Database } from '#kit/db/db.ts';
import { pruneEvents } from '#kit/db/outbox.ts';
import type { WalletDatabase } from './database/schema.ts';
import { purgeNotices } from './wallets/holder/store.ts';

const everyMs = 10 * 60_000;
/** The hub replays a day of events. */
const keptEventsDays = 2;

/** Periodic deletion of expired notices, and of events for holders, which no client can ask for any more. */
export function upkeepJobs(db: Pick<Database<WalletDatabase>, 'transact'>): Job[] {
  return [
    { name: 'expired-notices', everyMs, run: () => db.transact(purgeNotices) },
    {
      name: 'event-retention',
      everyMs,
      // Other events of the log carry the state of wallets, and are never deleted.
      run: () => db.transact((tx) => pruneEvents(tx, keptEventsDays, HOLDER_EVENTS)),
    },
  ];
}
