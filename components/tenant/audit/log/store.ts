import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import type { AuditEvent, AuditEventType, ReportedRefusal } from './event.ts';

const maxUserAgentLength = 512;

export async function appendAudit(tx: Transactor<TenantDatabase>, ...events: AuditEvent[]): Promise<void> {
  if (events.length === 0) return;
  await tx.insertInto('audit_events').values(events.map(rowOf)).execute();
}

/** Appends one event; returns its id. */
export async function appendAuditEvent(tx: Transactor<TenantDatabase>, event: AuditEvent): Promise<string> {
  const { id } = await tx
    .insertInto('audit_events')
    .values(rowOf(event))
    .returning('id')
    .executeTakeFirstOrThrow();
  return String(id);
}

function rowOf(event: AuditEvent) {
  return {
    organization_id: event.organizationId,
    occurred_at: new Date(event.occurredAtMs),
    event_type: event.type,
    identity_id: event.identityId ?? null,
    platform_user_id: event.platformUserId ?? null,
    ip_address: event.origin?.ipAddress ?? null,
    user_agent: event.origin?.userAgent?.slice(0, maxUserAgentLength) ?? null,
    success: event.success,
    details: JSON.stringify(event.details ?? {}),
    refusal_key: null,
  };
}

/** Appends an event unless one with the same key was appended before. Only the hash of the key is stored. */
export async function appendAuditOnce(
  tx: Transactor<TenantDatabase>,
  event: AuditEvent,
  key: string,
): Promise<void> {
  await tx
    .insertInto('audit_events')
    .values({ ...rowOf(event), refusal_key: createHash('sha256').update(key).digest() })
    .onConflict((conflict) => conflict.column('refusal_key').where('refusal_key', 'is not', null).doNothing())
    .execute();
}

/**
 * Inserts an event, or adds its `details.occurrences` to the event with the same key. Only the hash of the key is
 * stored.
 */
export async function countAudit(
  tx: Transactor<TenantDatabase>,
  event: AuditEvent,
  counting: { readonly key: string; readonly occurrences: number },
): Promise<void> {
  const { key, occurrences } = counting;
  await tx
    .insertInto('audit_events')
    .values({ ...rowOf(event), refusal_key: createHash('sha256').update(key).digest() })
    .onConflict((conflict) =>
      conflict
        .column('refusal_key')
        .where('refusal_key', 'is not', null)
        .doUpdateSet({
          details: sql`audit_events.details
            || jsonb_build_object('occurrences', (audit_events.details ->> 'occurrences')::integer + ${occurrences}::integer)`,
        }),
    )
    .execute();
}

const minuteMs = 60_000;

/** Inserts a reported refusal, or adds to the equal refusal of the same minute. */
export async function countRefusal(
  tx: Transactor<TenantDatabase>,
  service: string,
  reported: ReportedRefusal,
): Promise<void> {
  const { organizationId, platformUserId, occurredAtMs, occurrences } = reported;
  const { action, reason, resourceType, resourceId } = reported;
  const minute = Math.floor(occurredAtMs / minuteMs);
  const same = [organizationId, service, action, resourceId ?? null, platformUserId ?? null, minute];
  const details = {
    source: 'service-refusal',
    service,
    action,
    resourceType,
    resourceId,
    reason,
    occurrences,
  };
  const event = {
    organizationId,
    occurredAtMs,
    type: 'PermissionDenied',
    platformUserId,
    success: false,
    details,
  } as const;
  await countAudit(tx, event, { key: JSON.stringify(same), occurrences });
}

interface AuditFilter {
  readonly organizationId: string;
  readonly type?: AuditEventType | undefined;
  /** Id of a user in the organisation, or of a person. */
  readonly userId?: string | undefined;
  readonly fromMs?: number | undefined;
  readonly beforeMs?: number | undefined;
}

export interface StoredAuditEvent {
  readonly id: number;
  readonly occurredAtMs: number;
  readonly type: string;
  readonly identityId: string | undefined;
  readonly ipAddress: string | undefined;
  readonly success: boolean;
  readonly details: Readonly<Record<string, unknown>>;
}

/** A page of an organisation's events, newest first, and the number of events that match the filter. */
export async function pageAudit(
  db: Reader<TenantDatabase>,
  filter: AuditFilter,
  window: { readonly offset: number; readonly limit: number },
): Promise<{ events: StoredAuditEvent[]; totalCount: number }> {
  const chosen = eventsOf(db, filter);
  const { total } = await chosen.select(sql<number>`count(*)::int`.as('total')).executeTakeFirstOrThrow();
  if (window.offset >= total) return { events: [], totalCount: total };
  const rows = await chosen
    .select(['id', 'occurred_at', 'event_type', 'identity_id', 'ip_address', 'success', 'details'])
    .orderBy('occurred_at', 'desc')
    .orderBy('id', 'desc')
    .offset(window.offset)
    .limit(window.limit)
    .execute();
  const events = rows.map((row) => ({
    id: Number(row.id),
    occurredAtMs: row.occurred_at.getTime(),
    type: row.event_type,
    identityId: row.identity_id ?? undefined,
    ipAddress: row.ip_address ?? undefined,
    success: row.success,
    details: row.details,
  }));
  return { events, totalCount: total };
}

function eventsOf(db: Reader<TenantDatabase>, filter: AuditFilter) {
  const { organizationId, type, userId, fromMs, beforeMs } = filter;
  let chosen = db.selectFrom('audit_events').where('organization_id', '=', organizationId);
  if (type !== undefined) chosen = chosen.where('event_type', '=', type);
  if (fromMs !== undefined) chosen = chosen.where('occurred_at', '>=', new Date(fromMs));
  if (beforeMs !== undefined) chosen = chosen.where('occurred_at', '<', new Date(beforeMs));
  if (userId === undefined) return chosen;
  return chosen.where((where) =>
    where.or([where('identity_id', '=', userId), where('platform_user_id', '=', userId)]),
  );
}

/** Deletes at most `limit` events that are older than the retention of their organisation; returns their number. */
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
