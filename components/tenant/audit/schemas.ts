import { z } from 'zod';
import { readableLine } from '#core/encoding/readable.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { identifier } from '#core/identity/identifier.ts';
import { paging } from '#kit/http/http.ts';
import { AUDIT_EVENT_TYPES, findAuditEventType } from './log/event.ts';
import type { StoredAuditEvent } from './log/store.ts';

/** Members of a reported refusal, for HTTP and gRPC; those after `reason` are optional. */
export const refusalShape = {
  organizationId: identifier,
  action: readableLine.min(1).max(100),
  reason: readableLine.min(1).max(500),
  resourceType: readableLine.min(1).max(100),
  resourceId: readableLine.min(1).max(256),
  platformUserId: identifier,
};

const dayMs = 86_400_000;
const instant = z.iso.datetime({ offset: true });
const dateOrInstant = z.union([z.iso.date(), instant]);

export const eventSchema = z
  .object({
    id: z.int(),
    timestamp: z.string().describe('ISO 8601, UTC.'),
    eventType: z.string(),
    identityId: identifier.nullable(),
    ipAddress: z.string().nullable(),
    success: z.boolean(),
    details: z.record(z.string(), z.unknown()).describe('Members by type of event.'),
  })
  .meta({ id: 'AuditEvent' });

export const querySchema = paging({ defaultSize: 50, maxSize: 200, outOfRange: 'clamp' })
  .extend({
    startDate: dateOrInstant.optional().describe('ISO 8601; a date alone is its beginning in UTC.'),
    endDate: dateOrInstant.optional().describe('ISO 8601; a date alone is all of that day in UTC.'),
    eventType: z
      .string()
      .transform((text, context) => {
        const type = findAuditEventType(text);
        if (type === undefined) context.addIssue(`expected one of ${AUDIT_EVENT_TYPES.join(', ')}`);
        return type;
      })
      .optional()
      .describe('As `Login`, in any case.'),
    userId: identifier.optional().describe('Id of the user in the organisation, or of the person.'),
  })
  .refine(({ startDate, endDate }) => firstMsOf(startDate) < endMsOf(endDate), {
    message: 'must be before endDate',
    path: ['startDate'],
  });

const months = z.int().min(1).max(120);
export const retentionSchema = z.object({ retentionMonths: months }).meta({ id: 'AuditRetention' });
export const newRetentionSchema = z
  .object({ retentionMonths: months.optional(), months: months.optional() })
  .refine((body) => (body.retentionMonths === undefined) !== (body.months === undefined), {
    message: 'retentionMonths is required, and must not be given twice',
    path: ['retentionMonths'],
  })
  .transform((body) => body.retentionMonths ?? body.months)
  .pipe(months);

export const refusalSchema = z.object({
  ...refusalShape,
  resourceType: refusalShape.resourceType.optional(),
  resourceId: refusalShape.resourceId.optional(),
  platformUserId: refusalShape.platformUserId.optional(),
  occurredAt: instant.optional(),
});

/** Lower bound in milliseconds since the epoch; no bound when absent. */
export function firstMsOf(text: string | undefined): number {
  return text === undefined ? Number.NEGATIVE_INFINITY : Date.parse(text);
}

/** Exclusive upper bound in milliseconds since the epoch; no bound when absent. */
export function endMsOf(text: string | undefined): number {
  if (text === undefined) return Number.POSITIVE_INFINITY;
  return Date.parse(text) + (text.includes('T') ? 1 : dayMs);
}

export function presentEvent(event: StoredAuditEvent): z.output<typeof eventSchema> {
  const { id, type, success, details } = event;
  return {
    id,
    timestamp: apiTimestamp(event.occurredAtMs),
    eventType: type,
    identityId: event.identityId ?? null,
    ipAddress: event.ipAddress ?? null,
    success,
    details,
  };
}
