import { z } from 'zod';
import { readableLine, readableName } from '#core/encoding/readable.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { identifier } from '#core/identity/identifier.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { type App, callerOf, emptyAnswer, pageWindow, paging } from '#kit/http/http.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { requirePerson } from '../../requests/person.ts';
import { requireScope } from '../../requests/scope.ts';
import { accountExists } from '../accounts/store.ts';
import { CATEGORIES, CHANNELS, type Channel, type Entry, SEVERITIES } from './entry.ts';
import { countUnread, findEntry, insertEntry, markAllRead, pageEntries, stampEntry } from './store.ts';

export interface InboxDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
}

const nullableTime = z.string().nullable().describe('ISO 8601, UTC.');
const entrySchema = z.object({
  id: identifier,
  category: z.enum(CATEGORIES),
  severity: z.enum(SEVERITIES),
  correlationKey: z.string(),
  title: z.string(),
  summary: z.string().nullable(),
  iconKey: z.string().nullable(),
  detailHref: z.string().nullable(),
  sourceEventId: identifier,
  occurredAt: z.string().describe('ISO 8601, UTC.'),
  readAt: nullableTime,
  dismissedAt: nullableTime,
  channelHints: z.array(z.enum(CHANNELS)),
  writerServiceId: z.string(),
});

const idParameter = z.object({
  id: z.union([z.guid(), z.string().regex(/^[0-9a-fA-F]{32}$/)]).transform((text) =>
    text
      .toLowerCase()
      .replaceAll('-', '')
      .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
  ),
});

const querySchema = paging({ outOfRange: 'clamp' }).extend({
  category: z.enum(CATEGORIES).optional(),
  unreadOnly: z.stringbool().default(false),
  includeDismissed: z.stringbool().default(false),
});

/** A list, names separated by commas, or the sum of the flags 1, 2 and 4. */
const channelHints = z.union([
  z.array(z.enum(CHANNELS)).max(CHANNELS.length),
  z
    .string()
    .transform((text) => text.split(',').map((name) => name.trim()))
    .pipe(z.array(z.enum(CHANNELS)).max(CHANNELS.length)),
  z
    .int()
    .min(0)
    .max(2 ** CHANNELS.length - 1)
    .transform((flags): Channel[] => CHANNELS.filter((_, place) => (flags & (1 << place)) !== 0)),
]);

const newEntrySchema = z.object({
  platformUserId: identifier,
  category: z.enum(CATEGORIES),
  severity: z.enum(SEVERITIES).default('Info'),
  correlationKey: readableLine.min(1).max(256),
  title: readableName.min(1).max(200),
  summary: readableLine.max(1000).optional(),
  iconKey: readableLine.max(64).optional(),
  detailHref: z
    .string()
    .max(1024)
    .regex(/^\/api\/[^\s\\]*$/, 'must be a path that starts with /api/')
    .optional(),
  sourceEventId: identifier,
  occurredAt: z.iso.datetime({ offset: true }).optional(),
  channelHints: channelHints.optional(),
});

/** The inbox of a person (specification document 1, section 4). */
export function mountInbox(app: App, deps: InboxDeps): void {
  mountReading(app, deps);
  mountStamping(app, deps);
  mountWriting(app, deps);
}

const tags = ['Inbox'];
const config = { policy: 'RequirePlatformUser', rateLimit: 'Api' } as const;

