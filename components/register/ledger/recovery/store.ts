import { syncStateChanged } from '#core/events/register-events.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import { appendEvent } from '#kit/db/outbox.ts';
import { currentTraceId } from '#kit/telemetry/telemetry.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import type { SyncStatus } from './track.ts';

/** Stored height of each register that accepts dockets. */
export async function storedHeights(db: Reader<RegisterSchema>): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('registers')
    .innerJoin('register_heads', 'register_heads.register_no', 'registers.register_no')
    .select(['registers.register_id as registerId', 'register_heads.height as height'])
    .where('registers.deleted_at', 'is', null)
    .where('registers.status', '<>', 'Halted')
    .execute();
  return new Map(rows.map(({ registerId, height }) => [registerId, height]));
}

/** Names of the sync status in the register resource and its hub. */
const syncStates = { synced: 'CaughtUp', recovering: 'Syncing', stalled: 'Error' } as const;

/** Publishes the sync state of a register to its followers. */
export async function publishSyncState(
  tx: Transactor<RegisterSchema>,
  registerId: string,
  status: SyncStatus,
): Promise<void> {
  await appendEvent(
    tx,
    syncStateChanged({ registerId, syncState: syncStates[status], traceId: currentTraceId() }),
  );
}
