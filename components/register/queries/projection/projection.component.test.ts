import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { waitFor } from '#kit/testing/wait.ts';
import type { WriteDocket } from '../../ledger/writing/write.ts';
import { assembleLedger, type Ledger } from '../../ledger.ts';
import { buildDocket } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { storeInOldForm } from '../../testing/old-form.ts';
import { startTestRegister, type TestRegister, testSettings } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';
import { createFreshness } from './freshness.ts';
import { projectedHeight } from './progress/store.ts';
import { requestRebuild } from './rebuild/store.ts';
import { projectStored } from './store.ts';

const tables = [
  'transaction_rows',
  'transaction_recipients',
  'sender_counters',
  'blueprint_counters',
  'recipient_counters',
] as const;

let register: TestRegister;
let registerId: string;
let registerNo: number;
let serial = 0;

const senders = [1, 2, 3].map(testKey);

beforeAll(async () => {
  register = await startTestRegister('projection');
  registerId = await register.createRegister();
  ({ registerNo } = await register.state(registerId));
});
afterAll(() => register.stop());

/** Another process of the service on the same database. */
function startReplica(): Ledger {
  return assembleLedger({
    ...register,
    verifier: createVerifier(nodeEd25519()),
    bus: { publish: () => undefined },
    settings: testSettings,
  });
}

function next(n: number) {
  serial += 1;
  const [key, other] = [senders[n % 3] ?? testKey(1), senders[(n + 1) % 3] ?? testKey(1)];
  const recipients = n % 4 === 0 ? [key.walletAddress, other.walletAddress] : [other.walletAddress];
  const metadata = { instanceId: `instance-${n % 5}` };
  return transaction({
    registerId,
    payload: { serial },
    key,
    recipients,
    blueprintId: `b-${n % 2}`,
    metadata,
  });
}

async function write(count: number, by: WriteDocket = register.ledger.writeDocket): Promise<string[]> {
  const transactions = Array.from({ length: count }, (_, n) => next(n));
  const bundle = buildDocket(await register.state(registerId), transactions, register.members);
  expect(await by(bundle)).toMatchObject({ outcome: 'stored' });
  return transactions.map(({ txId }) => txId);
}

const get = (path: string, headers: Record<string, string> = {}) =>
  register.call('GET', path, { token: 'admin', headers });
const height = async () => (await register.state(registerId)).height;

async function projected(): Promise<void> {
  const head = await height();
  await waitFor(async () => (await projectedHeight(register.database.read, registerNo)) === head, {
    what: 'the index rows',
  });
}

/** The content of all tables that the projector writes. */
async function indexRows(): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const table of tables) {
    const text = `select * from ${table} where register_no = $1 order by 1, 2, 3, 4`.replace(
      /, 3, 4$/,
      table.startsWith('transaction') ? ', 3, 4' : '',
    );
    found[table] = (await register.database.pool.query(text, [registerNo])).rows;
  }
  return found;
}

/** Totals of the tables, which must agree with the number of sealed transactions. */
async function assertComplete(): Promise<void> {
  const { rows } = await register.database.pool.query(
    `select h.transaction_count as sealed, (select count(*) from transaction_rows where register_no = $1) as rows,
      (select sum(transaction_count)::bigint from sender_counters where register_no = $1) as sent,
      (select count(*) from transaction_recipients where register_no = $1) as recipients,
      (select sum(transaction_count)::bigint from recipient_counters where register_no = $1) as received
    from register_heads h where register_no = $1`,
    [registerNo],
  );
  const [{ sealed, rows: written, sent, recipients, received }] = rows;
  expect([written, sent, received]).toEqual([sealed, sealed, recipients]);
}

