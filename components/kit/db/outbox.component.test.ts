import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { type Database, openDatabase } from './db.ts';
import {
  appendEvent,
  cursorBefore,
  formatCursor,
  hasEventsAfter,
  latestCursor,
  type OutboxCursor,
  outboxMigration,
  outboxStart,
  parseCursor,
  pruneEvents,
  readEvents,
  readKeptEvents,
} from './outbox.ts';

type Empty = Record<never, never>;

describe('outbox', () => {
  let db: Database<Empty>;
  beforeEach(async () => {
    const { log, telemetry } = testRuntime('service-outbox');
    db = await openDatabase<Empty>({
      url: await testDatabase('outbox'),
      schema: 'outboxed',
      log,
      telemetry,
      migrations: [outboxMigration('0001-outbox')],
    });
  });
  afterEach(() => db.close());

  const write = (...keys: string[]) =>
    db.transact(async (tx) => {
      for (const key of keys) {
        await appendEvent(tx, { kind: 'written', key, data: { key } });
      }
    });

  /** A transaction that writes `key` at once and commits when the test says so. */
  async function openWrite(key: string) {
    const written = Promise.withResolvers<void>();
    const mayCommit = Promise.withResolvers<void>();
    const done = db.transact(async (tx) => {
      await appendEvent(tx, { kind: 'written', key, data: null });
      written.resolve();
      await mayCommit.promise;
    });
    await written.promise;
    return {
      commit: async () => {
        mayCommit.resolve();
        await done;
      },
      abort: async () => {
        mayCommit.reject(new Error('aborted'));
        await done.catch(() => undefined);
      },
    };
  }

  /** Transactions of other databases of the server also hold events back, so a test waits for the expected keys. */
  async function expectKeys(cursor: OutboxCursor, keys: readonly string[]) {
    const found = await waitFor(async () => {
      const seen = await keysAfter(cursor);
      return seen.length >= keys.length ? seen : undefined;
    });
    expect(found).toEqual(keys);
  }

  async function keysAfter(cursor: OutboxCursor, limit = 100) {
    return (await readEvents(db.read, cursor, limit)).map((event) => event.key);
  }

  it('gives events in order, by pages, each once', async () => {
    await write('a', 'b', 'c');
    await write('d', 'e');
    await expectKeys(outboxStart, ['a', 'b', 'c', 'd', 'e']);
    const seen: string[] = [];
    let cursor = outboxStart;
    for (let events = await readEvents(db.read, cursor, 2); events.length > 0; ) {
      seen.push(...events.map((event) => event.key));
      cursor = events.at(-1)?.cursor ?? cursor;
      events = await readEvents(db.read, cursor, 2);
    }
    expect(seen).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(await latestCursor(db.read)).toEqual(cursor);
  });

  it('orders by number: 9 before 10, and 999 before 1000', async () => {
    const numbers = ['9', '10', '99', '100', '999', '1000'];
    for (const number of numbers) {
      await db.pool.query(
        `insert into outbox (transaction_id, sequence, kind, key, data)
          overriding system value values ('2', $1::text::bigint, 'written', $1, '{}')`,
        [number],
      );
    }
    await db.pool.query(
      `insert into outbox (transaction_id, kind, key, data) values ('10', 'written', 'last', '{}')`,
    );
    const read = await readEvents(db.read, outboxStart, 10);
    expect(read.map(({ key }) => key)).toEqual([...numbers, 'last']);
    const kept = await readKeptEvents(db.read, { since: new Date(0), after: outboxStart, limit: 10 });
    expect(kept).toEqual(read);
    expect((await latestCursor(db.read)).transactionId).toBe(10n);
  });

  it('finds the events of a time, a key and kinds', async () => {
    await write('a', 'b');
    await db.transact((tx) => appendEvent(tx, { kind: 'erased', key: 'a', data: {} }));
    await db.pool.query(
      `insert into outbox (kind, key, data, created_at) values ('written', 'a', '{}', now() - interval '1 hour')`,
    );
    const since = new Date(Date.now() - 60_000);
    const find = async (filter: { key?: string; kinds?: string[] }) => {
      const found = await readKeptEvents(db.read, { ...filter, since, after: outboxStart, limit: 10 });
      return found.map(({ kind, key }) => `${kind} ${key}`);
    };
    await waitFor(async () => (await find({})).length === 3);
    expect(await find({ key: 'a' })).toEqual(['written a', 'erased a']);
    expect(await find({ key: 'a', kinds: ['erased'] })).toEqual(['erased a']);
    expect(await find({ kinds: ['written'] })).toEqual(['written a', 'written b']);
  });

  it('finds a position before every event of a time, also of transactions that overlap', async () => {
    const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);
    // A transaction gets its id at its first write, which may be long after its beginning.
    for (const [id, minutes] of [
      [10, 300],
      [20, 66],
      [30, 10],
      [40, 64],
      [50, 8],
    ] as const) {
      await db.pool.query(
        `insert into outbox (transaction_id, kind, key, data, created_at)
          values ($1::text::xid8, 'written', $1::text, '{}', $2)`,
        [String(id), minutesAgo(minutes)],
      );
    }
    const positionOf = async (minutes: number) =>
      (await cursorBefore(db.read, minutesAgo(minutes))).transactionId;
    // 40 began within the hour before: 30, with a lower id, may have begun since.
    expect(await positionOf(5)).toBe(20n);
    expect(await positionOf(11)).toBe(10n);
    expect(await positionOf(300)).toBe(0n);
    expect(await positionOf(-600)).toBe(50n);
  });

  it('knows of events that are held back', async () => {
    const early = await openWrite('early');
    await write('late');
    expect(await readEvents(db.read, outboxStart, 10)).toEqual([]);
    expect(await hasEventsAfter(db.read, outboxStart)).toBe(true);
    await early.commit();
    const cursor = await waitFor(async () => {
      const read = await readEvents(db.read, outboxStart, 10);
      return read.length === 2 && read.at(-1)?.cursor;
    });
    expect(await hasEventsAfter(db.read, cursor)).toBe(false);
  });

  it('carries kind, key, data and time', async () => {
    await write('a');
    await expectKeys(outboxStart, ['a']);
    const [event] = await readEvents(db.read, outboxStart, 1);
    expect(event).toMatchObject({ kind: 'written', key: 'a', data: { key: 'a' } });
    expect(event?.createdAt).toBeInstanceOf(Date);
  });

  it('never skips a transaction that starts first and commits last', async () => {
    const early = await openWrite('early');
    const late = await openWrite('late');
    await late.commit();
    // A reader that relied on commit order would now move its cursor past `early` and never see it.
    expect(await keysAfter(outboxStart)).toEqual([]);
    expect(await latestCursor(db.read)).toEqual(outboxStart);
    await early.commit();
    await expectKeys(outboxStart, ['early', 'late']);
  });

  it('holds back only what started after the oldest running transaction', async () => {
    await write('before');
    await expectKeys(outboxStart, ['before']);
    const running = await openWrite('running');
    await write('after');
    const [before] = await readEvents(db.read, outboxStart, 10);
    expect(before?.key).toBe('before');
    expect(await keysAfter(before?.cursor ?? outboxStart)).toEqual([]);
    await running.abort();
    await expectKeys(before?.cursor ?? outboxStart, ['after']);
  });

  it('loses nothing when a consumer reads while many writers commit', async () => {
    const seen: string[] = [];
    let cursor = outboxStart;
    const readAll = async () => {
      for (const event of await readEvents(db.read, cursor, 7)) {
        seen.push(event.key);
        cursor = event.cursor;
      }
    };
    const keys = Array.from({ length: 60 }, (_, index) => `k${index}`);
    let writing = true;
    const writers = Promise.all(keys.map((key) => write(key))).finally(() => {
      writing = false;
    });
    while (writing) {
      await readAll();
    }
    await writers;
    await waitFor(async () => {
      await readAll();
      return seen.length >= keys.length;
    });
    expect([...seen].sort()).toEqual([...keys].sort());
  });

  it('deletes old events only', async () => {
    await write('new');
    expect(await db.transact((tx) => pruneEvents(tx, 7))).toBe(0);
    await expectKeys(outboxStart, ['new']);
  });

  it('deletes events of the given kinds only', async () => {
    await db.transact(async (tx) => {
      for (const kind of ['Kept', 'Passing']) await appendEvent(tx, { kind, key: kind, data: {} });
    });
    await db.pool.query("update outbox set created_at = now() - interval '3 days'");
    expect(await db.transact((tx) => pruneEvents(tx, 7, ['Passing']))).toBe(0);
    expect(await db.transact((tx) => pruneEvents(tx, 2, ['Passing', 'Other']))).toBe(1);
    await expectKeys(outboxStart, ['Kept']);
  });
});

describe('cursors as text', () => {
  it('parse back to the same cursor', () => {
    const cursor = { transactionId: 18_446_744_073_709_551_615n, sequence: 9_223_372_036_854_775_807n };
    expect(parseCursor(formatCursor(cursor))).toEqual(cursor);
    expect(parseCursor('')).toEqual(outboxStart);
  });

  it.each(['1', '1.', 'x.1', '1.1.1', '-1.1'])('are refused when malformed: %s', (text) => {
    expect(parseCursor(text)).toBeUndefined();
  });
});
