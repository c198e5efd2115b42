import type { Bus } from '#kit/bus/bus.ts';
import { backgroundTimers, sleep, type Timers } from '#kit/clock/timing.ts';
import type { Reader } from '#kit/db/db.ts';
import {
  cursorBefore,
  hasEventsAfter,
  isBefore,
  latestCursor,
  type OutboxCursor,
  type OutboxEvent,
  outboxStart,
  readEvents,
  readKeptEvents,
} from '#kit/db/outbox.ts';
import { type Follower, followLog } from '#kit/events/follow.ts';
import type { Logger } from '#kit/log/log.ts';
import type { HubLimits } from './limits.ts';
import { ReplayQueue } from './replay-queue.ts';
import type { Signal } from './signal.ts';

const pollMs = 1_000;
const pageRows = 64;
/** Pauses while a running transaction holds events back. */
const shortestPauseMs = 10;
const longestPauseMs = 500;
/** Rows of a replay that are turned into signals together; one row may give many. */
const stepRows = 8;

/** Which rows of the outbox concern a group; absent members do not restrict. */
interface RowFilter {
  readonly key?: string;
  readonly kinds?: readonly string[];
}

/** The event log of the component that serves the hub. */
export interface HubLog<DB> {
  /** A schema with the outbox. */
  readonly db: Reader<DB>;
  /** Subject of its wake signal. */
  readonly subject: string;
  /**
   * The signals of rows, in their order. Rows that clients do not get have none. A row with many signals needs those
   * of groups alone for which `isHeld` is true.
   */
  signalsOf(events: readonly OutboxEvent[], isHeld: (group: string) => boolean): Promise<readonly Signal[]>;
  /** The rows that a replay of a group reads; those of them count that give signals for the group. */
  filterOf(group: string): RowFilter | Promise<RowFilter>;
}

/** The log as a feed reads it. */
export interface LogSource extends Pick<HubLog<never>, 'subject' | 'signalsOf' | 'filterOf'> {
  latest(): Promise<OutboxCursor>;
  /** A position before every event whose transaction began at an instant or later. */
  before(since: Date): Promise<OutboxCursor>;
  read(after: OutboxCursor, limit: number): Promise<readonly OutboxEvent[]>;
  /** Whether events after a position are committed that `read` does not return yet. */
  hasMore(after: OutboxCursor): Promise<boolean>;
  readKept(search: Parameters<typeof readKeptEvents>[1]): Promise<readonly OutboxEvent[]>;
}

/** The declared log with its reads. */
export function logSource<DB>(declared: HubLog<DB>): LogSource {
  const { db, subject } = declared;
  return {
    subject,
    signalsOf: (events, isHeld) => declared.signalsOf(events, isHeld),
    filterOf: (group) => declared.filterOf(group),
    latest: () => latestCursor(db),
    before: (since) => cursorBefore(db, since),
    read: (after, limit) => readEvents(db, after, limit),
    hasMore: (after) => hasEventsAfter(db, after),
    readKept: (search) => readKeptEvents(db, search),
  };
}

export interface FeedOptions {
  readonly source: LogSource;
  readonly limits: HubLimits;
  readonly bus: Pick<Bus, 'subscribe'>;
  readonly log: Logger;
  readonly timers: Timers | undefined;
  readonly nowMs: () => number;
  /** Groups with connections here, and groups that are being joined. */
  readonly isHeld: (group: string) => boolean;
  readonly deliver: (signals: readonly Signal[]) => Promise<void>;
}

/** The client of a replay. */
interface ReplayClient {
  readonly userId: string;
  /** Whether the connection is still open; the replay ends when it is not. */
  readonly isWanted: () => boolean;
  readonly send: (signals: readonly Signal[]) => Promise<void>;
  /** Joins the group. */
  readonly join: () => void;
}

/** What a replay sent. `complete` is false when signals are missing: the client reads the state by REST. */
export interface Replay {
  readonly replayed: number;
  readonly complete: boolean;
}

/**
 * Follows the outbox of the component from a position in memory. A page is read and delivered under a lock, and so is
 * the step from a replay to the live signals, which leaves no gap between them.
 */
export class Feed {
  readonly #options: FeedOptions;
  #cursor: OutboxCursor = outboxStart;
  #lock: Promise<unknown> = Promise.resolve();
  #follower: Follower | undefined;
  #pauseMs: number = shortestPauseMs;
  readonly #replays: ReplayQueue;

  constructor(options: FeedOptions) {
    this.#options = options;
    this.#replays = new ReplayQueue(options.limits.replays);
  }

