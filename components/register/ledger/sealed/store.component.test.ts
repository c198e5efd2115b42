import { Kysely, PostgresDialect } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sha256Hex } from '#core/crypto/hash.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import { createLookup } from '../lookup/store.ts';
import { findLocation, findSealed, type KeyedRegister, sealedFacts } from './store.ts';

const rowsSealed = 4_000;

let service: TestRegister;
let registerId: string;
let register: KeyedRegister;

/** Text of a sealed id; n from 0. */
const idAt = (n: number) => sha256Hex(`sealed ${n}`);

beforeAll(async () => {
  service = await startTestRegister('lookup');
  await service.createRegister();
  registerId = await service.createRegister();
  const { registerNo } = await service.state(registerId);
  register = { registerNo, keySegments: service.ledger.segments.named(registerId) };
  const { pool } = service.database;
  // as autovacuum may see them in the first minute of a register; later it runs again
  await pool.query('analyze');
  await pool.query(
    `with t as (
      insert into transaction_rows (register_no, docket_number, position, tx_id, type, sender_address, created_micros, leaf,
        payload_hash_form, record, payload)
      select $1, 1 + n / 100, n % 100, sha256(convert_to('sealed ' || n, 'UTF8')), 'Action', 's', n, '\\x00', 'jcs',
        convert_to(repeat('r', 700), 'UTF8'), '\\x00'
      from generate_series(0, $2::integer - 1) n returning docket_number, position, tx_id, type)
    insert into transaction_ids (register_no, segment, tx_id, docket_number, position, type, replay_key)
    select $1, 0, tx_id, docket_number, position, case when position % 2 = 0 then type end, substring(tx_id from 1 for 16) from t`,
    [registerNo, rowsSealed],
  );
});
afterAll(() => service.stop());

type Ask = (db: Kysely<RegisterSchema>) => Promise<unknown>;

/** The plans of the queries that `ask` executes. */
async function plansOf(ask: Ask): Promise<string[]> {
  const { pool } = service.database;
  const asked: { readonly sql: string; readonly parameters: readonly unknown[] }[] = [];
  const db = new Kysely<RegisterSchema>({
    dialect: new PostgresDialect({ pool }),
    log: ({ query }) => void asked.push(query),
  });
  await ask(db);
  const plans: string[] = [];
  for (const { sql, parameters } of asked) {
    const { rows } = await pool.query(`explain (analyze) ${sql}`, [...parameters]);
    plans.push(rows.map((row: Record<string, string>) => row['QUERY PLAN']).join('\n'));
  }
  return plans;
}

/** Rows that PostgreSQL reads and discards for a number of queries. */
async function rowsReadInVain(ask: Ask, queries = 1): Promise<number> {
  const plans = await plansOf(ask);
  expect(plans).toHaveLength(queries);
  const removed = plans.flatMap((plan) => [
    ...plan.matchAll(/loops=(\d+)\)\n(?:(?!loops=).*\n)*?.*Removed by (?:Join )?Filter: (\d+)/g),
  ]);
  return removed.reduce((sum, [, loops, count]) => sum + Number(loops) * Number(count), 0);
}

it('a key costs no more than its row while the table statistics are outdated', async () => {
  const questions = Array.from({ length: 32 }, (_, n) => ({
    registerId,
    txId: sha256Hex(`new ${n}`),
    previousTxId: n % 2 === 0 ? '' : idAt(n * 50),
    replayKey: sha256Hex(`new ${n}`).slice(0, 32),
    pin: '',
  }));
  const ids = questions.map((_, n) => idAt(n * 50));
  const { segments } = service.ledger;
  // each question also checks the other register
  const spare = 3 * questions.length;
  expect(await rowsReadInVain((db) => createLookup(db, segments)(questions))).toBeLessThan(spare);
  expect(await rowsReadInVain((db) => sealedFacts(db, register, ids))).toBeLessThan(spare);
  expect(await rowsReadInVain((db) => findSealed(db, register, idAt(7)), 3)).toBeLessThan(spare);
  expect(await rowsReadInVain((db) => findLocation(db, register, idAt(7)))).toBeLessThan(spare);
});

it('returns types from the keys, and from the transactions where keys have none', async () => {
  const ids = [idAt(200), idAt(201)];
  const facts = await sealedFacts(service.database.read, register, ids);
  expect(ids.map((id) => facts.get(id)?.type)).toEqual(['Action', 'Action']);
  const questions = ids.map((previousTxId) => ({
    registerId,
    txId: 'ab'.repeat(32),
    previousTxId,
    replayKey: '',
    pin: '',
  }));
  const answers = await createLookup(service.database.read, service.ledger.segments)(questions);
  expect(answers.map(({ previousType }) => previousType)).toEqual(['Action', 'Action']);
});

it('plans no partition for an unknown id, and those of one docket for a sealed one', async () => {
  const { pool, read } = service.database;
  for (const table of ['transaction_rows', 'docket_values'])
    await pool.query(
      `create table ${table}_next partition of ${table} for values from (1000000) to (2000000)`,
    );
  expect(await findSealed(read, register, idAt(205))).toMatchObject({ docketNumber: 3, position: 5 });
  const found = await plansOf((db) => findSealed(db, register, idAt(205)));
  expect(found.join('\n')).not.toContain('_next');
  const unknown = await plansOf((db) => findSealed(db, register, sha256Hex('unknown')));
  expect(unknown.join('\n')).not.toMatch(/transaction_rows|docket_values/);
});
