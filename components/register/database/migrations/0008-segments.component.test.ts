import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { type Migration, openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { anyKeyIn } from '../../ledger/segments/store.ts';
import type { RegisterSchema } from '../schema.ts';
import { migrations } from './list.ts';

const insertRegister = `insert into registers (register_id, network_id, title, purpose, status, dev_mode, advertise, metadata,
  policy, policy_version, genesis_transaction_id, system_public_key, system_algorithm, created_at, updated_at)
  values ('r', 'n', 't', 'General', 'Online', false, false, '{}', '{}', 1, '', '', '', now(), now())`;
/** The statement of a process that predates the migration. */
const insertId = `insert into transaction_ids (register_no, tx_id, docket_number, position, replay_key)
  values (1, $1, 0, $2, $3)`;
const insertSuccessor =
  'insert into transaction_successors (register_no, previous_tx_id, tx_id) values (1, $1, $2)';

const insertTransaction = `insert into transactions (register_no, docket_number, position, tx_id, type, sender_address,
  created_micros, leaf, payload_hash_form, record, payload)
  values (1, 0, $1, '', 'Action', $2, 0, '', 'jcs', '{}', '')`;
const insertRecipient = "insert into transaction_recipients values (1, 'a', 0, $1)";

it('makes existing rows the first segment, and prevents writes of older processes', async () => {
  const url = await testDatabase('segments_migration');
  const { log, telemetry } = testRuntime('service-register');
  const open = (list: readonly Migration[]) =>
    openDatabase<RegisterSchema>({ url, schema: 'register', log, telemetry, migrations: list });
  const before = await open(migrations.filter(({ name }) => name < '0008'));
  await before.pool.query(insertRegister);
  await before.pool.query(
    'insert into register_heads (register_no, height, transaction_count) values (1, 5, 100)',
  );
  const rows = Array.from({ length: 100 }, () => ({ id: randomBytes(32), replay: randomBytes(16) }));
  for (const [position, { id, replay }] of rows.entries()) {
    await before.pool.query(insertId, [id, position, replay]);
    await before.pool.query(insertSuccessor, [id, randomBytes(32)]);
  }
  await before.pool.query(
    'create table transactions_p0 partition of transactions for values from (0) to (10000)',
  );
  for (const [position, sender] of ['a', 'a', 'b'].entries()) {
    await before.pool.query(insertTransaction, [position, sender]);
    await before.pool.query(insertRecipient, [position]);
  }
  await before.pool.query("insert into recipient_counters values (1, 'a', 3), (1, 'other', 2)");
  const after = await open(migrations);
  try {
    const head = await after.pool.query('select segment, segment_count from register_heads');
    expect(head.rows).toEqual([{ segment: 0, segment_count: 100 }]);
    const counters = await after.pool.query('select address, sent_count from recipient_counters order by 1');
    expect(counters.rows).toEqual([
      { address: 'a', sent_count: 2 },
      { address: 'other', sent_count: 0 },
    ]);
    const inFirst = (key: Buffer) => [{ key, segments: [0] }];
    for (const { id, replay } of rows) {
      expect(await anyKeyIn(after.read, 1, 'id', inFirst(id))).toBe(true);
      expect(await anyKeyIn(after.read, 1, 'successor', inFirst(id))).toBe(true);
      expect(await anyKeyIn(after.read, 1, 'replay', inFirst(replay))).toBe(true);
    }
    expect(await anyKeyIn(after.read, 1, 'id', inFirst(randomBytes(32)))).toBe(false);
    const refused = { code: '23502', column: 'segment' };
    await expect(before.pool.query(insertId, [randomBytes(32), 0, null])).rejects.toMatchObject(refused);
    await expect(
      before.pool.query(insertSuccessor, [randomBytes(32), randomBytes(32)]),
    ).rejects.toMatchObject(refused);
    const newer = insertId.replace('register_no,', 'register_no, segment,').replace('(1,', '(1, 0,');
    for (const [values, constraint] of [
      [[rows[0]?.id, 0, null], 'transaction_ids_pkey'],
      [[randomBytes(32), 0, rows[0]?.replay], 'transaction_ids_replay'],
    ] as const) {
      await expect(after.pool.query(newer, [...values])).rejects.toMatchObject({ code: '23505', constraint });
    }
  } finally {
    await before.close();
    await after.close();
  }
});
