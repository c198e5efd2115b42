import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { sha256 } from '#core/crypto/hash.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { openDatabase } from '#kit/db/db.ts';
import { claimKey } from '#kit/db/idempotency.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { idempotencyKeys } from './0004-idempotency-keys.ts';
import { migrations } from './list.ts';

test('an Idempotency-Key stored before the upgrade still gives its wallet', async () => {
  const { log, telemetry } = testRuntime('service-wallet');
  const nowMs = Date.UTC(2026, 10, 21);
  const url = await testDatabase('wallet_keys');
  const open = (list: typeof migrations) =>
    openDatabase<Record<never, never>>({ url, schema: 'wallet', log, telemetry, migrations: list });
  const before = await open(migrations.slice(0, migrations.indexOf(idempotencyKeys)));
  const body = { a: 'one', b: 2 };
  await before.transact((tx) =>
    sql`INSERT INTO idempotency_keys (owner, key, body_hash, resource_id, created_at) VALUES
      ('anna "ä" wallets', 'k', ${Buffer.from(sha256(canonicalBytes(body)))}, 'w-1', ${new Date(nowMs)})`.execute(
      tx,
    ),
  );
  await before.close();
  const database = await open(migrations);
  const claim = (body: object, scope: string) =>
    database.transact((tx) => claimKey(tx, { key: 'k', scope: [scope], body }, { answer: 'w-2', nowMs }));
  expect(await claim(body, 'anna "ä" wallets')).toBe('w-1');
  await expect(claim({ ...body, b: 3 }, 'anna "ä" wallets')).rejects.toMatchObject({
    code: 'IDEMPOTENCY_KEY_REUSED',
  });
  expect(await claim(body, 'berta wallets')).toBeUndefined();
  await database.close();
});
