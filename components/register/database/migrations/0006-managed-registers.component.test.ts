import { expect, it } from 'vitest';
import { type Migration, openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import type { RegisterSchema } from '../schema.ts';
import { migrations } from './list.ts';

it('keeps the registers of an older database, deleted ones as tombstones', async () => {
  const url = await testDatabase('managed_migration');
  const { log, telemetry } = testRuntime('service-register');
  const open = (list: readonly Migration[]) =>
    openDatabase<RegisterSchema>({ url, schema: 'register', log, telemetry, migrations: list });
  const before = await open(migrations.filter(({ name }) => name < '0006'));
  for (const [id, deletedAt] of [
    ['aa', null],
    ['bb', '2026-11-01T00:00:00Z'],
  ]) {
    await before.pool.query(
      `insert into registers (register_id, network_id, title, purpose, status, dev_mode, advertise, metadata, policy,
        policy_version, genesis_transaction_id, system_public_key, system_algorithm, created_at, updated_at, deleted_at)
      values ($1, 'test', 'Old', 'General', 'Online', false, false, '{}', '{}', 1, 'x', 'k', 'ED25519', now(), now(), $2)`,
      [id, deletedAt],
    );
  }
  await before.close();
  const after = await open(migrations);
  try {
    const { rows } = await after.pool.query(
      'select register_id, deleted_at is not null as deleted, deletion_policy, purge_after from registers order by 1',
    );
    expect(rows).toEqual([
      { register_id: 'aa', deleted: false, deletion_policy: null, purge_after: null },
      { register_id: 'bb', deleted: true, deletion_policy: null, purge_after: null },
    ]);
    const bind = (uid: string) =>
      after.pool.query(
        `insert into managed_registers (uid, register_id, organization_id, purpose, created_at)
        values ($1, 'aa', 'o', 'General', now())`,
        [uid],
      );
    await bind('00000000-0000-4000-8000-000000000001');
    await expect(bind('00000000-0000-4000-8000-000000000002')).rejects.toMatchObject({
      constraint: 'managed_registers_bound',
    });
  } finally {
    await after.close();
  }
});
