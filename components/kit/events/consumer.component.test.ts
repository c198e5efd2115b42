import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { type Database, type Migration, openDatabase, type Transactor } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { type TestRuntime, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { type Consumption, consumePage, type EventSource, startConsumer } from './consumer.ts';
import type { Follower } from './follow.ts';
import { eventCursorsTable, findPosition } from './store.ts';

type Empty = Record<never, never>;
type Apply = Consumption<Empty, number>['apply'];

const tables: Migration = {
  name: '0001-tables',
  up: async (db) => {
    await sql.raw(eventCursorsTable).execute(db);
    // Without a key, so that a repeated effect is seen.
    await sql`create table effects (place bigint generated always as identity, event int)`.execute(db);
  },
};
const never = new AbortController().signal;

describe('a consumer of events', () => {
  let runtime: TestRuntime;
  let url: string;
  let db: Database<Empty>;
  let events: number[];
  let consumers: Follower[];
  let failures: number;

  const open = () =>
    openDatabase<Empty>({
      url,
      schema: 'consumer',
      log: runtime.log,
      telemetry: runtime.telemetry,
      migrations: [tables],
    });

  beforeEach(async () => {
    runtime = testRuntime('consumer');
    url = await testDatabase('kit_events');
    db = await open();
    events = [];
    consumers = [];
    failures = 0;
  });
  afterEach(async () => {
    await Promise.all(consumers.map((consumer) => consumer.stop()));
    await db.close();
  });

  /** The producer: pages of three events, whose position is the number of events before it. */
  const producer: EventSource<number> = {
    read: async (after) => {
      const from = Number(after === '' ? 0 : after);
      const page = events.slice(from, from + 3);
      const end = from + page.length;
      return { events: page, position: String(end), complete: end === events.length };
    },
  };
  const write: Apply = async (tx, page) => {
    for (const event of page) await sql`insert into effects (event) values (${event})`.execute(tx);
    return page.length;
  };
  const consumption = (change: Partial<Consumption<Empty, number>> = {}): Consumption<Empty, number> => ({
    source: 'numbers',
    db,
    log: producer,
    apply: write,
    onApplied: () => undefined,
    ...change,
  });
  const start = (change: Partial<Consumption<Empty, number>> = {}) => {
    const consumer = startConsumer(consumption(change), {
      bus: { subscribe: () => () => undefined },
      subject: 'numbers',
      log: runtime.log,
      meanwhile: 'sums are old',
      onFailed: () => {
        failures += 1;
      },
      pollMs: 2,
    });
    consumers.push(consumer);
    return consumer;
  };
  const effects = async () => {
    const { rows } = await sql<{ event: number }>`select event from effects order by place`.execute(db.read);
    return rows.map(({ event }) => event);
  };
  const append = (count: number) => {
    for (let added = 0; added < count; added += 1) events.push(events.length);
  };
  const logged = (level: string) =>
    runtime.lines.filter((line) => line['level'] === level).map((line) => line['msg']);
  const isUpToDate = async () => (await effects()).length === events.length;

  it('applies every event in order, page by page', async () => {
    append(8);
    start();
    await waitFor(isUpToDate);
    append(4);
    await waitFor(isUpToDate);
    expect(await effects()).toEqual(events);
    expect(await findPosition(db.read, 'numbers')).toBe('12');
  });

  it('counts the effects of a page once it is committed', async () => {
    append(5);
    const counts: number[] = [];
    const counting = consumption({ onApplied: (count) => counts.push(count) });
    expect(await consumePage(counting, never)).toBe(false);
    expect(await consumePage(counting, never)).toBe(true);
    expect(await consumePage(counting, never)).toBe(true);
    expect(counts).toEqual([3, 2]);
  });

  it('a restart neither loses nor repeats an event', async () => {
    append(4);
    const before = start();
    await waitFor(isUpToDate);
    await before.stop();
    append(4);
    const again = await open();
    start({ db: again });
    await waitFor(isUpToDate);
    await Promise.all(consumers.map((consumer) => consumer.stop()));
    await again.close();
    expect(await effects()).toEqual(events);
  });

  it('a crash between the effect and the commit undoes both', async () => {
    append(3);
    const crash: Apply = async (tx, page) => {
      await write(tx, page);
      await sql`select pg_terminate_backend(pg_backend_pid())`.execute(tx);
      return page.length;
    };
    await expect(consumePage(consumption({ apply: crash }), never)).rejects.toThrow();
    expect([await effects(), await findPosition(db.read, 'numbers')]).toEqual([[], '']);
    await consumePage(consumption(), never);
    expect(await effects()).toEqual([0, 1, 2]);
  });

  it('a crash between the read and the transaction leaves the events for the next start', async () => {
    append(3);
    const ending = new AbortController();
    const crash: EventSource<number> = {
      read: async (after, signal) => {
        const page = await producer.read(after, signal);
        ending.abort();
        signal.throwIfAborted();
        return page;
      },
    };
    await expect(consumePage(consumption({ log: crash }), ending.signal)).rejects.toThrow();
    expect(await findPosition(db.read, 'numbers')).toBe('');
    start();
    await waitFor(isUpToDate);
    expect(await effects()).toEqual(events);
  });

  it('of two replicas that read one page, one applies it', async () => {
    append(3);
    const page = await producer.read('', never);
    const both = Promise.withResolvers<typeof page>();
    let readers = 0;
    const together: EventSource<number> = {
      read: () => {
        readers += 1;
        if (readers === 2) both.resolve(page);
        return both.promise;
      },
    };
    const counts: number[] = [];
    const one = consumption({ log: together, onApplied: (count) => counts.push(count) });
    await Promise.all([consumePage(one, never), consumePage(one, never)]);
    expect(counts.toSorted()).toEqual([0, 3]);
    expect(await effects()).toEqual(events);
  });

  it('several replicas, every third transaction of which fails, apply each event once, in order', async () => {
    let attempt = 0;
    const faltering: Apply = async (tx: Transactor<Empty>, page) => {
      attempt += 1;
      await write(tx, page);
      if (attempt % 3 === 0) throw new AppError('unavailable', 'DATABASE_UNAVAILABLE', 'no answer');
      return page.length;
    };
    const replicas = await Promise.all([open(), open(), open()]);
    for (const replica of replicas) start({ db: replica, apply: faltering });
    for (let round = 1; round <= 20; round += 1) {
      append(round % 5);
      await waitFor(isUpToDate);
    }
    await Promise.all(consumers.map((consumer) => consumer.stop()));
    await Promise.all(replicas.map((replica) => replica.close()));
    expect(await effects()).toEqual(events);
    expect(failures).toBeGreaterThan(0);
  });

  it('an event that cannot be applied blocks those behind it and is reported, until it can be', async () => {
    append(7);
    let isReadable = false;
    const strict: Apply = async (tx, page) => {
      if (page.includes(4) && !isReadable) throw new AppError('internal', 'EVENT_UNREADABLE', 'event 4');
      return await write(tx, page);
    };
    start({ apply: strict });
    await waitFor(() => failures > 3);
    expect(await effects()).toEqual([0, 1, 2]);
    expect(await findPosition(db.read, 'numbers')).toBe('3');
    const blocked = 'the numbers events cannot be consumed; the consumer retries at the same event';
    expect(logged('error')).toEqual([blocked]);
    isReadable = true;
    await waitFor(isUpToDate);
    await waitFor(() => logged('info').includes('the numbers events are consumed again'));
    expect(await effects()).toEqual(events);
  });

  it('an event that cannot be read is reported also when it follows an outage', async () => {
    append(1);
    let fault = new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'no answer');
    start({ log: { read: () => Promise.reject(fault) } });
    await waitFor(() => failures > 1);
    fault = new AppError('internal', 'EVENT_UNREADABLE', 'no cursor');
    await waitFor(() => logged('error').length > 0);
    expect(logged('info')).toEqual(['the numbers events cannot be consumed now; sums are old']);
  });

  it('moves past a page whose events the producer leaves out', async () => {
    append(2);
    const sparse: EventSource<number> = {
      read: async (after, signal) =>
        after === '' ? { events: [], position: '1', complete: false } : await producer.read(after, signal),
    };
    start({ log: sparse });
    await waitFor(async () => (await effects()).length === 1);
    expect(await effects()).toEqual([1]);
  });

  it('does not read again at once when a page makes no progress', async () => {
    const stuck: EventSource<number> = {
      read: async (position) => ({ events: [], position, complete: false }),
    };
    expect(await consumePage(consumption({ log: stuck }), never)).toBe(true);
  });
});