describe('index rows behind the commit', () => {
  it('are there for a query that follows the seal, which says how far it is', async () => {
    const ids = [...(await write(3)), ...(await write(40))];
    const head = await height();
    const { walletAddress } = testKey(1);
    const list = await get(`/api/registers/${registerId}/transactions?senderAddress=${walletAddress}`);
    expect(list.headers['x-as-of-docket']).toBe(String(head - 1));
    expect(list.body.items[0].docketNumber).toBe(head - 1);
    expect(ids).toContain(list.body.items[0].txId);
    const whole = await get(`/api/registers/${registerId}/transactions?pageSize=100`);
    expect(whole.headers['x-as-of-docket']).toBe(String(head - 1));
    expect(whole.body.items.map((one: { txId: string }) => one.txId)).toEqual(expect.arrayContaining(ids));
    const instance = await get(
      `/api/query/blueprints/b-1/transactions?instanceId=instance-1&registerId=${registerId}`,
    );
    expect(instance.body.items.length).toBeGreaterThan(0);
    const odata = await get(
      `/odata/Transactions/$count?$filter=blueprintId eq 'b-1' and registerId eq '${registerId}'`,
    );
    expect(Number(odata.text)).toBeGreaterThan(0);
    await assertComplete();
  });

  it('wait for the docket that a caller names, a second at most', async () => {
    const head = await height();
    const path = `/api/registers/${registerId}/transactions/graph`;
    expect((await get(path, { 'x-min-docket': String(head - 1) })).headers['x-as-of-docket']).toBe(
      String(head - 1),
    );
    const startedAt = performance.now();
    const ahead = await get(path, { 'x-min-docket': String(head + 5) });
    expect(performance.now() - startedAt).toBeGreaterThan(900);
    expect([ahead.status, ahead.headers['x-as-of-docket']]).toEqual([200, String(head - 1)]);
    expect((await get(path, { 'x-min-docket': '-1' })).status).toBe(400);
    const whole = get(`/api/registers/${registerId}/transactions`, { 'x-min-docket': String(head) });
    const ids = await write(2);
    const found = await whole;
    expect(found.headers['x-as-of-docket']).toBe(String(head));
    expect(ids).toContain(found.body.items[0].txId);
  });

  it('are not looked for while a caller waits for a docket that is not stored', async () => {
    await projected();
    const { projector } = register.ledger;
    const calls = { wake: 0, progress: 0 };
    const freshness = createFreshness({
      db: register.database.read,
      projector: {
        isFailing: projector.isFailing,
        wake(number) {
          calls.wake += 1;
          projector.wake(number);
        },
        progress(number, ms) {
          calls.progress += 1;
          return projector.progress(number, ms);
        },
      },
    });
    const head = await height();
    await freshness.settle({ registerNo, height: head }, { 'x-min-docket': String(head + 5) });
    expect(calls.wake).toBe(0);
    expect(calls.progress).toBeLessThanOrEqual(40);
    const waiting = projector.progress(registerNo, 300);
    const startedAt = performance.now();
    projector.wake(registerNo);
    await waiting;
    expect(performance.now() - startedAt).toBeGreaterThan(250);
  });

  it('are written once by several processes, whichever stored a docket', async () => {
    const replica = startReplica();
    for (let n = 0; n < 12; n += 1)
      await write(1 + (n % 3) * 9, n % 2 === 0 ? replica.writeDocket : undefined);
    await projected();
    await replica.stop();
    await assertComplete();
  });

  it('are not written for a docket that is not the stored one', async () => {
    await projected();
    const before = await indexRows();
    const { head } = await register.state(registerId);
    const number = await height();
    const rows = [{ ...next(0), type: 'Action', senderAddress: 'x', recipients: [], createdMicros: 0 }].map(
      (one) => ({
        ...one,
        blueprintId: undefined,
        actionId: undefined,
        instanceId: undefined,
        previousTxId: undefined,
      }),
    );
    const forged = { docketNumber: number, hash: 'f'.repeat(64), previousHash: head?.hash ?? '', rows };
    register.ledger.projector.stored(registerNo, forged);
    register.ledger.projector.stored(registerNo, { ...forged, docketNumber: number - 1 });
    await register.ledger.projector.progress(registerNo, 1_000);
    expect(await indexRows()).toEqual(before);
  });
});

describe('a projector that fails', () => {
  it('stops nothing, shows in the health, and catches up', async () => {
    await projected();
    const { pool } = register.database;
    await pool.query(`create function refuse_rows() returns trigger language plpgsql as
      $$ begin raise exception 'no space left'; end $$`);
    await pool.query(
      'create trigger refuse before insert on transaction_rows for each row execute function refuse_rows()',
    );
    const before = await height();
    const [txId] = await write(2);
    await write(30);
    await waitFor(() => register.ledger.projector.isFailing(registerNo), { what: 'the failure' });
    expect(() => register.ledger.projector.assertWorking()).toThrow('no space left');
    const own = await get(`/api/registers/${registerId}/transactions/${txId}`);
    expect([own.status, own.body.docketNumber]).toEqual([200, before]);
    const whole = await get(`/api/registers/${registerId}/transactions?pageSize=100`);
    expect(whole.body.items[0].docketNumber).toBe(before + 1);
    const startedAt = performance.now();
    const graph = await get(`/api/registers/${registerId}/transactions/graph`);
    expect(graph.headers['x-as-of-docket']).toBe(String(before - 1));
    expect(performance.now() - startedAt).toBeLessThan(900);
    const proof = await get(`/api/registers/${registerId}/transactions/${txId}/inclusion-proof`);
    expect(proof.status).toBe(200);
    expect((await get(`/api/registers/${registerId}/export`)).status).toBe(200);
    await pool.query('drop trigger refuse on transaction_rows');
    await projected();
    await waitFor(() => !register.ledger.projector.isFailing(registerNo), { what: 'the end of the failure' });
    expect(() => register.ledger.projector.assertWorking()).not.toThrow();
    await assertComplete();
  });
});

