import { expect, it } from 'vitest';
import { type Migration, openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import type { RegisterSchema } from '../schema.ts';
import { migrations } from './list.ts';

const insertRegister = `insert into registers (register_id, network_id, title, purpose, status, dev_mode, advertise, metadata,
  policy, policy_version, genesis_transaction_id, system_public_key, system_algorithm, created_at, updated_at)
  values ($1, 'n', 't', 'General', 'Online', false, false, '{}', '{}', 1, '', '', '', now(), now())`;
/** Statements of a process that predates the migration. */
const insertRow = `insert into transactions (register_no, docket_number, position, tx_id, type, sender_address,
  created_micros, leaf, payload_hash_form, record, payload)
  values (1, $1, 0, $2, 'Action', 's', 0, '\\x01', 'jcs', '{}', '\\x02')`;
const readLeaf = 'select leaf from transactions where register_no = 1';

it('keeps rows as they are, begins behind the stored dockets, and stops older processes from wrong answers', async () => {
  const url = await testDatabase('values_migration');
  const { log, telemetry } = testRuntime('service-register');
  const open = (list: readonly Migration[]) =>
    openDatabase<RegisterSchema>({ url, schema: 'register', log, telemetry, migrations: list });
  const before = await open(migrations.filter(({ name }) => name < '0011'));
  for (const id of ['a', 'b']) await before.pool.query(insertRegister, [id]);
  await before.pool.query('insert into register_heads (register_no, height) values (1, 5), (2, 0)');
  await before.pool.query(
    'create table transactions_p0 partition of transactions for values from (0) to (10000)',
  );
  await before.pool.query(insertRow, [0, Buffer.alloc(32, 1)]);
  const after = await open(migrations);
  try {
    const rows = await after.pool.query(
      'select docket_number, leaf, payload, instance_id from transaction_rows',
    );
    expect(rows.rows).toEqual([
      { docket_number: 0, leaf: Buffer.from([1]), payload: Buffer.from([2]), instance_id: null },
    ]);
    const cursors = await after.pool.query(
      'select register_no, height, rebuild from register_projections order by 1',
    );
    expect(cursors.rows).toEqual([
      { register_no: 1, height: 5, rebuild: false },
      { register_no: 2, height: 0, rebuild: false },
    ]);
    const refused = { code: '42P01' };
    await expect(before.pool.query(insertRow, [1, Buffer.alloc(32, 2)])).rejects.toMatchObject(refused);
    await expect(before.pool.query(readLeaf)).rejects.toMatchObject(refused);
    await after.pool.query(
      'create table docket_values_p0 partition of docket_values for values from (0) to (10000)',
    );
    await after.pool.query("insert into docket_values values (1, 5, '\\x0100000000')");
    await after.pool.query(
      `insert into transaction_rows (register_no, docket_number, position, tx_id, type, sender_address, created_micros)
        values (1, 5, 0, $1, 'Action', 's', 0)`,
      [Buffer.alloc(32, 3)],
    );
  } finally {
    await before.close();
    await after.close();
  }
});
