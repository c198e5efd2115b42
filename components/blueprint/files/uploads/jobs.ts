import type { Clock } from '#kit/clock/clock.ts';
import { type JobOptions, startJob } from '#kit/clock/jobs.ts';
import type { Database } from '#kit/db/db.ts';
import type { FileTables } from '../../database/file-tables.ts';
import { purgeUploads } from './store.ts';

const everyMs = 10 * 60_000;

interface PurgeOptions extends JobOptions {
  readonly db: Database<FileTables>;
  readonly clock: Clock;
}

/** Purges unclaimed uploads every 10 minutes; returns the function that stops it. */
export function startUploadPurging({ db, clock, ...options }: PurgeOptions): () => Promise<void> {
  const run = async (signal: AbortSignal) => {
    let isMore = true;
    while (isMore && !signal.aborted)
      isMore = await db.transact((tx) => purgeUploads(tx, new Date(clock.nowMs())));
  };
  return startJob({ name: 'unclaimed-uploads', everyMs, run }, options).stop;
}
