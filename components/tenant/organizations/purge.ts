import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { appendAudit } from '../audit/log/store.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { deletedGraceMs } from './organization.ts';
import { lockDeletedBefore, purgeOrganization } from './store.ts';

const batch = 10;

/**
 * Deletes members and branding of organisations whose grace period after deletion is over; replicas share the work.
 * Accounts stay, and audit events are deleted by their retention.
 */
export async function purgeDeletedOrganizations(deps: {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
}): Promise<void> {
  const { db, clock } = deps;
  let purged = batch;
  while (purged === batch) {
    purged = await db.transact(async (tx) => {
      const atMs = clock.nowMs();
      const ids = await lockDeletedBefore(tx, atMs - deletedGraceMs, batch);
      for (const organizationId of ids) {
        await purgeOrganization(tx, organizationId, atMs);
        const event = {
          organizationId,
          occurredAtMs: atMs,
          type: 'OrganizationPurged',
          success: true,
        } as const;
        await appendAudit(tx, event);
      }
      return ids.length;
    });
  }
}
