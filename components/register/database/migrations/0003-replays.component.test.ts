import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Migration, openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import type { RegisterSchema } from '../schema.ts';
import { migrations } from './list.ts';

const insert = `insert into transaction_ids (register_no, tx_id, docket_number, position, replay_key)
  values (1, $1, 1, $2, $3)`;

describe('0003-replays', () => {
  it('keeps every row of an older database, and compares new ones only', async () => {
    const url = await testDatabase('replays_migration');
    const { log, telemetry } = testRuntime('service-register');
    const open = (list: readonly Migration[]) =>
      openDatabase<RegisterSchema>({ url, schema: 'register', log, telemetry, migrations: list });
    const before = await open(migrations.filter(({ name }) => name < '0003'));
    const rows = Array.from({ length: 100 }, (_, position) => ({ txId: randomBytes(32), position }));
    for (const { txId, position } of rows) {
      await before.pool.query(
        'insert into transaction_ids (register_no, tx_id, docket_number, position) values (1, $1, 0, $2)',
        [txId, position],
      );
    }
    await before.close();

    const after = await open(migrations.filter(({ name }) => name < '0004'));
    try {
      const kept = await after.pool.query('select tx_id, replay_key from transaction_ids order by position');
      expect(kept.rows).toEqual(rows.map(({ txId }) => ({ tx_id: txId, replay_key: null })));
      const key = randomBytes(16);
      await after.pool.query(insert, [randomBytes(32), 0, key]);
      await after.pool.query(insert, [randomBytes(32), 1, null]);
      await after.pool.query(insert, [randomBytes(32), 2, null]);
      await expect(after.pool.query(insert, [randomBytes(32), 3, key])).rejects.toMatchObject({
        code: '23505',
        constraint: 'transaction_ids_replay',
      });
    } finally {
      await after.close();
    }
  });
});
