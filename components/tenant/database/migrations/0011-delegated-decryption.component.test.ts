import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { delegatedDecryption } from './0011-delegated-decryption.ts';
import { migrations } from './list.ts';

it('the existing principal of the blueprint service gets the scope once, others do not', async () => {
  const { log, telemetry } = testRuntime('tenant');
  const url = await testDatabase('tenant_delegated');
  const open = (list: typeof migrations) =>
    openDatabase<Record<never, never>>({ url, schema: 'tenant', log, telemetry, migrations: list });
  const before = await open(migrations.slice(0, migrations.indexOf(delegatedDecryption)));
  await before.transact((tx) =>
    sql`INSERT INTO service_principals (id, client_id, service_name, scopes, status, created_at) VALUES
      (gen_random_uuid(), 'service-blueprint', 'blueprint', '{wallets:sign}', 'Active', now()),
      (gen_random_uuid(), 'service-register', 'register', '{wallets:sign}', 'Active', now())`.execute(tx),
  );
  await before.close();
  for (const _ of ['upgrade', 'next start']) {
    const after = await open(migrations);
    const principals = await sql`SELECT client_id, scopes FROM service_principals ORDER BY client_id`.execute(
      after.read,
    );
    expect(principals.rows).toEqual([
      { client_id: 'service-blueprint', scopes: ['wallets:sign', 'wallets:decrypt'] },
      { client_id: 'service-register', scopes: ['wallets:sign'] },
    ]);
    await after.close();
  }
});
