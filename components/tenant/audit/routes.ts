import { z } from 'zod';
import { identifier } from '#core/identity/identifier.ts';
import { type App, addRoute, empty, json, pageWindow } from '#kit/http/http.ts';
import { refusals } from '../errors.ts';
import { ownOrganization } from '../organizations/authority.ts';
import { originOf } from '../requests/origin.ts';
import { pageAudit } from './log/store.ts';
import { type AuditDeps, reportRefusal } from './refusals.ts';
import { setRetention } from './retention.ts';
import {
  endMsOf,
  eventSchema,
  firstMsOf,
  newRetentionSchema,
  presentEvent,
  querySchema,
  refusalSchema,
  retentionSchema,
} from './schemas.ts';

const url = '/api/organizations/:organizationId/audit';

/** The audit log of an organisation (specification document 1, section 4). */
export function mountAudit(app: App, deps: AuditDeps): void {
  mountOrganization(app, deps);
  addRoute(app, {
    method: 'POST',
    path: '/api/internal/audit/refusals',
    operationId: 'reportRefusal',
    tag: 'Internal',
    summary: 'Report a refusal of another service for the audit log',
    policy: 'RequireService',
    rateLimit: 'none',
    scope: 'audit:write',
    body: {
      schema: refusalSchema,
      example: {
        organizationId: '0197a5d2-5f00-7c11-8a3b-6e2d9c0f4a17',
        action: 'wallet.sign',
        reason: 'WALLET_ACCESS_DENIED',
      },
    },
    answers: { 202: empty('The refusal is reported.') },
    refusals: refusals('ORGANIZATION_NOT_FOUND'),
    handle: async ({ caller, body }) => {
      const { occurredAt, ...reported } = body;
      const occurredAtMs = occurredAt === undefined ? undefined : Date.parse(occurredAt);
      await reportRefusal(deps, { ...reported, occurredAtMs, service: caller.clientId });
    },
  });
}

function mountOrganization(app: App, deps: AuditDeps): void {
  const route = {
    tag: 'Audit',
    params: z.object({ organizationId: identifier }),
    resource: ownOrganization(() => deps.db.read),
    refusals: refusals('FOREIGN_ORGANIZATION', 'ORGANIZATION_NOT_FOUND'),
  } as const;
  const events = z.array(eventSchema);
  addRoute(app, {
    ...route,
    method: 'GET',
    path: url,
    operationId: 'listAuditEvents',
    summary: 'Audit events of an organisation, newest first',
    policy: 'RequireAuditor',
    rateLimit: 'Api',
    query: querySchema,
    answers: {
      200: json(
        'A page of events.',
        z.object({ events, totalCount: z.int(), page: z.int(), pageSize: z.int() }),
      ),
    },
    handle: async ({ resource, query }) => {
      const { startDate, endDate, eventType, userId, page, pageSize } = query;
      const filter = {
        organizationId: resource.id,
        type: eventType,
        userId,
        fromMs: startDate === undefined ? undefined : firstMsOf(startDate),
        beforeMs: endDate === undefined ? undefined : endMsOf(endDate),
      };
      const found = await pageAudit(deps.db.read, filter, pageWindow({ page, pageSize }));
      return { events: found.events.map(presentEvent), totalCount: found.totalCount, page, pageSize };
    },
  });
  const retention = {
    ...route,
    path: `${url}/retention`,
    policy: 'RequireAdministrator',
    answers: { 200: json('The retention.', retentionSchema) },
  } as const;
  addRoute(app, {
    ...retention,
    method: 'GET',
    operationId: 'getAuditRetention',
    summary: 'How long audit events of an organisation are kept',
    rateLimit: 'Api',
    handle: ({ resource }) => ({ retentionMonths: resource.auditRetentionMonths }),
  });
  addRoute(app, {
    ...retention,
    method: 'PUT',
    operationId: 'updateAuditRetention',
    summary: 'Set how long audit events of an organisation are kept',
    rateLimit: 'Strict',
    body: { schema: newRetentionSchema, example: { retentionMonths: 24 } },
    handle: async ({ caller, resource, body: retentionMonths, request }) => {
      const change = { organizationId: resource.id, retentionMonths, by: caller, origin: originOf(request) };
      await setRetention(deps, change);
      return { retentionMonths };
    },
  });
}
