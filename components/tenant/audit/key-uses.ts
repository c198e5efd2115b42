import type { KeysUnwrapped } from '#core/events/key-use-events.ts';
import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { findOrganization } from '../organizations/store.ts';
import { appendAudit } from './log/store.ts';

/** A use without an organisation, or of one that was deleted, is in no audit log. */
export async function auditKeyUse(tx: Transactor<TenantDatabase>, use: KeysUnwrapped): Promise<void> {
  const { organizationId, platformUserId, address, service, requested, unwrapped, occurredAt } = use;
  if (organizationId === null || (await findOrganization(tx, organizationId)) === undefined) return;
  await appendAudit(tx, {
    organizationId,
    occurredAtMs: Date.parse(occurredAt),
    type: 'WalletKeysUnwrapped',
    platformUserId: platformUserId ?? undefined,
    success: unwrapped === requested,
    details: { resourceType: 'wallet', resourceId: address, service, requested, unwrapped },
  });
}
