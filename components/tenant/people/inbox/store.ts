import { randomUUIDv7 } from 'node:crypto';
import { type Selectable, sql } from 'kysely';
import { inboxEntriesSeen, inboxEntryAdded } from '#core/events/tenant-events.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import { appendEvent } from '#kit/db/outbox.ts';
import { currentTraceId } from '#kit/telemetry/telemetry.ts';
import type { InboxEntryTable, TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import {
  CATEGORIES,
  type Category,
  CHANNELS,
  channelsOf,
  type Entry,
  type NewEntry,
  SEVERITIES,
} from './entry.ts';

type DB = TenantDatabase;

/** Inserts an entry with its event in the outbox, or returns the existing entry of the same event. */
export async function insertEntry(
  tx: Transactor<DB>,
  entry: NewEntry,
): Promise<{ readonly entry: Entry; readonly isNew: boolean }> {
  const inserted = await tx
    .insertInto('inbox_entries')
    .values({
      id: randomUUIDv7(),
      platform_user_id: entry.platformUserId,
      source_event_id: entry.sourceEventId,
      category: entry.category,
      severity: entry.severity,
      correlation_key: entry.correlationKey,
      title: entry.title,
      summary: entry.summary ?? null,
      icon_key: entry.iconKey ?? null,
      detail_href: entry.detailHref ?? null,
      channel_hints: [...(entry.channelHints ?? channelsOf(entry.category))],
      writer_service_id: entry.writerServiceId,
      occurred_at: new Date(entry.occurredAtMs),
      read_at: null,
      dismissed_at: null,
    })
    .onConflict((conflict) => conflict.columns(['platform_user_id', 'source_event_id']).doNothing())
    .returningAll()
    .executeTakeFirst();
  if (inserted !== undefined) {
    const { id: entryId, platform_user_id: platformUserId } = inserted;
    await appendEvent(tx, inboxEntryAdded({ platformUserId, entryId, traceId: currentTraceId() }));
    return { entry: toEntry(inserted), isNew: true };
  }
  const existing = await tx
    .selectFrom('inbox_entries')
    .selectAll()
    .where('platform_user_id', '=', entry.platformUserId)
    .where('source_event_id', '=', entry.sourceEventId)
    .executeTakeFirstOrThrow();
  return { entry: toEntry(existing), isNew: false };
}

interface InboxFilter {
  readonly category?: Category | undefined;
  readonly unreadOnly: boolean;
  readonly includeDismissed: boolean;
}

/** A page of a person's inbox, newest first, and the number of entries that match the filter. */
export async function pageEntries(
  db: Reader<DB>,
  platformUserId: string,
  filter: InboxFilter,
  window: { readonly offset: number; readonly limit: number },
): Promise<{ entries: Entry[]; totalCount: number }> {
  let chosen = db.selectFrom('inbox_entries').where('platform_user_id', '=', platformUserId);
  if (filter.category !== undefined) chosen = chosen.where('category', '=', filter.category);
  if (filter.unreadOnly) chosen = chosen.where('read_at', 'is', null);
  if (!filter.includeDismissed) chosen = chosen.where('dismissed_at', 'is', null);
  const { total } = await chosen.select(sql<number>`count(*)::int`.as('total')).executeTakeFirstOrThrow();
  const rows = await chosen
    .selectAll()
    .orderBy('occurred_at', 'desc')
    .orderBy('id', 'desc')
    .offset(window.offset)
    .limit(window.limit)
    .execute();
  return { entries: rows.map(toEntry), totalCount: total };
}

/** Entries that are neither read nor dismissed. */
export async function countUnread(db: Reader<DB>, platformUserId: string): Promise<number> {
  const counts = await countUnreadOf(db, [platformUserId]);
  return counts.get(platformUserId) ?? 0;
}

/** The same of several people; a person without unread entries is absent. */
export async function countUnreadOf(
  db: Reader<DB>,
  platformUserIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('inbox_entries')
    .select(['platform_user_id', sql<number>`count(*)::int`.as('total')])
    .where('platform_user_id', 'in', platformUserIds)
    .where('read_at', 'is', null)
    .where('dismissed_at', 'is', null)
    .groupBy('platform_user_id')
    .execute();
  return new Map(rows.map((row) => [row.platform_user_id, row.total]));
}

export async function findEntry(
  db: Reader<DB>,
  platformUserId: string,
  id: string,
): Promise<Entry | undefined> {
  const row = await db
    .selectFrom('inbox_entries')
    .selectAll()
    .where('id', '=', id)
    .where('platform_user_id', '=', platformUserId)
    .executeTakeFirst();
  return row && toEntry(row);
}

/**
 * Sets a timestamp of an entry; a repetition keeps the first time. An event is written when the entry was unread.
 * Undefined when the person has no such entry, else whether it was unread.
 */
export async function stampEntry(
  tx: Transactor<DB>,
  at: { readonly platformUserId: string; readonly id: string; readonly atMs: number },
  stamp: 'read_at' | 'dismissed_at',
): Promise<{ readonly wasUnread: boolean } | undefined> {
  const { platformUserId, id } = at;
  const before = await tx
    .selectFrom('inbox_entries')
    .select(['read_at', 'dismissed_at'])
    .where('id', '=', id)
    .where('platform_user_id', '=', platformUserId)
    .forUpdate()
    .executeTakeFirst();
  if (before === undefined) return undefined;
  const wasUnread = before.read_at === null && before.dismissed_at === null;
  if (before[stamp] !== null) return { wasUnread };
  await tx
    .updateTable('inbox_entries')
    .set({ [stamp]: new Date(at.atMs) })
    .where('id', '=', id)
    .execute();
  if (wasUnread) await appendEvent(tx, inboxEntriesSeen({ platformUserId, traceId: currentTraceId() }));
  return { wasUnread };
}

/** Marks all entries as read that are neither read nor dismissed, with one event; returns their number. */
export async function markAllRead(tx: Transactor<DB>, platformUserId: string, atMs: number): Promise<number> {
  const marked = await tx
    .updateTable('inbox_entries')
    .set({ read_at: new Date(atMs) })
    .where('platform_user_id', '=', platformUserId)
    .where('read_at', 'is', null)
    .where('dismissed_at', 'is', null)
    .executeTakeFirstOrThrow();
  const count = Number(marked.numUpdatedRows);
  if (count > 0) await appendEvent(tx, inboxEntriesSeen({ platformUserId, traceId: currentTraceId() }));
  return count;
}

function toEntry(row: Selectable<InboxEntryTable>): Entry {
  return {
    id: row.id,
    platformUserId: row.platform_user_id,
    category: parseName(CATEGORIES, row.category),
    severity: parseName(SEVERITIES, row.severity),
    correlationKey: row.correlation_key,
    title: row.title,
    summary: row.summary ?? undefined,
    iconKey: row.icon_key ?? undefined,
    detailHref: row.detail_href ?? undefined,
    sourceEventId: row.source_event_id,
    occurredAtMs: row.occurred_at.getTime(),
    channelHints: row.channel_hints.map((channel) => parseName(CHANNELS, channel)),
    writerServiceId: row.writer_service_id,
    readAtMs: row.read_at?.getTime(),
    dismissedAtMs: row.dismissed_at?.getTime(),
  };
}

function parseName<T extends string>(values: readonly T[], text: string): T {
  const value = values.find((each) => each === text);
  if (value === undefined) throw refusal('ROW_UNREADABLE', { message: `an inbox entry says ${text}` });
  return value;
}