describe('index rows that are written anew', () => {
  it('are the same as before, while dockets are stored', async () => {
    await projected();
    const { pool } = register.database;
    const old = 2;
    await storeInOldForm(pool, registerNo, old);
    const before = await indexRows();
    await pool.query(
      'delete from transaction_rows where register_no = $1 and docket_number <> $2 and position % 2 = 1',
      [registerNo, old],
    );
    await pool.query('update sender_counters set transaction_count = 7 where register_no = $1', [registerNo]);
    await pool.query('delete from recipient_counters where register_no = $1', [registerNo]);
    const path = `/api/admin/registers/${registerId}/projection`;
    const begun = await register.call('POST', `${path}/rebuild`, { token: 'system' });
    expect(begun.status).toBe(202);
    await waitFor(async () => {
      const { body } = await register.call('GET', path, { token: 'system' });
      const { rows } = await pool.query('select rebuild from register_projections where register_no = $1', [
        registerNo,
      ]);
      return body.projectedHeight === body.height && rows[0].rebuild === false;
    });
    expect(await indexRows()).toEqual(before);
    await write(5);
    await projected();
    await assertComplete();
  });

  it('are deleted in steps of limited size, and answers say what they cover meanwhile', async () => {
    const own = await startTestRegister('projection_rebuild');
    try {
      const id = await own.createRegister();
      const { registerNo: number } = await own.state(id);
      for (const n of [1, 2]) {
        const sealed = [transaction({ registerId: id, payload: { n }, recipients: ['a', 'b'] })];
        await own.ledger.writeDocket(buildDocket(await own.state(id), sealed, own.members));
      }
      const { pool, read } = own.database;
      await waitFor(async () => (await projectedHeight(read, number)) === 3);
      await own.ledger.projector.stop();
      const tablesOf = async () => {
        const { rows } = await pool.query(
          `select (select count(*) from transaction_rows where register_no = $1) as rows,
            (select count(*) from transaction_recipients where register_no = $1) as recipients,
            (select sum(transaction_count)::bigint from recipient_counters where register_no = $1) as received`,
          [number],
        );
        return rows[0];
      };
      await storeInOldForm(pool, number, 0);
      const before = await tablesOf();
      await pool.query(
        `insert into transaction_rows (register_no, docket_number, position, tx_id, type, sender_address, created_micros)
          select $1, 1 + n % 2, n, '', 'Action', 's', 0 from generate_series(10, 41009) n`,
        [number],
      );
      await pool.query(
        `insert into transaction_recipients (register_no, address, docket_number, position)
          select $1, 'a' || n % 3, 1 + n % 2, n from generate_series(10, 25009) n`,
        [number],
      );
      await own.database.transact((tx) => requestRebuild(tx, number));
      const counts = [await tablesOf()];
      for (let steps = 0; steps < 20 && (await projectStored(own.database, number)) !== 'busy'; steps += 1) {
        counts.push(await tablesOf());
        const { rows } = await pool.query(
          'select height, rebuild from register_projections where register_no = $1',
          [number],
        );
        if (!rows[0].rebuild) break;
        expect(rows[0].height).toBe(1);
        if (steps > 0) continue;
        const graph = `/api/registers/${id}/transactions/graph`;
        const { headers } = await own.call('GET', graph, { token: 'admin' });
        expect(headers['x-as-of-docket']).toBe('0');
      }
      const deleted = counts.flatMap(({ rows, recipients }, n) => {
        const previous = counts[n - 1];
        return previous ? [previous.rows - rows + previous.recipients - recipients] : [];
      });
      expect(deleted).toEqual([20_000, 20_000, 1_002, 20_000, 5_004, 0]);
      expect(await projectStored(own.database, number)).toMatchObject({ height: 3, isMore: false });
      expect(await tablesOf()).toEqual(before);
    } finally {
      await own.stop();
    }
  });
});

describe('a process that ends after a commit', () => {
  it('leaves the rows to another one, also a long backlog', async () => {
    const own = await startTestRegister('projection_end');
    try {
      const id = await own.createRegister();
      const { registerNo: number } = await own.state(id);
      await own.ledger.projector.stop();
      for (let n = 0; n < 30; n += 1) {
        const sealed = [transaction({ registerId: id, payload: { n } })];
        const bundle = buildDocket(await own.state(id), sealed, own.members);
        expect(await own.ledger.writeDocket(bundle)).toMatchObject({ outcome: 'stored' });
      }
      const behind = await own.call('GET', `/api/registers/${id}/transactions/graph`, { token: 'admin' });
      expect(Number(behind.headers['x-as-of-docket'])).toBeLessThan(5);
      const replica = assembleLedger({
        ...own,
        verifier: createVerifier(nodeEd25519()),
        bus: { publish: () => undefined },
        settings: testSettings,
      });
      await waitFor(async () => (await projectedHeight(own.database.read, number)) === 31, {
        what: 'the backlog',
      });
      await replica.stop();
      const after = await own.call('GET', `/api/registers/${id}/transactions/graph`, { token: 'admin' });
      expect([after.headers['x-as-of-docket'], after.body.nodes.length]).toEqual(['30', 31]);
    } finally {
      await own.stop();
    }
  });
});
