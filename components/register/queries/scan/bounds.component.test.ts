import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import { ENTITY_SETS } from '../language/model.ts';
import { readOptions } from './options.ts';
import { mostExamined, type SearchDeps, search } from './search.ts';
import { withinTime } from './store.ts';

const dockets = 25;
const perDocket = 1_000;

let register: TestRegister;
let registerId: string;

beforeAll(async () => {
  register = await startTestRegister('odata_bounds');
  registerId = await register.createRegister();
  const { pool } = register.database;
  // with several partitions the planner may prefer reading and sorting over an index scan
  for (const [name, from] of [
    ['p1', 10_000],
    ['p2', 20_000],
    ['p3', 30_000],
  ] as const) {
    await pool.query(
      `create table transactions_${name} partition of transaction_rows for values from (${from}) to (${from + 10_000})`,
    );
  }
  await pool.query(
    `insert into transaction_rows (register_no, docket_number, position, tx_id, type, sender_address, action_id,
       created_micros, leaf, payload_hash_form, record, payload)
     select register_no, n / $3::int + 1, n % $3::int, sha256(n::text::bytea), 'Action', 'sender-' || n % 7,
       case n when 1234 then 'needle' else 'hay' end, 1767225600000000 + n, '', 'jcs', '{}', ''
     from registers, generate_series(0, $2::int - 1) as n where register_id = $1`,
    [registerId, dockets * perDocket, perDocket],
  );
  await pool.query(
    `insert into transaction_ids (register_no, segment, tx_id, docket_number, position)
     select register_no, 0, tx_id, docket_number, position from transaction_rows where docket_number > 0`,
  );
  await pool.query(
    `with head as (update register_heads set transaction_count = $1, height = $2::bigint
       where register_no = (select register_no from registers where register_id = $3) returning register_no, height)
     insert into register_projections (register_no, height) select register_no, height from head
     on conflict (register_no) do update set height = excluded.height`,
    [dockets * perDocket + 1, dockets + 1, registerId],
  );
  await pool.query('analyze transaction_rows');
});
afterAll(() => register.stop());

const get = (path: string, options: Record<string, string> = {}) =>
  register.call('GET', `/odata/${path}?${new URLSearchParams(options)}`, { token: 'admin' });

/** Follows the links from page to page and returns the rows of each. */
async function readPages(options: Record<string, string>): Promise<number[][]> {
  const pages: number[][] = [];
  let answer = await get('Transactions', options);
  for (;;) {
    expect(answer.status).toBe(200);
    pages.push(
      answer.body.value.map(
        (row: { docketNumber: number; position: number }) => row.docketNumber * perDocket + row.position,
      ),
    );
    const link = answer.body['@odata.nextLink'];
    if (link === undefined || pages.length > 30) return pages;
    answer = await register.call('GET', String(link).replace(/^https?:\/\/[^/]*/, ''), { token: 'admin' });
  }
}

const needle = 1 * perDocket + 1_234;

it('finds a row at any depth, in bounded steps', async () => {
  const steps = Math.ceil((dockets * perDocket + 1) / mostExamined);
  const forwards = await readPages({ $filter: "actionId eq 'needle'" });
  expect(forwards.flat()).toEqual([needle]);
  expect(forwards).toHaveLength(steps);
  const backwards = await readPages({ $filter: "endswith(actionId,'dle')", $orderby: 'docketNumber' });
  expect(backwards.flat()).toEqual([needle]);
  const byTime = await readPages({ $filter: "contains(actionId,'eed')", $orderby: 'timestamp desc' });
  expect(byTime.flat()).toEqual([needle]);
  const skipped = await readPages({ $filter: "senderAddress ne 'sender-1'", $skip: '10000', $top: '3' });
  const others = Array.from({ length: dockets * perDocket }, (_, n) => dockets * perDocket - 1 - n).filter(
    (n) => n % 7 !== 1,
  );
  expect(skipped.flat()).toEqual(others.slice(10_000, 10_003).map((n) => n + perDocket));
});

it('orders by an index at any depth, and sorts only small results', async () => {
  const [newest] = (await get('Transactions', { $orderby: 'timestamp desc', $top: '1' })).body.value;
  expect(newest.transactionType).toBe('Genesis');
  const [oldest] = (await get('Transactions', { $orderby: 'timestamp', $top: '1' })).body.value;
  expect([oldest.docketNumber, oldest.position]).toEqual([1, 0]);
  const broad = await get('Transactions', { $orderby: 'senderAddress' });
  expect([broad.status, broad.body.error.code]).toEqual([400, 'QUERY_TOO_BROAD']);
  const narrow = await get('Transactions', { $orderby: 'senderAddress', $filter: 'docketNumber ge 20' });
  expect(narrow.status).toBe(200);
});

