import type { Job } from '#kit/clock/jobs.ts';
import type { Database } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../database/schema.ts';
import { deleteEvents, listUnreported, type StoredEvent } from './store.ts';

const everyMs = 1_000;
/** What the tenant service takes at once. */
const mostAtOnce = 500;

interface ReportDeps {
  readonly db: Database<CredentialDatabase>;
  /** Resolves when the tenant service has stored the events; it stores each once by its id. */
  readonly send: (events: readonly StoredEvent[]) => Promise<void>;
}

/**
 * Reports events to the audit logs once a second. An event is forgotten only when it is stored there: replicas that
 * report the same one, and a report that is repeated after a failure, add nothing.
 */
export function auditReports({ db, send }: ReportDeps): Job {
  return {
    name: 'audit-reports',
    everyMs,
    run: async (signal) => {
      while (!signal.aborted) {
        const events = await listUnreported(db.read, mostAtOnce);
        if (events.length === 0) return;
        await send(events);
        const ids = events.map(({ id }) => id);
        await db.transact((tx) => deleteEvents(tx, ids));
        if (events.length < mostAtOnce) return;
      }
    },
  };
}
