import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { type Database, type Migration, openDatabase } from './db.ts';
import { claimKey, createIdempotency, findAnswer, idempotencyMigration } from './idempotency.ts';

type Empty = Record<never, never>;

const hourMs = 3_600_000;

describe('repeatable requests', () => {
  const runtime = testRuntime('service-once');
  const clock = manualClock(Date.UTC(2026, 10, 21));
  let url = '';
  let db: Database<Empty>;
  const open = (migrations: readonly Migration[]) =>
    openDatabase<Empty>({ url, schema: 'once', log: runtime.log, telemetry: runtime.telemetry, migrations });

  beforeEach(async () => {
    url = await testDatabase('once');
    db = await open([idempotencyMigration('0001-keys')]);
  });
  afterEach(() => db.close());

  const run = <T>(
    key: string | undefined,
    body: unknown,
    act: () => Promise<T>,
    kept?: (answer: T) => boolean,
  ) =>
    createIdempotency({ database: db, clock, log: runtime.log }).once(
      { key, scope: ['test'], body },
      act,
      kept,
    );
  const claim = (key: string, body: unknown, answer: string) =>
    db.transact((tx) => claimKey(tx, { key, scope: ['made'], body }, { answer, nowMs: clock.nowMs() }));

  function counted() {
    let calls = 0;
    return async () => {
      calls += 1;
      return { calls };
    };
  }

  it('run each time without a key', async () => {
    const act = counted();
    await run(undefined, 1, act);
    expect(await run(undefined, 1, act)).toEqual({ calls: 2 });
  });

  it('keep an answer for a day', async () => {
    const act = counted();
    expect(await run('a', 1, act)).toEqual({ calls: 1 });
    clock.advance(23 * hourMs);
    expect(await run('a', 1, act)).toEqual({ calls: 1 });
    await expect(run('a', 2, act)).rejects.toMatchObject({
      kind: 'conflict',
      code: 'IDEMPOTENCY_KEY_REUSED',
    });
    clock.advance(hourMs);
    expect(await run('a', 2, act)).toEqual({ calls: 2 });
  });

  it('are kept apart by caller', async () => {
    const act = counted();
    const of = (scope: string[]) =>
      createIdempotency({ database: db, clock, log: runtime.log }).once({ key: 'k', scope, body: 1 }, act);
    await of(['a', 'b']);
    await of(['a b']);
    expect(await of(['a'])).toEqual({ calls: 3 });
  });

  it('keep neither failures nor answers that are declined', async () => {
    const act = counted();
    await run('b', 1, act, () => false);
    expect(await run('b', 1, act, () => true)).toEqual({ calls: 2 });
    const failing = () => Promise.reject(new AppError('unavailable', 'UNAVAILABLE', 'away'));
    await expect(run('c', 1, failing)).rejects.toMatchObject({ kind: 'unavailable' });
    expect(await run('c', 1, counted())).toEqual({ calls: 1 });
  });

  it('are refused while the first runs, and run again when it was abandoned', async () => {
    const gate = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const slow = run('d', 1, async () => {
      begun.resolve();
      await gate.promise;
      return { calls: 100 };
    });
    await begun.promise;
    await expect(run('d', 1, counted())).rejects.toMatchObject({
      code: 'IDEMPOTENCY_IN_PROGRESS',
      retryAfterSeconds: 1,
    });
    await expect(run('d', 2, counted())).rejects.toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
    clock.advance(121_000);
    const act = counted();
    expect(await run('d', 1, act)).toEqual({ calls: 1 });
    gate.resolve();
    expect(await slow).toEqual({ calls: 100 });
    expect(await run('d', 1, act)).toEqual({ calls: 1 });
  });

  it('that run at the same time let one through', async () => {
    const act = counted();
    const both = await Promise.allSettled([run('e', 1, act), run('e', 1, act)]);
    expect(both.filter((one) => one.status === 'fulfilled').length).toBeGreaterThan(0);
    expect(await act()).toEqual({ calls: 2 });
  });

  it('have keys of 1 to 255 printable characters', async () => {
    for (const key of ['', 'x'.repeat(256), 'ä', 'a\tb'])
      await expect(run(key, 1, counted())).rejects.toMatchObject({ kind: 'invalid' });
    expect(await run('"a b"', 1, counted())).toEqual({ calls: 1 });
  });

  it('return the answer of a completed act although it cannot be stored', async () => {
    const kept = createIdempotency({ database: db, clock, log: runtime.log });
    const answer = await kept.once({ key: 'f', scope: [], body: 1 }, async () => {
      await db.transact((tx) => sql`alter table idempotency_keys rename to elsewhere`.execute(tx));
      return 'done';
    });
    expect(answer).toBe('done');
    expect(runtime.lines.at(-1)).toMatchObject({ level: 'warn' });
  });

  it('claim a key together with what is made under it, in one transaction', async () => {
    expect(await claim('g', 1, 'first')).toBeUndefined();
    expect(await claim('g', 1, 'second')).toBe('first');
    await expect(claim('g', 2, 'third')).rejects.toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
    const failed = db.transact(async (tx) => {
      await claimKey(tx, { key: 'h', scope: [], body: 1 }, { answer: 'x', nowMs: clock.nowMs() });
      throw new AppError('conflict', 'CONFLICT', 'rolled back');
    });
    await expect(failed).rejects.toMatchObject({ code: 'CONFLICT' });
    const again = { key: 'h', scope: [], body: 1 };
    expect(await db.transact((tx) => claimKey(tx, again, { answer: 'y', nowMs: 0 }))).toBeUndefined();
    clock.advance(24 * hourMs);
    expect(await claim('g', 2, 'next day')).toBeUndefined();
  });

  it('have an answer that can be found without claiming the key', async () => {
    const find = (key: string, body: unknown) =>
      findAnswer(db.read, { key, scope: ['test'], body }, clock.nowMs());
    expect(await find('found', { a: 1 })).toBeUndefined();
    await run('found', { a: 1 }, counted());
    expect(await find('found', { a: 1 })).toBe('{"calls":1}');
    await expect(find('found', { a: 2 })).rejects.toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
    clock.advance(24 * hourMs);
    expect(await find('found', { a: 1 })).toBeUndefined();
  });

  it('older than a day are deleted', async () => {
    for (const key of ['i', 'j', 'k']) await claim(key, 1, key);
    clock.advance(24 * hourMs);
    await claim('l', 1, 'l');
    const rows = await db.transact((tx) => sql`select 1 from idempotency_keys`.execute(tx));
    expect(rows.rows).toHaveLength(1);
  });

  it('take over the rows of an earlier table', async () => {
    await db.close();
    url = await testDatabase('once_earlier');
    const key = 'm "/\\';
    const earlier: Migration = {
      name: '0001-earlier',
      up: async (old) => {
        await sql`create table idempotency_keys (who text, key text, body text, answer text, at timestamptz,
          primary key (who, key))`.execute(old);
        await sql`create index idempotency_keys_age on idempotency_keys (at)`.execute(old);
        await sql`insert into idempotency_keys values ('test', ${key}, '1', '{"calls":7}',
          ${new Date(clock.nowMs())})`.execute(old);
      },
    };
    await (await open([earlier])).close();
    const rows = sql`select sha256(convert_to('[' || to_json(who) || ',' || to_json(key) || ']', 'UTF8')),
      sha256(convert_to(body, 'UTF8')), answer, at from idempotency_keys`;
    db = await open([earlier, idempotencyMigration('0002-keys', rows)]);
    expect(await run(key, 1, counted())).toEqual({ calls: 7 });
    await expect(run(key, 2, counted())).rejects.toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
  });
});
