import { expect, it } from 'vitest';
import { type Migration, openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import type { RegisterSchema } from '../schema.ts';
import { migrations } from './list.ts';

it('gives every installation a key of its own, once, and indexes the events that it has', async () => {
  const { log, telemetry } = testRuntime('service-register');
  const open = (url: string, list: readonly Migration[]) =>
    openDatabase<RegisterSchema>({ url, schema: 'register', log, telemetry, migrations: list });
  const keyOf = async (url: string): Promise<Buffer> => {
    const before = await open(
      url,
      migrations.filter(({ name }) => name < '0012'),
    );
    await before.pool.query(`insert into outbox (kind, key, data) values ('DocketSealed', 'k', '{}')`);
    await before.close();
    const after = await open(url, migrations);
    const { rows } = await after.pool.query('select key from hub_keys');
    await after.close();
    expect(rows).toHaveLength(1);
    return rows[0].key;
  };
  const urls = [await testDatabase('hubs_one'), await testDatabase('hubs_two')];
  const [one, two] = [await keyOf(urls[0] ?? ''), await keyOf(urls[1] ?? '')];
  expect(one).toHaveLength(32);
  expect(one.equals(two)).toBe(false);
  const again = await open(urls[0] ?? '', migrations);
  expect((await again.pool.query('select key from hub_keys')).rows[0].key.equals(one)).toBe(true);
  await again.close();
});
