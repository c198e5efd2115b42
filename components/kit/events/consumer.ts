import { isAppError } from '#core/errors/errors.ts';
import type { Bus } from '#kit/bus/bus.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import { type FailureReport, type Follower, followLog } from './follow.ts';
import { findPosition, lockPosition, savePosition } from './store.ts';

const POLL_MS = 2_000;
/** Longest pause after failures, in poll intervals. */
const RETRY_FACTOR = 5;

interface EventPage<E> {
  /** Oldest first. */
  readonly events: readonly E[];
  /**
   * The producer's position after this page, opaque to the consumer. It is another one than before whenever the page has
   * events, and may be when it has none: a producer may leave events out.
   */
  readonly position: string;
  /** False when the log has more events after this page. */
  readonly complete: boolean;
}

/** The event log of another service. */
export interface EventSource<E> {
  /**
   * Events after a position; the empty one is the start. Errors: `unavailable` or `timeout` while the producer cannot be
   * reached; everything else is reported as a fault of the log.
   */
  read(after: string, signal: AbortSignal): Promise<EventPage<E>>;
}

/** What a service does with the events of another one. */
export interface Consumption<DB, E> {
  /** The producer, as in `wallet`: key of the position in `event_cursors`, and in the log lines. */
  readonly source: string;
  /** A schema with `eventCursorsTable`. */
  readonly db: Pick<Database<DB>, 'read' | 'transact'>;
  readonly log: EventSource<E>;
  /**
   * Applies a page of events in the transaction that moves the position; returns how many had an effect. It may run
   * again after a rollback, so it has no effects outside the transaction. It skips kinds that it does not know, because
   * producers add some, and throws at an event that it cannot read: the page is not applied, and the consumer stays
   * before it.
   */
  readonly apply: (tx: Transactor<DB>, events: readonly E[]) => Promise<number>;
  /** Called after each page with the number of events that had an effect; 0 when another replica applied them. */
  readonly onApplied: (count: number) => void;
}

/** When a consumer reads, and how it reports. */
export interface ConsumerOptions {
  readonly bus: Pick<Bus, 'subscribe'>;
  /** Subject of the producer's wake signal. */
  readonly subject: string;
  readonly log: Logger;
  /** What holds while the producer cannot be reached, for the log line: `tokens carry the last known wallets`. */
  readonly meanwhile: string;
  /** Called at each failed read. */
  readonly onFailed: () => void;
  /** Poll interval in milliseconds; 2000 when absent. After failures it doubles up to five times its length. */
  readonly pollMs?: number | undefined;
}

/**
 * Consumes the event log of another service. Events are delivered at least once; each one has its effect exactly once,
 * because effect and position commit together. So a restart neither loses nor repeats an event, and of several replicas
 * that read the same page one applies it. Nothing waits for the producer: while it cannot be reached, the service works
 * with what it has. An event that cannot be applied blocks those behind it, since skipping it would lose a change; that
 * is logged as an error and counted.
 *
 * The producer's log must reach back as far as the consumer may lag: the outbox is pruned by age.
 */
export function startConsumer<DB, E>(consumption: Consumption<DB, E>, options: ConsumerOptions): Follower {
  const { bus, subject, log, onFailed, pollMs = POLL_MS } = options;
  const { source } = consumption;
  return followLog({
    readPage: (signal) => consumePage(consumption, signal),
    bus,
    subject,
    pollMs,
    longestRetryMs: pollMs * RETRY_FACTOR,
    log,
    report: (error) => reportOf(source, options.meanwhile, error),
    recovered: `the ${source} events are consumed again`,
    onFailed,
  });
}

/**
 * Reads one page and applies it together with the position in one transaction. A page that another replica has applied
 * meanwhile is dropped.
 *
 * @returns false when the log has more events after this page.
 */
export async function consumePage<DB, E>(
  { source, db, log, apply, onApplied }: Consumption<DB, E>,
  signal: AbortSignal,
): Promise<boolean> {
  const after = await findPosition(db.read, source);
  const { events, position, complete } = await log.read(after, signal);
  // Without progress, reading again at once would never end.
  if (position === after) return true;
  const applied = await db.transact(async (tx) => {
    if ((await lockPosition(tx, source)) !== after) return 0;
    const count = events.length === 0 ? 0 : await apply(tx, events);
    await savePosition(tx, source, position);
    return count;
  });
  onApplied(applied);
  return complete;
}

/** Services start in any order, so one that does not answer is not an error. */
function reportOf(source: string, meanwhile: string, error: unknown): FailureReport {
  if (isAppError(error, 'unavailable') || isAppError(error, 'timeout')) {
    return {
      level: 'info',
      fields: { code: error.code, reason: error.message },
      message: `the ${source} events cannot be consumed now; ${meanwhile}`,
    };
  }
  return {
    level: 'error',
    fields: { err: error },
    message: `the ${source} events cannot be consumed; the consumer retries at the same event`,
  };
}