it('counts all rows from counters, and matches up to a bound', async () => {
  expect((await get('Transactions/$count')).text).toBe(String(dockets * perDocket + 1));
  const many = (await get('Transactions', { $filter: "actionId eq 'hay'", $count: 'true', $top: '0' })).body;
  expect(many).toMatchObject({ '@odata.count': 10_000, '@Chancery.countIsLowerBound': true, value: [] });
  const broad = await get('Transactions/$count', { $filter: "actionId eq 'hay'" });
  expect([broad.status, broad.body.error.code]).toEqual([400, 'QUERY_TOO_BROAD']);
  const few = await get('Transactions/$count', { $filter: "docketNumber eq 3 and actionId eq 'hay'" });
  expect(few.text).toBe(String(perDocket));
});

it('gives every other list of transactions the same bound', async () => {
  const list = async (more: string) =>
    (
      await register.call(
        'GET',
        `/api/registers/${registerId}/transactions?$filter=actionId%20eq%20'needle'${more}`,
        {
          token: 'admin',
        },
      )
    ).body;
  const first = await list('');
  expect(first).toMatchObject({ items: [], hasMore: true, totalCountIsLowerBound: true });
  expect(await list('&page=2')).toMatchObject({ status: 400, code: 'PAGE_TOO_DEEP' });
  const second = await list(`&before=${first.next}`);
  expect(second).toMatchObject({ items: [], hasMore: true });
  expect(second.next).not.toBe(first.next);
});

/** Runs a search and counts the rows of the ledger that PostgreSQL read for it. */
async function rowsRead(options: Record<string, string>, wallet?: string): Promise<number> {
  let read = Number.NaN;
  const database: SearchDeps = {
    transact: (act) =>
      register.database.transact(async (tx) => {
        const total = async () =>
          (
            await sql<{ read: number }>`select sum(seq_tup_read + idx_tup_fetch)::int as read
              from pg_stat_xact_user_tables where relname like 'transactions\\_p%'`.execute(tx)
          ).rows[0]?.read ?? Number.NaN;
        const before = await total();
        const result = await act(tx);
        read = (await total()) - before;
        return result;
      }),
  };
  const set = ENTITY_SETS.Transactions;
  const { top: limit = 20, ...query } = readOptions(set, options, 0n);
  const scope = { all: true, organizationId: undefined };
  await search(database, scope, { set, ...query, limit, ...(wallet !== undefined && { wallet }) });
  return read;
}

it.each([
  ['a page', {}, 21],
  ['a large page', { $top: '100' }, 101],
  ['pages to skip', { $skip: '1000' }, 1_021],
  ['a sender', { $filter: "senderAddress eq 'sender-3'" }, 21],
  ['a sender, counted', { $filter: "senderAddress eq 'sender-3'", $count: 'true' }, 21],
  ['a blueprint', { $filter: "blueprintId eq 'genesis'" }, 1],
  ['an id', { $filter: `txId eq '${'0'.repeat(64)}'` }, 0],
  ['dockets', { $filter: 'docketNumber le 3' }, 21],
  ['time', { $orderby: 'timestamp desc' }, 21],
  ['time, from the beginning', { $orderby: 'timestamp' }, 21],
  ['the ledger from the beginning', { $orderby: 'docketNumber' }, 21],
  ['nothing that is there', { $filter: "actionId eq 'none'" }, 3 * mostExamined],
  ['nothing of a sender', { $filter: "actionId eq 'none' and senderAddress eq 'sender-3'" }, 3 * 3_572],
])('reads no more rows of 25,000 than it needs: %s', async (_what, options, most) => {
  // one more row where a scan reads past its end
  expect(await rowsRead(options)).toBeLessThanOrEqual(most + 25);
});

it('reads no more rows than it needs for the transactions of an address', async () => {
  expect(await rowsRead({}, 'sender-3')).toBeLessThanOrEqual(2 * 21 + 25);
});

it('ends a statement that takes too long', async () => {
  const slow = withinTime(register.database, (db) => sql`select pg_sleep(9)`.execute(db), 50);
  await expect(slow).rejects.toMatchObject({ code: 'QUERY_TIMEOUT', kind: 'timeout' });
  const { rows } = await register.database.pool.query('show statement_timeout');
  expect(rows).toEqual([{ statement_timeout: '30s' }]);
});
