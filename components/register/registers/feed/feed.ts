import { parseStoredEvent, type RegisterEvent, type StoredEventData } from '#core/events/register-events.ts';
import type { Reader } from '#kit/db/db.ts';
import { formatCursor, type OutboxEvent, readEvents } from '#kit/db/outbox.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import type { FeedCursor } from './cursor.ts';
import { countEvents, docketEvents, eventOf, type FeedRow, frontOf, transactionEvents } from './events.ts';
import { sealedFactsOf } from './store.ts';

/** One page of the feed. */
interface FeedPage {
  readonly events: readonly RegisterEvent[];
  /** Position after the last event. */
  readonly cursor: FeedCursor;
  /** False when more can be read at once. */
  readonly complete: boolean;
}

/**
 * Reads events after a cursor; events of one register are in order. The outbox has one row per docket. Events that
 * follow from it, also those of transactions, are derived here, so that sealing writes no more rows.
 * @param limit maximum number of events, 1 or more
 * @throws AppError internal EVENT_UNREADABLE for a row that violates its schema
 */
export async function readFeed(
  db: Reader<RegisterSchema>,
  cursor: FeedCursor,
  limit: number,
): Promise<FeedPage> {
  const rows = await readEvents(db, cursor.after, limit);
  const events: RegisterEvent[] = [];
  let { after, seen } = cursor;
  for (const row of rows) {
    const room = limit - events.length;
    if (room === 0) return { events, cursor: { after, seen }, complete: false };
    const progress = await eventsOf(db, row, { seen, room });
    events.push(...progress.events);
    if (!progress.isComplete) return { events, cursor: { after, seen: progress.seen }, complete: false };
    after = row.cursor;
    seen = 0;
  }
  return { events, cursor: { after, seen }, complete: rows.length < limit };
}

interface RowProgress {
  readonly events: readonly RegisterEvent[];
  /** Events of the row that are returned now or were returned before. */
  readonly seen: number;
  readonly isComplete: boolean;
}

async function eventsOf(
  db: Reader<RegisterSchema>,
  row: OutboxEvent,
  { seen, room }: { readonly seen: number; readonly room: number },
): Promise<RowProgress> {
  const event = parseStoredEvent(row.kind, row.data);
  if (event === undefined) return { events: [], seen: 0, isComplete: true };
  const fed = { event, position: formatCursor(row.cursor), createdAt: row.createdAt };
  if (event.kind !== 'DocketSealed') {
    const single = eventOf(fed);
    return { events: single === undefined ? [] : [single], seen: 1, isComplete: true };
  }
  const until = Math.min(seen + room, countEvents(event.data));
  const events = await docketSlice(db, fed, event.data, { from: seen, to: until });
  return { events, seen: until, isComplete: until === countEvents(event.data) };
}

/** Events [from, to) of a docket. Those of purged rows are omitted. */
async function docketSlice(
  db: Reader<RegisterSchema>,
  row: FeedRow,
  docket: StoredEventData<'DocketSealed'>,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<readonly RegisterEvent[]> {
  const { registerId, docketNumber } = docket;
  const front = frontOf(docketNumber);
  const first = Math.max(0, Math.floor((from - front) / 2));
  const end = Math.max(0, Math.ceil((to - front) / 2));
  const facts = await sealedFactsOf(db, registerId, { docketNumber, from: first, to: end });
  const ofDocket = docketEvents(row, docket, facts).slice(from, to);
  const ofTransactions = transactionEvents(row, docket, facts);
  const skipped = Math.max(0, from - front) - 2 * first;
  const remaining = to - Math.max(from, front);
  return [...ofDocket, ...ofTransactions.slice(skipped, skipped + Math.max(0, remaining))];
}
