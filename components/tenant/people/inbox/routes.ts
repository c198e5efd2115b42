import { z } from 'zod';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { type App, addRoute, answer, empty, json, pageWindow } from '#kit/http/http.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal, refusals } from '../../errors.ts';
import { requirePerson } from '../../requests/person.ts';
import { accountExists } from '../accounts/store.ts';
import {
  entrySchema,
  idParameter,
  inboxSchema,
  newEntrySchema,
  presentEntry,
  querySchema,
  writtenSchema,
} from './schemas.ts';
import { countUnread, findEntry, insertEntry, markAllRead, pageEntries, stampEntry } from './store.ts';

export interface InboxDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  /** Called after each change of an inbox. */
  readonly notify: () => void;
}

/** The inbox of a person (specification document 1, section 4). */
export function mountInbox(app: App, deps: InboxDeps): void {
  mountReading(app, deps);
  mountStamping(app, deps);
  mountWriting(app, deps);
}

const route = { tag: 'Inbox', policy: 'RequirePlatformUser', rateLimit: 'Api' } as const;

function mountReading(app: App, deps: InboxDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/me/inbox',
    operationId: 'listInboxEntries',
    summary: 'Entries in the inbox of the caller, newest first',
    query: querySchema,
    answers: { 200: json('A page of entries.', inboxSchema) },
    refusals: [],
    handle: async ({ caller, query }) => {
      const { page, pageSize, ...filter } = query;
      const person = requirePerson(caller);
      const { entries, totalCount } = await pageEntries(deps.db.read, person, filter, pageWindow(query));
      return { entries: entries.map(presentEntry), page, pageSize, total: totalCount, totalCount };
    },
  });
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/me/inbox/unread-count',
    operationId: 'countUnreadInboxEntries',
    summary: 'Number of unread entries in the inbox of the caller',
    answers: { 200: json('The number.', z.object({ unread: z.int() })) },
    refusals: [],
    handle: async ({ caller }) => ({ unread: await countUnread(deps.db.read, requirePerson(caller)) }),
  });
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/me/inbox/:id',
    operationId: 'getInboxEntry',
    summary: 'One entry in the inbox of the caller',
    params: idParameter,
    resource: async ({ caller, params }) => {
      const entry = await findEntry(deps.db.read, requirePerson(caller), params.id);
      if (entry === undefined) throw refusal('INBOX_ENTRY_NOT_FOUND');
      return entry;
    },
    answers: { 200: json('The entry.', entrySchema) },
    refusals: refusals('INBOX_ENTRY_NOT_FOUND'),
    handle: ({ resource }) => presentEntry(resource),
  });
}

const stamps = [
  { act: 'read', column: 'read_at', operationId: 'markInboxEntryRead', summary: 'Mark an entry as read' },
  { act: 'dismiss', column: 'dismissed_at', operationId: 'dismissInboxEntry', summary: 'Dismiss an entry' },
] as const;

function mountStamping(app: App, deps: InboxDeps): void {
  for (const { act, column, operationId, summary } of stamps) {
    addRoute(app, {
      ...route,
      method: 'POST',
      path: `/api/me/inbox/:id/${act}`,
      operationId,
      summary,
      params: idParameter,
      answers: { 204: empty('Done; a repetition has no effect.') },
      refusals: refusals('INBOX_ENTRY_NOT_FOUND'),
      handle: async ({ caller, params }) => {
        const at = { platformUserId: requirePerson(caller), id: params.id, atMs: deps.clock.nowMs() };
        const stamped = await deps.db.transact((tx) => stampEntry(tx, at, column));
        if (stamped === undefined) throw refusal('INBOX_ENTRY_NOT_FOUND');
        if (stamped.wasUnread) deps.notify();
      },
    });
  }
  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/me/inbox/mark-all-read',
    operationId: 'markAllInboxEntriesRead',
    summary: 'Mark every entry as read',
    answers: { 200: json('How many entries were unread.', z.object({ marked: z.int() })) },
    refusals: [],
    handle: async ({ caller }) => {
      const person = requirePerson(caller);
      const marked = await deps.db.transact((tx) => markAllRead(tx, person, deps.clock.nowMs()));
      if (marked > 0) deps.notify();
      return { marked };
    },
  });
}

function mountWriting(app: App, deps: InboxDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/internal/inbox',
    operationId: 'createInboxEntry',
    tag: 'Internal',
    summary: 'Write an entry into the inbox of a person',
    policy: 'RequireService',
    rateLimit: 'none',
    scope: 'inbox:write',
    body: {
      schema: newEntrySchema,
      example: {
        platformUserId: '0197a5d2-7c1e-7b40-9d52-3f1c2a4b5e60',
        category: 'Workflow',
        correlationKey: 'workflow:invoice-17',
        title: 'Invoice 17 waits for your approval',
        sourceEventId: '5f6a0c1e-3f0b-4a7e-8a55-0c3d9b1e7f22',
      },
    },
    answers: {
      200: json('The event already had an entry.', writtenSchema),
      201: json('The entry is written.', writtenSchema),
    },
    refusals: refusals('USER_NOT_FOUND'),
    handle: async ({ caller, body }) => {
      const { occurredAt, ...newEntry } = body;
      const occurredAtMs = occurredAt === undefined ? deps.clock.nowMs() : Date.parse(occurredAt);
      const writerServiceId = caller.clientId;
      const { entry, isNew } = await deps.db.transact(async (tx) => {
        if (!(await accountExists(tx, newEntry.platformUserId))) throw refusal('USER_NOT_FOUND');
        return insertEntry(tx, { ...newEntry, occurredAtMs, writerServiceId });
      });
      if (isNew) deps.notify();
      const written = { ...presentEntry(entry), platformUserId: entry.platformUserId };
      return answer(isNew ? 201 : 200, { entry: written, idempotent: !isNew });
    },
  });
}
