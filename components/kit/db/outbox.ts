import { sql } from 'kysely';
import type { Migration, Reader, Transactor } from './db.ts';

/** Position of a consumer in a producer's outbox: it has consumed this event and everything before it. */
export interface OutboxCursor {
  /** 64-bit transaction id. */
  readonly transactionId: bigint;
  readonly sequence: bigint;
}

/** A fact that a component published. `key` names the resource, `data` contains what readers need to know of it. */
export interface OutboxEvent {
  readonly cursor: OutboxCursor;
  readonly kind: string;
  readonly key: string;
  readonly data: unknown;
  readonly createdAt: Date;
}

/** What `appendEvent` writes. `data` is JSON. */
interface NewEvent {
  readonly kind: string;
  readonly key: string;
  readonly data: unknown;
}

interface OutboxPosition {
  readonly transaction_id: string;
  readonly sequence: string;
}

interface OutboxRow extends OutboxPosition {
  readonly kind: string;
  readonly key: string;
  readonly data: unknown;
  readonly created_at: Date;
}

/** The position before the first event. */
export const outboxStart: OutboxCursor = { transactionId: 0n, sequence: 0n };

/** The migration that creates the table `outbox`; place it in the component's list under a name of its order. */
export function outboxMigration(name: string): Migration {
  return {
    name,
    up: async (db) => {
      await sql`create table outbox (
        transaction_id xid8 not null default pg_current_xact_id(),
        sequence bigint generated always as identity,
        kind text not null,
        key text not null,
        data jsonb not null,
        created_at timestamptz not null default now(),
        primary key (transaction_id, sequence))`.execute(db);
      await sql`create index outbox_created_at on outbox (created_at)`.execute(db);
    },
  };
}

/** Writes an event in the transaction of the state change that it describes; both commit or neither does. */
export async function appendEvent<DB>(tx: Transactor<DB>, event: NewEvent): Promise<void> {
  await sql`insert into outbox (kind, key, data)
    values (${event.kind}, ${event.key}, ${JSON.stringify(event.data)}::jsonb)`.execute(tx);
}

/**
 * Events after `cursor` in the order of (transaction id, sequence). Only events below the oldest running transaction
 * (`pg_snapshot_xmin`) are returned, so an event that commits late is never behind a cursor. The price is that a long
 * transaction delays the events that started after it.
 *
 * @param limit maximum number of events, 1 or more.
 * @param kinds of the events; any when absent. A partial index of the component makes a rare kind cheap to find.
 */
export async function readEvents<DB>(
  db: Reader<DB>,
  cursor: OutboxCursor,
  limit: number,
  kinds?: readonly string[],
): Promise<readonly OutboxEvent[]> {
  const ofKinds = kinds === undefined ? sql`true` : sql`kind = any(${kinds})`;
  const { rows } =
    await sql<OutboxRow>`select transaction_id::text, sequence::text, kind, key, data, created_at
    from outbox
    where transaction_id < pg_snapshot_xmin(pg_current_snapshot())
      and (transaction_id, sequence) > (${cursor.transactionId.toString()}::xid8, ${cursor.sequence.toString()}::bigint)
      and ${ofKinds}
    order by outbox.transaction_id, outbox.sequence
    limit ${limit}`.execute(db);
  return rows.map(eventOf);
}

function eventOf(row: OutboxRow): OutboxEvent {
  return {
    cursor: { transactionId: BigInt(row.transaction_id), sequence: BigInt(row.sequence) },
    kind: row.kind,
    key: row.key,
    data: row.data,
    createdAt: row.created_at,
  };
}

/** What a search for kept events reads. */
interface KeptEvents {
  /** Events whose transaction began at this instant or later. */
  readonly since: Date;
  readonly after: OutboxCursor;
  /** Any when absent. */
  readonly key?: string;
  /** Any when absent. */
  readonly kinds?: readonly string[];
  /** 1 or more. */
  readonly limit: number;
}

