import { sql } from 'kysely';
import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../database/schema.ts';
import type { AuditEvent } from './audit.ts';

const maxUserAgentLength = 512;

export async function appendAudit(tx: Transactor<TenantDatabase>, ...events: AuditEvent[]): Promise<void> {
  if (events.length === 0) return;
  const rows = events.map((event) => ({
    organization_id: event.organizationId,
    occurred_at: new Date(event.occurredAtMs),
    event_type: event.type,
    identity_id: event.identityId ?? null,
    platform_user_id: event.platformUserId ?? null,
    ip_address: event.origin?.ipAddress ?? null,
    user_agent: event.origin?.userAgent?.slice(0, maxUserAgentLength) ?? null,
    success: event.success,
    details: JSON.stringify(event.details ?? {}),
  }));
  await tx.insertInto('audit_events').values(rows).execute();
}

/** Removes at most `limit` events that are older than their organisation keeps them; returns how many. */
export async function pruneAudit(
  tx: Transactor<TenantDatabase>,
  nowMs: number,
  limit: number,
): Promise<number> {
  const result = await sql`
    DELETE FROM audit_events WHERE id IN (
      SELECT e.id FROM audit_events e JOIN organizations o ON o.id = e.organization_id
      WHERE e.occurred_at < ${new Date(nowMs)}::timestamptz - make_interval(months => o.audit_retention_months)
      LIMIT ${limit})`.execute(tx);
  return Number(result.numAffectedRows ?? 0n);
}
