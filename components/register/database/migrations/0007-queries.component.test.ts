import { expect, it } from 'vitest';
import { type Migration, openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { testKey } from '../../testing/keys.ts';
import { transaction } from '../../testing/sealed.ts';
import type { RegisterSchema } from '../schema.ts';
import { migrations } from './list.ts';

it('fills the query indexes from existing records', async () => {
  const url = await testDatabase('queries_migration');
  const { log, telemetry } = testRuntime('service-register');
  const open = (list: readonly Migration[]) =>
    openDatabase<RegisterSchema>({ url, schema: 'register', log, telemetry, migrations: list });
  const before = await open(migrations.filter(({ name }) => name < '0007'));
  await before.pool.query(
    'create table transactions_p0 partition of transactions for values from (0) to (10000)',
  );
  for (let docket = 0; docket < 1_100; docket += 1) {
    const recipients = docket % 2 === 0 ? ['w1a', 'w1b', 'w1a', 'x'.repeat(300), 'n\u0000'] : [];
    const record = JSON.stringify({ metadata: { note: '\u0000 "recipients":["w1z"]' }, recipients });
    await before.pool.query(
      `insert into transactions (register_no, docket_number, position, tx_id, type, sender_address, blueprint_id,
        created_micros, leaf, payload_hash_form, record, payload)
       values (1, $1, 0, '', 'Action', 's', $2, 0, '', 'jcs', $3, '')`,
      [docket, docket % 3 === 0 ? 'b'.repeat(300) : 'b', Buffer.from(record)],
    );
  }
  const key = testKey(1);
  const { walletAddress, publicKey, algorithm } = key;
  const publishing = (status: string) =>
    transaction({
      registerId: 'a'.repeat(32),
      key,
      type: 'Participant',
      payload: { participantId: 'p', status, addresses: [{ walletAddress, publicKey, algorithm }] },
    });
  for (const [position, status] of ['Active', 'Deprecated'].entries()) {
    const { record, payload } = publishing(status);
    await before.pool.query(
      `insert into transactions (register_no, docket_number, position, tx_id, type, sender_address, created_micros, leaf,
        payload_hash_form, record, payload) values (2, 0, $1, '', 'Participant', 's', 0, '', 'jcs', $2, $3)`,
      [position, record, payload],
    );
  }
  await before.close();
  const after = await open(migrations);
  try {
    const read = async (text: string) => (await after.pool.query(text)).rows;
    expect(await read('select * from blueprint_counters')).toEqual([
      { register_no: 1, blueprint_id: 'b', transaction_count: 733 },
    ]);
    expect(
      await read('select register_no, address, transaction_count from recipient_counters order by address'),
    ).toEqual([
      { register_no: 1, address: 'w1a', transaction_count: 550 },
      { register_no: 1, address: 'w1b', transaction_count: 550 },
    ]);
    expect(await read('select count(*)::int as n, max(docket_number) from transaction_recipients')).toEqual([
      { n: 1_100, max: 1_098 },
    ]);
    expect(await read('select * from participant_keys')).toEqual([
      {
        register_no: 2,
        address: walletAddress,
        participant_id: 'p',
        public_key: publicKey,
        algorithm,
        status: 'Deprecated',
        encryption_key: null,
        encryption_algorithm: null,
      },
    ]);
  } finally {
    await after.close();
  }
});