/** Like readEvents, for the events of a time, a key and some kinds; nothing older than the retention is there. */
export async function readKeptEvents<DB>(
  db: Reader<DB>,
  { since, after, key, kinds, limit }: KeptEvents,
): Promise<readonly OutboxEvent[]> {
  const ofKey = key === undefined ? sql`true` : sql`key = ${key}`;
  const ofKinds = kinds === undefined ? sql`true` : sql`kind = any(${kinds})`;
  const { rows } =
    await sql<OutboxRow>`select transaction_id::text, sequence::text, kind, key, data, created_at
    from outbox
    where transaction_id < pg_snapshot_xmin(pg_current_snapshot())
      and (transaction_id, sequence) > (${after.transactionId.toString()}::xid8, ${after.sequence.toString()}::bigint)
      and created_at >= ${since} and ${ofKey} and ${ofKinds}
    order by outbox.transaction_id, outbox.sequence
    limit ${limit}`.execute(db);
  return rows.map(eventOf);
}

/**
 * A position before every event whose transaction began at `since` or later, found without a scan: that of an event from
 * more than an hour before. A transaction that had begun then and lasted less than an hour got its id before any that
 * began at `since`; `statement_timeout` and `idle_in_transaction_session_timeout` end longer ones.
 */
export async function cursorBefore<DB>(db: Reader<DB>, since: Date): Promise<OutboxCursor> {
  const { rows } = await sql<OutboxPosition>`
    select transaction_id::text, sequence::text from outbox
    where created_at < ${since}::timestamptz - interval '1 hour'
    order by created_at desc limit 1`.execute(db);
  return positionOf(rows);
}

/** Whether an event after `cursor` is committed, although readEvents may not return it yet. */
export async function hasEventsAfter<DB>(db: Reader<DB>, cursor: OutboxCursor): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`select exists (select 1 from outbox
    where (transaction_id, sequence) > (${cursor.transactionId.toString()}::xid8, ${cursor.sequence.toString()}::bigint)
    ) as found`.execute(db);
  return rows[0]?.found === true;
}

/** Whether a position is before another one. */
export function isBefore(one: OutboxCursor, other: OutboxCursor): boolean {
  if (one.transactionId !== other.transactionId) return one.transactionId < other.transactionId;
  return one.sequence < other.sequence;
}

/** The cursor behind all present events; a new consumer that needs no history starts here. */
export async function latestCursor<DB>(db: Reader<DB>): Promise<OutboxCursor> {
  const { rows } = await sql<OutboxPosition>`
    select transaction_id::text, sequence::text from outbox
    where transaction_id < pg_snapshot_xmin(pg_current_snapshot())
    order by outbox.transaction_id desc, outbox.sequence desc limit 1`.execute(db);
  return positionOf(rows);
}

function positionOf([row]: readonly OutboxPosition[]): OutboxCursor {
  return row === undefined
    ? outboxStart
    : { transactionId: BigInt(row.transaction_id), sequence: BigInt(row.sequence) };
}

/** Cursor as text for the wire and for a consumer's table: `<transaction id>.<sequence>`. */
export function formatCursor(cursor: OutboxCursor): string {
  return `${cursor.transactionId}.${cursor.sequence}`;
}

/** Parses what `formatCursor` wrote; empty text is the start. Returns undefined for anything else. */
export function parseCursor(text: string): OutboxCursor | undefined {
  if (text === '') {
    return outboxStart;
  }
  const match = /^(\d{1,20})\.(\d{1,19})$/.exec(text);
  return match === null
    ? undefined
    : { transactionId: BigInt(match[1] ?? '0'), sequence: BigInt(match[2] ?? '0') };
}

/**
 * Deletes events older than `days`; a consumer that lags further starts from a new snapshot of its own.
 *
 * @param kinds of the events; any when absent
 * @returns their number
 */
export async function pruneEvents<DB>(
  tx: Transactor<DB>,
  days: number,
  kinds?: readonly string[],
): Promise<number> {
  const ofKinds = kinds === undefined ? sql`true` : sql`kind = any(${kinds})`;
  const result =
    await sql`delete from outbox where created_at < now() - make_interval(days => ${days}) and ${ofKinds}`.execute(
      tx,
    );
  return Number(result.numAffectedRows ?? 0n);
}
