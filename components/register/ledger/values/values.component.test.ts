import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { projectedHeight } from '../../queries/projection/progress/store.ts';
import { buildDocket } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { storeInOldForm } from '../../testing/old-form.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';
import { createLookup } from '../lookup/store.ts';
import { entriesOf, transactionAt, transactionsOf } from './store.ts';

const sizes = [1, 40, 7, 300, 2, 1, 12];

let register: TestRegister;
let registerId: string;
let registerNo: number;
const sealed: string[][] = [];

/** Payloads of different sizes, some larger than a chunk of PostgreSQL. */
const payloadOf = (docket: number, n: number) => ({ docket, n, text: 'x'.repeat((n * 977) % 5_000) });

beforeAll(async () => {
  register = await startTestRegister('values');
  registerId = await register.createRegister();
  ({ registerNo } = await register.state(registerId));
  for (const [docket, size] of sizes.entries()) {
    const transactions = Array.from({ length: size }, (_, n) =>
      transaction({
        registerId,
        payload: payloadOf(docket, n),
        key: testKey(1 + (n % 3)),
        metadata: { instanceId: `instance-${n % 2}` },
        ...(n % 3 === 0 && { recipients: [testKey(2).walletAddress] }),
      }),
    );
    const bundle = buildDocket(await register.state(registerId), transactions, register.members);
    expect(await register.ledger.writeDocket(bundle)).toMatchObject({ outcome: 'stored' });
    sealed.push(transactions.map(({ txId }) => txId));
  }
});
afterAll(() => register.stop());

const get = async (path: string) => {
  const { status, text } = await register.call('GET', path.replaceAll('R', registerId), { token: 'admin' });
  return { path, status, text: text.replaceAll(/"traceId":"[^"]*"/g, '') };
};

function pathsOf(docket: number): string[] {
  const ids = sealed[docket - 1] ?? [];
  const some = [ids[0], ids[Math.floor(ids.length / 2)], ids.at(-1)];
  return [
    ...some.flatMap((id) =>
      ['', '/record', '/inclusion-proof', '/receipt'].map((rest) => `transactions/${id}${rest}`),
    ),
    `dockets/${docket}`,
    `dockets/${docket}?include=transactions`,
    `dockets/${docket}/transactions?include=record&pageSize=5&page=2`,
    `transactions?pageSize=50&page=${docket}`,
    `transactions?pageSize=20&before=${ids[0]}`,
    `transactions?pageSize=20&$filter=docketNumber eq ${docket}`,
  ].map((rest) => `/api/registers/R/${rest}`);
}

const elsewhere = () => [
  '/api/registers/R/export',
  '/api/registers/R/transactions?pageSize=100&page=2',
  `/api/query/wallets/${testKey(2).walletAddress}/transactions?registerId=R&pageSize=100`,
  '/api/query/blueprints/loan/transactions?registerId=R&instanceId=instance-1&pageSize=100',
  '/api/query/stats?registerId=R',
  "/odata/Transactions?$filter=registerId eq 'R' and instanceId eq 'instance-0'&$top=50&$count=true",
];

/** Answers about everything that is stored; receipts are signed when they are requested. */
async function answers() {
  const paths = [...sizes.keys()].flatMap((docket) => pathsOf(docket + 1)).concat(elsewhere());
  const found = await Promise.all(paths.map(get));
  const lookup = createLookup(register.database.read, register.ledger.segments);
  const questions = sealed
    .flat()
    .map((txId) => ({ registerId, txId, previousTxId: txId, replayKey: '', pin: '' }));
  return { found, lookups: await lookup(questions) };
}

describe('dockets stored as one value and dockets stored in rows', () => {
  it('have the same answers, also when a register has both', async () => {
    await waitFor(
      async () => (await projectedHeight(register.database.read, registerNo)) === sizes.length + 1,
    );
    const asValues = await answers();
    expect(asValues.found.filter(({ status }) => status !== 200)).toEqual([]);
    expect(
      asValues.lookups.every(({ leaf, previousType }) => leaf !== null && previousType === 'Action'),
    ).toBe(true);
    const { pool } = register.database;
    for (const docket of [0, 1, 2, 4]) await storeInOldForm(pool, registerNo, docket);
    expect(await answers()).toEqual(asValues);
    for (const docket of [3, 5, 6, 7]) await storeInOldForm(pool, registerNo, docket);
    expect(await answers()).toEqual(asValues);
  });

  it('have an empty page beyond the last transaction, however large its number', async () => {
    const state = await register.state(registerId);
    const bundle = buildDocket(state, [transaction({ registerId, payload: 'last' })], register.members);
    await register.ledger.writeDocket(bundle);
    for (const number of [1, state.height]) {
      const path = `/api/registers/${registerId}/dockets/${number}/transactions?page=10000000&pageSize=1000`;
      const { status, body } = await register.call('GET', path, { token: 'admin' });
      expect([number, status, body.items]).toEqual([number, 200, []]);
    }
  });
});

describe('the value of a large docket', () => {
  it('is stored uncompressed, and outside its row', async () => {
    const transactions = Array.from({ length: 50 }, (_, n) =>
      transaction({ registerId, payload: payloadOf(9, n) }),
    );
    const bundle = buildDocket(await register.state(registerId), transactions, register.members);
    await register.ledger.writeDocket(bundle);
    const { docketNumber } = bundle.header;
    const { rows } = await register.database.pool.query(
      `select octet_length(value) as bytes, pg_column_size(value) as stored, pg_column_compression(value) as compression
        from docket_values where register_no = $1 and docket_number = $2`,
      [registerNo, docketNumber],
    );
    expect(rows[0].stored).toBe(rows[0].bytes);
    expect(rows[0].compression).toBeNull();
    const { rows: parts } = await register.database.pool.query(
      "select relname, attstorage from pg_attribute a join pg_class c on c.oid = a.attrelid where relname ~ '^docket_values' and attname = 'value'",
    );
    expect(parts.map((part) => part.attstorage)).toEqual(parts.map(() => 'e'));
  });

  it('is read by transaction, by slice, and within its bounds', async () => {
    const { read } = register.database;
    const docketNumber = (await register.state(registerId)).height - 1;
    const at = { registerNo, docketNumber };
    const entries = await entriesOf(read, at, { from: 0, to: 1_000_000 });
    expect(entries).toHaveLength(50);
    const [all] = await transactionsOf(read, registerNo, [{ docketNumber, entries: entries ?? [] }]);
    for (const position of [0, 17, 49])
      expect(await transactionAt(read, { ...at, position })).toEqual(all?.[position]);
    expect(await transactionAt(read, { ...at, position: 50 })).toBeUndefined();
    expect(await entriesOf(read, at, { from: 48, to: 60 })).toEqual(entries?.slice(48));
    expect(await entriesOf(read, at, { from: 50, to: 60 })).toEqual([]);
    expect(await entriesOf(read, at, { from: 70, to: 60 })).toEqual([]);
    // pages of clients, whose offsets exceed an integer of SQL
    for (const from of [30_000_000, 2 ** 31, 10 ** 12])
      expect(await entriesOf(read, at, { from, to: from + 100 })).toEqual([]);
    expect(
      await entriesOf(read, { ...at, docketNumber: docketNumber + 1 }, { from: 0, to: 1 }),
    ).toBeUndefined();
    const [missing] = await transactionsOf(read, registerNo, [
      { docketNumber: docketNumber + 1, entries: entries ?? [] },
    ]);
    expect(missing).toBeUndefined();
  });
});
