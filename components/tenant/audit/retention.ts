import type { Caller } from '#core/identity/claims.ts';
import { refusal } from '../errors.ts';
import { auditOf } from '../organizations/status.ts';
import { lockOrganization, updateOrganization } from '../organizations/store.ts';
import type { Origin } from '../requests/origin.ts';
import { appendAudit } from './log/store.ts';
import type { AuditDeps } from './refusals.ts';

interface RetentionChange {
  readonly organizationId: string;
  /** 1 to 120 */
  readonly retentionMonths: number;
  readonly by: Caller;
  readonly origin: Origin;
}

/** Sets the retention. Older events are deleted within an hour. @throws ORGANIZATION_NOT_FOUND */
export async function setRetention(deps: AuditDeps, change: RetentionChange): Promise<void> {
  const { organizationId, retentionMonths, by, origin } = change;
  await deps.db.transact(async (tx) => {
    const organization = await lockOrganization(tx, organizationId);
    if (organization === undefined || organization.deletedAtMs !== undefined) {
      throw refusal('ORGANIZATION_NOT_FOUND');
    }
    if (organization.auditRetentionMonths === retentionMonths) return;
    await updateOrganization(tx, organizationId, { auditRetentionMonths: retentionMonths });
    const details = { auditRetentionMonths: retentionMonths };
    const act = { by, origin, atMs: deps.clock.nowMs(), details };
    await appendAudit(tx, auditOf(organizationId, 'OrganizationUpdated', act));
  });
}
