import type { WalletChanged } from '#core/events/wallet-change-events.ts';
import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { findOrganization } from '../organizations/store.ts';
import { appendAudit } from './log/store.ts';

/** A change for an organisation that was deleted is in no audit log. */
export async function auditWalletChange(
  tx: Transactor<TenantDatabase>,
  { organizationId, platformUserId, address, act, occurredAt }: WalletChanged,
): Promise<void> {
  if ((await findOrganization(tx, organizationId)) === undefined) return;
  await appendAudit(tx, {
    organizationId,
    occurredAtMs: Date.parse(occurredAt),
    type: 'WalletChanged',
    platformUserId,
    success: true,
    details: { resourceType: 'wallet', resourceId: address, action: act },
  });
}
