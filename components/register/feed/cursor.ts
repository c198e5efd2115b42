import { formatCursor, type OutboxCursor, parseCursor } from '#kit/db/outbox.ts';

/** Where a consumer of the feed stands: behind a row of the outbox, and behind so many events of the next one. */
export interface FeedCursor {
  readonly after: OutboxCursor;
  readonly seen: number;
}

/** Cursor as text: `<transaction id>.<sequence>`, with `+<events>` in the middle of a row. */
export function formatFeedCursor({ after, seen }: FeedCursor): string {
  return seen === 0 ? formatCursor(after) : `${formatCursor(after)}+${seen}`;
}

/** Reads what formatFeedCursor wrote; empty text is the start. Undefined for anything else. */
export function parseFeedCursor(text: string): FeedCursor | undefined {
  const [row = '', seen, ...more] = text.split('+');
  const after = parseCursor(row);
  if (after === undefined || more.length > 0) return undefined;
  if (seen === undefined) return { after, seen: 0 };
  return row !== '' && /^[1-9]\d{0,8}$/.test(seen) ? { after, seen: Number(seen) } : undefined;
}
