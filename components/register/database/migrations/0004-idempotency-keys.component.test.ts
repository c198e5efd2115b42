import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { manualClock } from '#kit/clock/clock.ts';
import { openDatabase } from '#kit/db/db.ts';
import { createIdempotency } from '#kit/db/idempotency.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { idempotencyKeysMigration } from './0004-idempotency-keys.ts';
import { migrations } from './list.ts';

it('a request repeated across the upgrade gets its first answer', async () => {
  const { log, telemetry } = testRuntime('service-register');
  const clock = manualClock(Date.UTC(2026, 10, 21));
  const url = await testDatabase('register_keys');
  const open = (list: typeof migrations) =>
    openDatabase<Record<never, never>>({ url, schema: 'register', log, telemetry, migrations: list });
  const before = await open(migrations.slice(0, migrations.indexOf(idempotencyKeysMigration)));
  const now = new Date(clock.nowMs());
  // SHA-256 of {"title":"Loans"}, as stored before the migration
  const bodyHash = '5835fc761c041cafe013ffe9382181ec5637349b2ad0e3c322f3fdbd4ef2360b';
  await before.transact((tx) =>
    sql`insert into idempotency_keys (scope, key, body_hash, claimed_at, status, body) values
      ('initiate:anna "ä"', 'done', ${bodyHash}, ${now}, 201, '{"registerId":"r"}'),
      ('initiate:anna "ä"', 'running', ${bodyHash}, ${now}, null, null)`.execute(tx),
  );
  await before.close();
  const database = await open(migrations);
  const { once } = createIdempotency({ database, clock, log });
  const run = (key: string, body: unknown) =>
    once({ key, scope: ['initiate:anna "ä"'], body }, async () => ({ status: 201, body: 'anew' }));
  expect(await run('done', { title: 'Loans' })).toEqual({ status: 201, body: { registerId: 'r' } });
  await expect(run('done', { title: 'Others' })).rejects.toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
  await expect(run('running', { title: 'Loans' })).rejects.toMatchObject({ code: 'IDEMPOTENCY_IN_PROGRESS' });
  expect(await run('other', { title: 'Loans' })).toEqual({ status: 201, body: 'anew' });
  await database.close();
});
