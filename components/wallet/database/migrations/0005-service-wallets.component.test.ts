import { sql } from 'kysely';
import { expect, test } from 'vitest';
import type { Migration } from '#kit/db/db.ts';
import { openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { serviceWallets } from './0005-service-wallets.ts';
import { migrations } from './list.ts';

test('existing wallets are unchanged, and only a Service wallet may have a name', async () => {
  const { log, telemetry } = testRuntime('service-wallet');
  const url = await testDatabase('wallet_services_upgrade');
  const open = (list: readonly Migration[]) =>
    openDatabase<Record<never, never>>({ url, schema: 'wallet', log, telemetry, migrations: [...list] });
  const before = await open(migrations.slice(0, migrations.indexOf(serviceWallets)));
  await before.transact((tx) =>
    sql`INSERT INTO wallets (id, address, kind, owner_user_id, title, key_type, slot, public_key, status, created_by,
      created_at) VALUES (gen_random_uuid(), 'w-old', 'User', 'anna', 'Mine', 'ED25519', 0, 'k', 'Active', 'anna', now())`.execute(
      tx,
    ),
  );
  await before.close();
  const after = await open(migrations);
  try {
    const insert = (address: string, kind: string, service: string | null, name: string | null) =>
      after.transact((tx) =>
        sql`INSERT INTO wallets (id, address, kind, owner_service, service_name, title, key_type, slot, public_key, status,
          created_by, created_at) VALUES (gen_random_uuid(), ${address}, ${kind}, ${service}, ${name}, 'x', 'ED25519', 0,
          'k', 'Active', 'x', now())`.execute(tx),
      );
    await insert('w-1', 'Service', 'service-a', 'main');
    await insert('w-2', 'Service', 'service-b', 'main');
    await expect(insert('w-3', 'Service', 'service-a', 'main')).rejects.toMatchObject({
      constraint: 'wallets_one_of_service_name',
    });
    await expect(insert('w-4', 'Service', null, null)).rejects.toMatchObject({ code: '23514' });
    const { rows } = await after.transact((tx) =>
      sql<{ address: string; kind: string }>`SELECT address, kind FROM wallets ORDER BY address`.execute(tx),
    );
    expect(rows).toEqual([
      { address: 'w-1', kind: 'Service' },
      { address: 'w-2', kind: 'Service' },
      { address: 'w-old', kind: 'User' },
    ]);
  } finally {
    await after.close();
  }
});
