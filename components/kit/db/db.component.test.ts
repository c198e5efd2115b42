import { type Generated, sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest';
import { isAppError } from '#core/errors/errors.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import {
  type Database,
  isUniqueViolation,
  type Migration,
  migrationOf,
  openDatabase,
  type Reader,
  sqlState,
  type Transactor,
} from './db.ts';

interface Schema {
  account: { id: number; balance: number; big: Generated<number | bigint>; bytes: Buffer | null };
}

const accounts: Migration = {
  name: '0001-account',
  up: async (db) => {
    await sql`create table account (
      id integer primary key, balance integer not null, big bigint not null default 0, bytes bytea)`.execute(
      db,
    );
  },
};

function open<DB>(url: string, migrations: readonly Migration[], schema = 'books') {
  const runtime = testRuntime('service-test');
  const { log, telemetry } = runtime;
  return openDatabase<DB>({ url, schema, log, telemetry, migrations, maxConnections: 4 });
}

describe('openDatabase', () => {
  it('creates the schema once when several processes start together', async () => {
    const url = await testDatabase('db-open');
    const ran: string[] = [];
    const counting: Migration = {
      name: '0002-counting',
      up: async (db) => {
        ran.push('0002');
        await sql`create table counting (n integer)`.execute(db);
      },
    };
    const databases = await Promise.all([1, 2, 3].map(() => open<Schema>(url, [accounts, counting])));
    expect(ran).toEqual(['0002']);
    const [first] = databases;
    const { rows } = await sql<{ path: string }>`select current_setting('search_path') as path`.execute(
      (first as Database<Schema>).read,
    );
    expect(rows).toEqual([{ path: 'books' }]);
    await Promise.all(databases.map((database) => database.close()));
  });

  it('plans a statement for the present size of its tables, however often it ran when they were small', async () => {
    const database = await open<Schema>(await testDatabase('db-plans'), [accounts]);
    for (let id = 0; id < 10; id += 1) {
      await database.read.selectFrom('account').select('id').where('id', '=', id).execute();
    }
    const { rows } = await sql<{ custom: number; generic: number }>`
      select sum(custom_plans)::int as custom, sum(generic_plans)::int as generic from pg_prepared_statements
      where statement like '%"account"%'`.execute(database.read);
    expect(rows).toEqual([{ custom: 10, generic: 0 }]);
    await database.close();
  });

  it('continues from where an earlier release stopped', async () => {
    const url = await testDatabase('db-forward');
    await (await open(url, [accounts])).close();
    const second: Migration = {
      name: '0002-more',
      up: async (db) => {
        await sql`alter table account add column note text`.execute(db);
      },
    };
    const db = await open(url, [accounts, second]);
    const { rows } = await sql`select name from migrations order by name`.execute(db.read);
    expect(rows).toEqual([{ name: '0001-account' }, { name: '0002-more' }]);
    await db.close();
  });

  it('migrates in a process of its own, concurrently with starting processes, and lists what it applied', async () => {
    const url = await testDatabase('db-job');
    const { log } = testRuntime('service-test');
    const migrate = migrationOf('books', [accounts]);
    const [applied, twin, db] = await Promise.all([
      migrate({ url, log }),
      migrate({ url, log }),
      open(url, [accounts]),
    ]);
    expect([...applied, ...twin].length).toBeLessThanOrEqual(1);
    expect(await migrate({ url, log })).toEqual([]);
    await db.close();
    await expect(migrationOf('books', [])({ url, log })).rejects.toThrow('this release expects none');
  });

  it('leaves nothing behind when a migration fails', async () => {
    const url = await testDatabase('db-fail');
    const broken: Migration = {
      name: '0002-broken',
      up: async (db) => {
        await sql`create table half (n integer)`.execute(db);
        await sql`select nothing from nowhere`.execute(db);
      },
    };
    await expect(open(url, [accounts, broken])).rejects.toThrow('nowhere');
    const db = await open(url, [accounts]);
    const { rows } = await sql`select to_regclass('books.half')::text as half`.execute(db.read);
    expect(rows).toEqual([{ half: null }]);
    await db.close();
  });

  it('refuses a schema of a newer release, names out of order and a bad schema name', async () => {
    const url = await testDatabase('db-newer');
    await (await open(url, [accounts])).close();
    await expect(open(url, [])).rejects.toThrow('0001-account');
    await expect(open(url, [{ ...accounts, name: '0002' }, accounts])).rejects.toThrow('must come after');
    await expect(open(url, [], 'Books; drop')).rejects.toThrow('not a schema name');
    await expect(open(`${url}&options=-c%20x%3D1`, [])).rejects.toThrow('search path');
  });

  it('reports unavailable while PostgreSQL is away', async () => {
    const thrown = await open('postgres://u@127.0.0.1:1/none', []).catch((error: unknown) => error);
    expect(isAppError(thrown, 'unavailable')).toBe(true);
  });
});

