import { expect, it } from 'vitest';
import { type Migration, openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import type { RegisterSchema } from '../schema.ts';
import { migrations } from './list.ts';

it('leaves older ids without a type, and an older service can still store its ids', async () => {
  const url = await testDatabase('types_migration');
  const { log, telemetry } = testRuntime('service-register');
  const open = (list: readonly Migration[]) =>
    openDatabase<RegisterSchema>({ url, schema: 'register', log, telemetry, migrations: list });
  const before = await open(migrations.filter(({ name }) => name < '0010'));
  const insert = (database: typeof before, docket: number) =>
    database.pool.query(
      `insert into transaction_ids (register_no, segment, tx_id, docket_number, position)
      values (1, 0, $1, $2, 0)`,
      [Buffer.alloc(32, docket), docket],
    );
  await insert(before, 1);
  const after = await open(migrations);
  try {
    await insert(before, 2);
    await after.pool.query(
      `insert into transaction_ids (register_no, segment, tx_id, docket_number, position, type)
      values (1, 0, $1, 3, 0, 'Action')`,
      [Buffer.alloc(32, 3)],
    );
    const { rows } = await after.pool.query(
      'select docket_number::int, type from transaction_ids order by 1',
    );
    expect(rows).toEqual([
      { docket_number: 1, type: null },
      { docket_number: 2, type: null },
      { docket_number: 3, type: 'Action' },
    ]);
  } finally {
    await before.close();
    await after.close();
  }
});