  /** Starts behind all present events. */
  async start(): Promise<void> {
    const { source, bus, log, timers } = this.#options;
    this.#cursor = await source.latest();
    this.#follower = followLog({
      readPage: (signal) => this.#readAhead(signal),
      bus,
      subject: source.subject,
      pollMs,
      log,
      timers,
      report: (error) => ({
        level: 'warn',
        fields: { err: error },
        message: 'events of the hub cannot be read',
      }),
      recovered: 'events of the hub are read again',
    });
  }

  async stop(): Promise<void> {
    await this.#follower?.stop();
  }

  /** Runs `join` between two pages. */
  join(join: () => void): Promise<void> {
    return this.#exclusive(async () => join());
  }

  /**
   * Sends the signals of a group since an instant, oldest first, and joins it without a gap. Waits while another replay
   * of the user runs. `isHeld` must be true of the group from before the call on.
   */
  async replay(group: string, sinceMs: number, client: ReplayClient): Promise<Replay> {
    const { limits, nowMs } = this.#options;
    const earliestMs = nowMs() - limits.replayMs;
    const since = new Date(Math.max(sinceMs - limits.replayOverlapMs, earliestMs));
    const run = new Run(this.#options, { group, since, client });
    await this.#replays.run(client.userId, client.isWanted, () => run.readAll());
    await this.#exclusive(async () => {
      while (!run.isOver && isBefore(run.cursor, this.#cursor)) await run.readAll();
      client.join();
    });
    return { replayed: run.sent, complete: !run.isOver && sinceMs >= earliestMs };
  }

  /**
   * Reads a page. A running transaction holds back the events of later ones that have committed; no wake signal tells of
   * its end, so an empty page is read again after a pause that grows. Behind a page with events others may have been
   * committed while it was delivered, which nothing holds back.
   */
  async #readAhead(signal: AbortSignal): Promise<boolean> {
    const isEmpty = (await this.#exclusive(() => this.#readPage())) === 0;
    if (!isEmpty) {
      this.#pauseMs = shortestPauseMs;
      return false;
    }
    if (!(await this.#options.source.hasMore(this.#cursor))) {
      this.#pauseMs = shortestPauseMs;
      return true;
    }
    await sleep(this.#options.timers ?? backgroundTimers(), this.#pauseMs, signal);
    this.#pauseMs = Math.min(2 * this.#pauseMs, longestPauseMs);
    return false;
  }

  /** Number of events of the page. */
  async #readPage(): Promise<number> {
    const { source, deliver, isHeld } = this.#options;
    const events = await source.read(this.#cursor, pageRows);
    if (events.length > 0) await deliver(await source.signalsOf(events, isHeld));
    this.#cursor = events.at(-1)?.cursor ?? this.#cursor;
    return events.length;
  }

  #exclusive<T>(act: () => Promise<T>): Promise<T> {
    const result = this.#lock.then(act);
    this.#lock = result.catch(() => undefined);
    return result;
  }
}

interface Replayed {
  readonly group: string;
  readonly since: Date;
  readonly client: Pick<ReplayClient, 'isWanted' | 'send'>;
}

/** One replay: reads the log from an instant to its end, as often as it is called. */
class Run {
  readonly #options: FeedOptions;
  readonly #replayed: Replayed;
  #cursor: OutboxCursor | undefined;
  #isFull = false;
  sent = 0;

  constructor(options: FeedOptions, replayed: Replayed) {
    this.#options = options;
    this.#replayed = replayed;
  }

  /** Everything up to here was read. */
  get cursor(): OutboxCursor {
    return this.#cursor ?? outboxStart;
  }

  /** Nothing more is sent, although signals may be missing. */
  get isOver(): boolean {
    return this.#isFull || !this.#replayed.client.isWanted();
  }

  async readAll(): Promise<void> {
    const { source } = this.#options;
    const { group, since } = this.#replayed;
    this.#cursor ??= await source.before(since);
    const filter = await source.filterOf(group);
    // Every row up to here is visible to the reads that follow.
    const end = await source.latest();
    for (let isComplete = false; !isComplete && !this.isOver; ) {
      const rows = await source.readKept({
        ...filter,
        since,
        after: this.cursor,
        limit: pageRows,
      });
      await this.#sendRows(rows);
      isComplete = rows.length < pageRows;
    }
    if (isBefore(this.cursor, end)) this.#cursor = end;
  }

  async #sendRows(rows: readonly OutboxEvent[]): Promise<void> {
    const { source, limits } = this.#options;
    const { group, client } = this.#replayed;
    for (let from = 0; from < rows.length && !this.isOver; from += stepRows) {
      const step = rows.slice(from, from + stepRows);
      const signals = await source.signalsOf(step, (each) => each === group);
      const own = signals.filter(({ groups }) => groups.includes(group));
      const fitting = own.slice(0, limits.replaySignals - this.sent);
      this.#isFull = fitting.length < own.length;
      this.sent += fitting.length;
      this.#cursor = step.at(-1)?.cursor ?? this.#cursor;
      if (fitting.length > 0) await client.send(fitting);
    }
  }
}
