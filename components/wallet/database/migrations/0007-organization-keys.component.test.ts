import { sql } from 'kysely';
import { expect, test } from 'vitest';
import type { Migration } from '#kit/db/db.ts';
import { openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { organizationKeys } from './0007-organization-keys.ts';
import { migrations } from './list.ts';

test('existing wallets are unchanged; derived keys have two owners and a state; a deleted wallet frees its place', async () => {
  const { log, telemetry } = testRuntime('service-wallet');
  const url = await testDatabase('wallet_org_upgrade');
  const open = (list: readonly Migration[]) =>
    openDatabase<Record<never, never>>({ url, schema: 'wallet', log, telemetry, migrations: [...list] });
  const before = await open(migrations.slice(0, migrations.indexOf(organizationKeys)));
  await before.transact((tx) =>
    sql`INSERT INTO wallets (id, address, kind, owner_user_id, owner_organization_id, title, key_type, slot, public_key,
      status, created_by, created_at) VALUES
      (gen_random_uuid(), 'w-user', 'User', 'anna', null, 'x', 'ED25519', 0, 'k', 'Active', 'anna', now()),
      (gen_random_uuid(), 'w-locked', 'User', 'anna', null, 'x', 'ED25519', 0, 'k', 'Locked', 'anna', now()),
      (gen_random_uuid(), 'w-org', 'Organization', null, 'o', 'x', 'ED25519', 0, 'k', 'Active', 'anna', now())`.execute(
      tx,
    ),
  );
  await before.close();
  const after = await open(migrations);
  try {
    const rows = await after.transact((tx) =>
      sql<{ address: string }>`SELECT address, key_status, locked_at IS NOT NULL AS locked FROM wallets
        ORDER BY address`.execute(tx),
    );
    expect(rows.rows).toEqual([
      { address: 'w-locked', key_status: null, locked: true },
      { address: 'w-org', key_status: null, locked: false },
      { address: 'w-user', key_status: null, locked: false },
    ]);
    const insert = (
      address: string,
      kind: string,
      owners: readonly (string | null)[],
      keyStatus: string | null,
    ) =>
      after.transact((tx) =>
        sql`INSERT INTO wallets (id, address, kind, owner_user_id, owner_organization_id, key_status, title, key_type,
          slot, public_key, status, created_by, created_at) VALUES (gen_random_uuid(), ${address}, ${kind},
          ${owners[0]}, ${owners[1]}, ${keyStatus}, 'x', 'ED25519', 0, 'k', 'Active', 'x', now())`.execute(
          tx,
        ),
      );
    await insert('w-1', 'Derived', ['anna', 'o'], 'Active');
    for (const [kind, owners, keyStatus] of [
      ['Derived', ['anna', null], 'Active'],
      ['Derived', [null, 'o'], 'Active'],
      ['Derived', ['anna', 'o'], null],
      ['User', ['anna', null], 'Active'],
      ['User', ['anna', 'o'], null],
    ] as const) {
      await expect(insert('w-2', kind, owners, keyStatus)).rejects.toMatchObject({ code: '23514' });
    }
    const another = () => insert('w-3', 'Organization', [null, 'o'], null);
    await expect(another()).rejects.toMatchObject({ constraint: 'wallets_one_of_organization' });
    await after.transact((tx) =>
      sql`UPDATE wallets SET status = 'Deleted' WHERE address = 'w-org'`.execute(tx),
    );
    await another();
  } finally {
    await after.close();
  }
});
