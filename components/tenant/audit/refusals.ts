import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { findOrganization } from '../organizations/store.ts';
import type { ReportedRefusal } from './log/event.ts';
import { countRefusal } from './log/store.ts';

export interface AuditDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
}

/** A refusal as the internal route receives it. */
interface NamedRefusal extends Omit<ReportedRefusal, 'occurredAtMs' | 'occurrences'> {
  /** The current time when absent. */
  readonly occurredAtMs: number | undefined;
  /** Client id of the reporting service, from its token. */
  readonly service: string;
}

/** Tolerated difference between the clocks of two services. */
const aheadMs = 60_000;

/**
 * Stores a refusal as an event of type PermissionDenied. Equal refusals of a service within a minute are one event with
 * a count, so that a client that repeats a refused request does not fill the log.
 * @throws ORGANIZATION_NOT_FOUND, INVALID_REQUEST
 */
export async function reportRefusal(deps: AuditDeps, { service, ...named }: NamedRefusal): Promise<void> {
  const nowMs = deps.clock.nowMs();
  const occurredAtMs = named.occurredAtMs ?? nowMs;
  if (occurredAtMs > nowMs + aheadMs) {
    const errors = { occurredAt: ['lies in the future'] };
    throw new AppError('invalid', genericCode('invalid'), 'The time of the refusal is in the future.', {
      details: { errors },
    });
  }
  const reported = { ...named, occurredAtMs, occurrences: 1 };
  const isStored = await deps.db.transact((tx) => insertRefusal(tx, service, reported));
  if (!isStored) throw refusal('ORGANIZATION_NOT_FOUND');
}

/** Stores a batch of refusals; refusals of organisations that do not exist or were deleted are skipped. */
export async function reportRefusals(
  deps: AuditDeps,
  service: string,
  gathered: readonly ReportedRefusal[],
): Promise<void> {
  const nameOf = ({ organizationId, action, resourceId, platformUserId, occurredAtMs }: ReportedRefusal) =>
    JSON.stringify([organizationId, action, resourceId, platformUserId, occurredAtMs]);
  // in a fixed order, so that concurrent reports of the same refusals do not deadlock
  const ordered = gathered.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  await deps.db.transact(async (tx) => {
    const nowMs = deps.clock.nowMs();
    for (const each of ordered) {
      await insertRefusal(tx, service, { ...each, occurredAtMs: Math.min(each.occurredAtMs, nowMs) });
    }
  });
}

async function insertRefusal(
  tx: Transactor<TenantDatabase>,
  service: string,
  reported: ReportedRefusal,
): Promise<boolean> {
  if ((await findOrganization(tx, reported.organizationId)) === undefined) return false;
  await countRefusal(tx, service, reported);
  return true;
}
