import { z } from 'zod';
import { readableLine, readableName } from '#core/encoding/readable.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import { identifier } from '#core/identity/identifier.ts';
import { paging } from '#kit/http/http.ts';
import { CATEGORIES, CHANNELS, type Channel, type Entry, SEVERITIES } from './entry.ts';

const nullableTime = z.string().nullable().describe('ISO 8601, UTC.');
export const entrySchema = z
  .object({
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
  })
  .meta({ id: 'InboxEntry' });

export const idParameter = z.object({
  id: z.union([z.guid(), z.string().regex(/^[0-9a-fA-F]{32}$/)]).transform((text) =>
    text
      .toLowerCase()
      .replaceAll('-', '')
      .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
  ),
});

export const querySchema = paging({ outOfRange: 'clamp' }).extend({
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

export const newEntrySchema = z.object({
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

export const inboxSchema = z.object({
  entries: z.array(entrySchema),
  page: z.int(),
  pageSize: z.int(),
  total: z.int(),
  totalCount: z.int(),
});

export const writtenSchema = z.object({
  entry: entrySchema.extend({ platformUserId: identifier }),
  idempotent: z.boolean().describe('The event already had an entry.'),
});

export function presentEntry(entry: Entry): z.output<typeof entrySchema> {
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
