import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { authPlugin } from '#kit/auth/auth.ts';
import { type Database, openDatabase } from '#kit/db/db.ts';
import { appendEvent, outboxMigration } from '#kit/db/outbox.ts';
import { createHttpServer, listenHttp } from '#kit/http/http.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { callerOf, connectClient, path } from './hub.fixture.ts';
import { type Hub, hubsMigration, mountHub, openHub } from './hub.ts';

type Empty = Record<never, never>;

describe('a hub that follows an outbox', () => {
  let db: Database<Empty>;
  let hub: Hub;
  let url: string;
  let close: () => Promise<unknown>;
  const wakes = new Set<() => void>();

  beforeEach(async () => {
    const runtime = testRuntime('rooms');
    const { log, telemetry } = runtime;
    const migrations = [outboxMigration('0001-outbox'), hubsMigration('0002-hubs')];
    db = await openDatabase<Empty>({
      url: await testDatabase('kit_hub'),
      schema: 'rooms',
      log,
      telemetry,
      migrations,
    });
    hub = await openHub(
      {
        path,
        subscriptions: [
          {
            subscribe: 'Enter',
            unsubscribe: 'Leave',
            groupOf: (name) => `room:${name}`,
            authorityOf: ({ subject }) => subject,
            judge: async () => undefined,
          },
        ],
        log: {
          db: db.read,
          subject: 'rooms',
          signalsOf: async (events) =>
            events.map(({ kind, key, data }) => ({
              target: kind,
              arguments: [key, Number(data)],
              groups: [`room:${key}`],
            })),
          filterOf: (group) => ({ key: group.replace('room:', ''), kinds: ['Said'] }),
        },
      },
      {
        runtime,
        bus: {
          subscribe: (_subject, wake) => {
            wakes.add(wake);
            return () => wakes.delete(wake);
          },
        },
        authenticator: { assertCurrent: () => undefined },
      },
    );
    const app = createHttpServer({ runtime, title: 'rooms' });
    authPlugin(app, { authenticate: async (token) => callerOf(token) });
    mountHub(app, path, () => hub);
    url = `http://127.0.0.1:${await listenHttp(app, { host: '127.0.0.1', port: 0 })}${path}`;
    close = async () => {
      await hub.stop();
      await app.close();
      await db.close();
    };
  });
  afterEach(() => close());

  const say = async (key: string, n: number, kind = 'Said') => {
    await db.transact(async (tx) => {
      await appendEvent(tx, { kind, key, data: n });
      // Transactions overlap, and commit in another order than they began.
      if (n % 3 === 0) await sql`select pg_sleep(0.01)`.execute(tx);
    });
    for (const wake of wakes) wake();
  };

  it('has no gap between a replay and what follows, whenever a client subscribes', async () => {
    const since = new Date(Date.now() - 5_000).toISOString();
    let next = 0;
    let isWriting = true;
    const write = async (): Promise<void> => {
      while (isWriting) await say('b', next++);
    };
    const writers = [write(), write(), write()];
    const clients = [];
    for (const token of ['ada', 'bob', 'cid', 'dan', 'eve']) {
      await waitFor(() => next > 40 * clients.length);
      const client = await connectClient(url, { token });
      await client.connection.invoke('Enter', 'b', since);
      clients.push(client);
    }
    isWriting = false;
    await Promise.all(writers);
    const { rows } = await sql<{ n: number }>`
      select data::int as n from outbox order by transaction_id, sequence`.execute(db.read);
    const order = rows.map(({ n }) => n);
    for (const { said } of clients) {
      await waitFor(() => new Set(said.map(([, n]) => n)).size === order.length);
      expect([...new Set(said.map(([, n]) => n))]).toEqual(order);
    }
  });

  it('replays the rows of a group alone', async () => {
    await say('b', 1);
    await say('c', 2);
    await say('b', 3, 'Whispered');
    await say('b', 4);
    await db.pool.query(`insert into outbox (kind, key, data, created_at)
      values ('Said', 'b', '5', now() - interval '2 minutes')`);
    const { connection, said } = await connectClient(url);
    const enter = async () => {
      said.length = 0;
      await connection.invoke('Enter', 'b', new Date(Date.now() - 60_000).toISOString());
      return said.length >= 2;
    };
    // Until the hub has read so far, it would take the rows below for new ones.
    await waitFor(enter);
    // A day of other rows is before what the replay reads.
    await db.pool.query(`insert into outbox (transaction_id, kind, key, data, created_at)
      select n::text::xid8, 'Said', 'b', '0', now() - interval '1 day' from generate_series(3, 300) as n`);
    await waitFor(enter);
    expect(said).toEqual([
      ['b', 1],
      ['b', 4],
    ]);
  });
});