describe('Database', () => {
  let db: Database<Schema>;
  beforeAll(async () => {
    db = await open<Schema>(await testDatabase('db-use'), [accounts]);
  });
  afterAll(() => db.close());

  it('gives int8 as numbers while they are safe, as bigint beyond, and bytea as bytes', async () => {
    await db.transact(async (tx) => {
      await tx
        .insertInto('account')
        .values([
          { id: 1, balance: 0, big: 9_007_199_254_740_991, bytes: Buffer.from([0, 255]) },
          { id: 2, balance: 0, big: 9_223_372_036_854_775_807n, bytes: null },
        ])
        .execute();
    });
    const rows = await db.read.selectFrom('account').select(['big', 'bytes']).orderBy('id').execute();
    expect(rows).toEqual([
      { big: 9_007_199_254_740_991, bytes: Buffer.from([0, 255]) },
      { big: 9_223_372_036_854_775_807n, bytes: null },
    ]);
  });

  it('rolls back what a failed transaction wrote', async () => {
    const failing = db.transact(async (tx) => {
      await tx.insertInto('account').values({ id: 100, balance: 0, bytes: null }).execute();
      throw new Error('changed my mind');
    });
    await expect(failing).rejects.toThrow('changed my mind');
    expect(await db.read.selectFrom('account').select('id').where('id', '=', 100).execute()).toEqual([]);
  });

  it('recognises unique violations', async () => {
    const insert = () =>
      db.transact((tx) => tx.insertInto('account').values({ id: 50, balance: 0, bytes: null }).execute());
    await insert();
    const thrown = await insert().catch((error: unknown) => error);
    expect([sqlState(thrown), isUniqueViolation(thrown), isUniqueViolation(thrown, 'account_pkey')]).toEqual([
      '23505',
      true,
      true,
    ]);
    expect(isUniqueViolation(thrown, 'other')).toBe(false);
  });

  it('retries after a serialization failure, so that neither update is lost', async () => {
    await db.transact((tx) => tx.insertInto('account').values({ id: 10, balance: 0, bytes: null }).execute());
    let runs = 0;
    const bothHaveRead = barrier(2);
    const addOne = () =>
      db.transact(
        async (tx) => {
          runs += 1;
          const { balance } = await tx
            .selectFrom('account')
            .select('balance')
            .where('id', '=', 10)
            .executeTakeFirstOrThrow();
          await bothHaveRead();
          await tx
            .updateTable('account')
            .set({ balance: balance + 1 })
            .where('id', '=', 10)
            .execute();
        },
        { isolation: 'serializable' },
      );
    await Promise.all([addOne(), addOne()]);
    const { balance } = await db.read
      .selectFrom('account')
      .select('balance')
      .where('id', '=', 10)
      .executeTakeFirstOrThrow();
    expect([balance, runs]).toEqual([2, 3]);
  });

  it('gives up after the allowed number of retries', async () => {
    let runs = 0;
    const always = db.transact(
      async (tx) => {
        runs += 1;
        await sql`do $$ begin raise exception 'again' using errcode = '40001'; end $$`.execute(tx);
      },
      { retries: 2 },
    );
    await expect(always).rejects.toThrow('again');
    expect(runs).toBe(3);
  });

  it('survives PostgreSQL ending its idle connections', async () => {
    await db.ping();
    const { rows } = await db.pool.query('select pg_backend_pid() as pid');
    const other = await open(await testDatabase('db-killer'), []);
    await sql`select pg_terminate_backend(${rows[0].pid})`.execute(other.read);
    await other.close();
    await waitFor(() => db.ping().then(() => true), { what: 'the pool to reconnect' });
  });

  it('reports unavailable for a transaction whose connection is cut, and serves the next', async () => {
    const cut = db.transact(async (tx) => {
      await sql`select pg_terminate_backend(pg_backend_pid())`.execute(tx);
    });
    await expect(cut).rejects.toMatchObject({ kind: 'unavailable', retryAfterSeconds: 1 });
    await db.transact((tx) => sql`select 1`.execute(tx));
  });

  it('survives the loss of connections in use, from outside, during transactions', async () => {
    const killer = await open(await testDatabase('db-killer'), []);
    const cutOne = async () => {
      const entered = Promise.withResolvers<number>();
      const cut = Promise.withResolvers<void>();
      const done = db.transact(async (tx) => {
        const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx);
        entered.resolve(rows[0]?.pid ?? 0);
        await cut.promise;
        await sql`select 1`.execute(tx);
      });
      await sql`select pg_terminate_backend(${await entered.promise})`.execute(killer.read);
      cut.resolve();
      await expect(done).rejects.toMatchObject({ kind: 'unavailable' });
    };
    await Promise.all([cutOne(), cutOne(), cutOne()]);
    await db.transact((tx) => sql`select 1`.execute(tx));
    await killer.close();
  });

  it('reports unavailable for a read whose connection is cut', async () => {
    const read = sql`select pg_terminate_backend(pg_backend_pid())`.execute(db.read);
    await expect(read).rejects.toMatchObject({ kind: 'unavailable' });
    await db.ping();
  });

  it('counts statements by outcome', async () => {
    const runtime = testRuntime('service-counted');
    const counted = await openDatabase({
      url: await testDatabase('db-metrics'),
      schema: 'counted',
      log: runtime.log,
      telemetry: runtime.telemetry,
      migrations: [],
    });
    await counted.ping();
    await sql`select nothing`.execute(counted.read).catch(() => undefined);
    await counted.close();
    const text = await runtime.telemetry.registry.metrics();
    expect(text).toContain('chancery_counted_sql_query_seconds_count{outcome="ok"} 1');
    expect(text).toContain('chancery_counted_sql_query_seconds_count{outcome="error"} 1');
  });

  it('does not let a reader write', () => {
    expectTypeOf<Reader<Schema>>().not.toHaveProperty('insertInto');
    expectTypeOf<Transactor<Schema>>().toExtend<Reader<Schema>>();
    expectTypeOf<Reader<Schema>>().not.toExtend<Transactor<Schema>>();
  });
});

/** A barrier that opens when `count` callers have arrived, and stays open. */
function barrier(count: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let waiting = 0;
  return () => {
    waiting += 1;
    if (waiting >= count) {
      resolve();
    }
    return promise;
  };
}
