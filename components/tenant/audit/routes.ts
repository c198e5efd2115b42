import { z } from 'zod';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { identifier } from '#core/identity/identifier.ts';
import { type App, callerOf, emptyAnswer, pageWindow, paging } from '#kit/http/http.ts';
import { refusal } from '../errors.ts';
import { requireCallerOrganization } from '../organizations/authority.ts';
import { findOrganization } from '../organizations/store.ts';
import { originOf } from '../requests/origin.ts';
import { requireScope } from '../requests/scope.ts';
import { AUDIT_EVENT_TYPES, findAuditEventType } from './log/event.ts';
import { pageAudit, type StoredAuditEvent } from './log/store.ts';
import { type AuditDeps, reportRefusal } from './refusals.ts';
import { getRetention, setRetention } from './retention.ts';
import { refusalShape } from './schema.ts';

const organizationParameter = z.object({ organizationId: identifier });
const dayMs = 86_400_000;
const instant = z.iso.datetime({ offset: true });
const dateOrInstant = z.union([z.iso.date(), instant]);

const eventSchema = z.object({
  id: z.int(),
  timestamp: z.string().describe('ISO 8601, UTC.'),
  eventType: z.string(),
  identityId: identifier.nullable(),
  ipAddress: z.string().nullable(),
  success: z.boolean(),
  details: z.record(z.string(), z.unknown()),
});

const querySchema = paging({ defaultSize: 50, maxSize: 200, outOfRange: 'clamp' })
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
const retentionSchema = z.object({ retentionMonths: months });
const newRetentionSchema = z
  .object({ retentionMonths: months.optional(), months: months.optional() })
  .refine((body) => (body.retentionMonths === undefined) !== (body.months === undefined), {
    message: 'retentionMonths is required, and must not be given twice',
    path: ['retentionMonths'],
  })
  .transform((body) => body.retentionMonths ?? body.months)
  .pipe(months);

const refusalSchema = z.object({
  ...refusalShape,
  resourceType: refusalShape.resourceType.optional(),
  resourceId: refusalShape.resourceId.optional(),
  platformUserId: refusalShape.platformUserId.optional(),
  occurredAt: instant.optional(),
});

/** The audit log of an organisation (specification document 1, section 4). */
export function mountAudit(app: App, deps: AuditDeps): void {
  mountReading(app, deps);
  mountRetention(app, deps);
  app.post(
    '/api/internal/audit/refusals',
    {
      onRequest: requireScope('audit:write'),
      config: { policy: 'RequireService' },
      schema: {
        operationId: 'reportRefusal',
        tags: ['Internal'],
        body: refusalSchema,
        response: emptyAnswer('The refusal is reported.', 202),
      },
    },
    async (request, reply) => {
      const { occurredAt, ...reported } = request.body;
      const occurredAtMs = occurredAt === undefined ? undefined : Date.parse(occurredAt);
      await reportRefusal(deps, { ...reported, occurredAtMs, service: callerOf(request).clientId });
      return reply.code(202).send();
    },
  );
}

function mountReading(app: App, deps: AuditDeps): void {
  const events = z.array(eventSchema);
  const response = z.object({ events, totalCount: z.int(), page: z.int(), pageSize: z.int() });
  app.get(
    '/api/organizations/:organizationId/audit',
    {
      config: { policy: 'RequireAuditor', rateLimit: 'Api' },
      schema: {
        operationId: 'listAuditEvents',
        tags: ['Audit'],
        params: organizationParameter,
        querystring: querySchema,
        response: { 200: response },
      },
    },
    async (request) => {
      const { organizationId } = request.params;
      requireCallerOrganization(callerOf(request), organizationId);
      const { read } = deps.db;
      if ((await findOrganization(read, organizationId)) === undefined)
        throw refusal('ORGANIZATION_NOT_FOUND');
      const { startDate, endDate, eventType, userId, page, pageSize } = request.query;
      const filter = {
        organizationId,
        type: eventType,
        userId,
        fromMs: startDate === undefined ? undefined : firstMsOf(startDate),
        beforeMs: endDate === undefined ? undefined : endMsOf(endDate),
      };
      const found = await pageAudit(read, filter, pageWindow({ page, pageSize }));
      return { events: found.events.map(present), totalCount: found.totalCount, page, pageSize };
    },
  );
}

function mountRetention(app: App, deps: AuditDeps): void {
  const url = '/api/organizations/:organizationId/audit/retention';
  const schema = { tags: ['Audit'], params: organizationParameter, response: { 200: retentionSchema } };
  app.get(
    url,
    {
      config: { policy: 'RequireAdministrator', rateLimit: 'Api' },
      schema: { operationId: 'getAuditRetention', ...schema },
    },
    async (request) => {
      const { organizationId } = request.params;
      requireCallerOrganization(callerOf(request), organizationId);
      return { retentionMonths: await getRetention(deps.db.read, organizationId) };
    },
  );
  app.put(
    url,
    {
      config: { policy: 'RequireAdministrator', rateLimit: 'Strict' },
      schema: { operationId: 'updateAuditRetention', ...schema, body: newRetentionSchema },
    },
    async (request) => {
      const { organizationId } = request.params;
      const by = callerOf(request);
      requireCallerOrganization(by, organizationId);
      const retentionMonths = request.body;
      await setRetention(deps, { organizationId, retentionMonths, by, origin: originOf(request) });
      return { retentionMonths };
    },
  );
}

/** Lower bound in milliseconds since the epoch; no bound when absent. */
function firstMsOf(text: string | undefined): number {
  return text === undefined ? Number.NEGATIVE_INFINITY : Date.parse(text);
}

/** Exclusive upper bound in milliseconds since the epoch; no bound when absent. */
function endMsOf(text: string | undefined): number {
  if (text === undefined) return Number.POSITIVE_INFINITY;
  return Date.parse(text) + (text.includes('T') ? 1 : dayMs);
}

function present(event: StoredAuditEvent): z.output<typeof eventSchema> {
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
