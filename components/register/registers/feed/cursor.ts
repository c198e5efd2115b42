import { formatCursor, type OutboxCursor, parseCursor } from '#kit/db/outbox.ts';

/** Position of a consumer in the feed: after a row of the outbox, and after a number of events of the next row. */
export interface FeedCursor {
  readonly after: OutboxCursor;
  readonly seen: number;
}

/** Formats a cursor: `<transaction id>.<sequence>`, with `+<events>` within a row. */
export function formatFeedCursor({ after, seen }: FeedCursor): string {
  return seen === 0 ? formatCursor(after) : `${formatCursor(after)}+${seen}`;
}

/** Parses the text of formatFeedCursor; empty text is the start. Undefined for anything else. */
export function parseFeedCursor(text: string): FeedCursor | undefined {
  const [row = '', seen, ...more] = text.split('+');
  const after = parseCursor(row);
  if (after === undefined || more.length > 0) return undefined;
  if (seen === undefined) return { after, seen: 0 };
  return row !== '' && /^[1-9]\d{0,8}$/.test(seen) ? { after, seen: Number(seen) } : undefined;
}