function mountReading(app: App, deps: InboxDeps): void {
  const page = z.object({
    entries: z.array(entrySchema),
    page: z.int(),
    pageSize: z.int(),
    total: z.int(),
    totalCount: z.int(),
  });
  app.get(
    '/api/me/inbox',
    {
      config,
      schema: { operationId: 'listInboxEntries', tags, querystring: querySchema, response: { 200: page } },
    },
    async (request) => {
      const { page, pageSize, ...filter } = request.query;
      const person = requirePerson(callerOf(request));
      const window = pageWindow(request.query);
      const { entries, totalCount } = await pageEntries(deps.db.read, person, filter, window);
      return { entries: entries.map(present), page, pageSize, total: totalCount, totalCount };
    },
  );
  app.get(
    '/api/me/inbox/unread-count',
    {
      config,
      schema: {
        operationId: 'countUnreadInboxEntries',
        tags,
        response: { 200: z.object({ unread: z.int() }) },
      },
    },
    async (request) => ({ unread: await countUnread(deps.db.read, requirePerson(callerOf(request))) }),
  );
  app.get(
    '/api/me/inbox/:id',
    {
      config,
      schema: { operationId: 'getInboxEntry', tags, params: idParameter, response: { 200: entrySchema } },
    },
    async (request) => {
      const person = requirePerson(callerOf(request));
      const entry = await findEntry(deps.db.read, person, request.params.id);
      if (entry === undefined) throw refusal('INBOX_ENTRY_NOT_FOUND');
      return present(entry);
    },
  );
}

function mountStamping(app: App, deps: InboxDeps): void {
  for (const [act, stamp, operationId] of [
    ['read', 'read_at', 'markInboxEntryRead'],
    ['dismiss', 'dismissed_at', 'dismissInboxEntry'],
  ] as const) {
    app.post(
      `/api/me/inbox/:id/${act}`,
      {
        config,
        schema: {
          operationId,
          tags,
          params: idParameter,
          response: emptyAnswer('Done; a repetition has no effect.'),
        },
      },
      async (request, reply) => {
        const platformUserId = requirePerson(callerOf(request));
        const at = { platformUserId, id: request.params.id, atMs: deps.clock.nowMs() };
        const isThere = await deps.db.transact((tx) => stampEntry(tx, at, stamp));
        if (!isThere) throw refusal('INBOX_ENTRY_NOT_FOUND');
        return reply.code(204).send();
      },
    );
  }
  app.post(
    '/api/me/inbox/mark-all-read',
    {
      config,
      schema: {
        operationId: 'markAllInboxEntriesRead',
        tags,
        response: { 200: z.object({ marked: z.int() }) },
      },
    },
    async (request) => {
      const person = requirePerson(callerOf(request));
      return { marked: await deps.db.transact((tx) => markAllRead(tx, person, deps.clock.nowMs())) };
    },
  );
}

function mountWriting(app: App, deps: InboxDeps): void {
  const written = z.object({
    entry: entrySchema.extend({ platformUserId: identifier }),
    idempotent: z.boolean().describe('The event already had an entry.'),
  });
  app.post(
    '/api/internal/inbox',
    {
      onRequest: requireScope('inbox:write'),
      config: { policy: 'RequireService' },
      schema: {
        operationId: 'createInboxEntry',
        tags: ['Internal'],
        body: newEntrySchema,
        response: { 200: written, 201: written },
      },
    },
    async (request, reply) => {
      const { occurredAt, ...newEntry } = request.body;
      const occurredAtMs = occurredAt === undefined ? deps.clock.nowMs() : Date.parse(occurredAt);
      const writerServiceId = callerOf(request).clientId;
      const { entry, isNew } = await deps.db.transact(async (tx) => {
        if (!(await accountExists(tx, newEntry.platformUserId))) throw refusal('USER_NOT_FOUND');
        return insertEntry(tx, { ...newEntry, occurredAtMs, writerServiceId });
      });
      const answer = { ...present(entry), platformUserId: entry.platformUserId };
      return reply.code(isNew ? 201 : 200).send({ entry: answer, idempotent: !isNew });
    },
  );
}

function present(entry: Entry): z.output<typeof entrySchema> {
  const { id, category, severity, correlationKey, title, sourceEventId, writerServiceId } = entry;
  const timeOf = (ms: number | undefined) => (ms === undefined ? null : apiTimestamp(ms));
  return {
    id,
    category,
    severity,
    correlationKey,
    title,
    summary: entry.summary ?? null,
    iconKey: entry.iconKey ?? null,
    detailHref: entry.detailHref ?? null,
    sourceEventId,
    occurredAt: apiTimestamp(entry.occurredAtMs),
    readAt: timeOf(entry.readAtMs),
    dismissedAt: timeOf(entry.dismissedAtMs),
    channelHints: [...entry.channelHints],
    writerServiceId,
  };
}
