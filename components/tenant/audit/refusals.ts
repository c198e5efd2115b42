import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { findOrganization } from '../organizations/store.ts';
import type { ReportedRefusal } from './audit.ts';
import { countRefusal } from './store.ts';

export interface AuditDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
}

/** Clocks of services may differ so much. */
const aheadMs = 60_000;

/**
 * Keeps a refusal as an event of type PermissionDenied. The same one of a service is one event a minute, which counts how often it
 * occurred: somebody who tries on and on does not fill the log. Throws ORGANIZATION_NOT_FOUND, INVALID_REQUEST.
 */
export async function reportRefusal(deps: AuditDeps, reported: ReportedRefusal): Promise<void> {
  const nowMs = deps.clock.nowMs();
  const occurredAtMs = reported.occurredAtMs ?? nowMs;
  if (occurredAtMs > nowMs + aheadMs) {
    const errors = { occurredAt: ['lies in the future'] };
    throw new AppError('invalid', genericCode('invalid'), 'The refusal has not occurred yet.', {
      details: { errors },
    });
  }
  await deps.db.transact(async (tx) => {
    if ((await findOrganization(tx, reported.organizationId)) === undefined) {
      throw refusal('ORGANIZATION_NOT_FOUND');
    }
    await countRefusal(tx, { ...reported, occurredAtMs });
  });
}
