import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { assembleLedger } from '../../ledger.ts';
import { buildDocket } from '../../testing/build-docket.ts';
import { startTestRegister, type TestRegister, testSettings } from '../../testing/register.ts';
import { bodyOf, transaction } from '../../testing/sealed.ts';
import type { DocketBundle, SealedTransaction } from '../dockets/docket.ts';
import { unfiltered } from '../segments/store.ts';
import { createDocketWriter } from './store.ts';

describe('storing dockets', () => {
  let register: TestRegister;
  let registerId: string;
  let count = 0;
  beforeAll(async () => {
    register = await startTestRegister('store');
    registerId = await register.createRegister();
  });
  afterAll(() => register.stop());

  const post = (bundle: DocketBundle, token: string | undefined = 'validator') =>
    register.call('POST', `/api/registers/${registerId}/dockets`, { token, body: bodyOf(bundle) });

  function next() {
    count += 1;
    return transaction({ registerId, payload: { n: count } });
  }

  const docket = async (...transactions: SealedTransaction[]) =>
    buildDocket(await register.state(registerId), transactions, register.members);

  it('commits a docket completely or not at all', async () => {
    const bundle = await docket(next(), next());
    const before = await register.state(registerId);
    const { pool } = register.database;
    await pool.query(`create function refuse_event() returns trigger language plpgsql as
      $$ begin raise exception 'no space left'; end $$`);
    await pool.query('create trigger refuse before insert on outbox execute function refuse_event()');
    expect((await post(bundle)).status).toBe(500);
    const rows = await pool.query('select 1 from transaction_rows where docket_number = $1', [before.height]);
    expect(rows.rowCount).toBe(0);
    expect((await register.state(registerId)).height).toBe(before.height);
    await pool.query('drop trigger refuse on outbox');
    expect((await post(bundle)).status).toBe(201);
    const events = await pool.query(
      "select data from outbox where kind = 'DocketSealed' order by sequence desc limit 1",
    );
    expect(events.rows[0].data).toMatchObject({
      registerId,
      docketNumber: before.height,
      transactionCount: 2,
    });
  });

  it('continues after a docket written by another replica', async () => {
    const replica = assembleLedger({
      ...register,
      verifier: createVerifier(nodeEd25519()),
      bus: { publish: () => undefined },
      settings: testSettings,
    });
    for (const write of [register.ledger.writeDocket, replica.writeDocket, register.ledger.writeDocket]) {
      const bundle = await docket(next());
      expect(await write(bundle)).toMatchObject({ outcome: 'stored' });
      expect(await replica.writeDocket(bundle)).toMatchObject({ outcome: 'replayed' });
    }
    const racing = await docket(next());
    const results = await Promise.all([register.ledger.writeDocket(racing), replica.writeDocket(racing)]);
    expect(results.map((result) => result.outcome).toSorted()).toEqual(['replayed', 'stored']);
    await replica.stop();
  });

  it('makes partitions before they are needed', async () => {
    const { database } = register;
    const writer = createDocketWriter({ database, segments: unfiltered });
    const { registerNo } = await register.state(registerId);
    const head = 'select height, head_hash, log_frontier from register_heads where register_no = $1';
    const before = (await database.pool.query(head, [registerNo])).rows[0];
    const bundle = await docket(next());
    await database.pool.query('update register_heads set height = 36000 where register_no = $1', [
      registerNo,
    ]);
    const outcome = await writer.commit({
      registerNo,
      registerId,
      segment: 0,
      docket: {
        docket_number: 36_000,
        hash: 'f'.repeat(64),
        previous_hash: before.head_hash,
        merkle_root: '',
        log_root: '',
        validator_set_hash: '',
        timestamp: bundle.header.timestamp,
        validator_address: '',
        is_genesis: false,
        genesis_config: null,
        size_bytes: 0,
        transaction_count: 0,
        certificate: '{}',
        stored_at: new Date(),
      },
      transactions: [],
      frontier: before.log_frontier,
      nodes: [],
      attestations: [],
      projection: undefined,
      participants: [],
      publications: [],
    });
    expect(outcome).toBe('stored');
    const names = await database.pool.query(
      "select relname from pg_class where relname ~ '^transactions_p[0-9]+$' order by 1",
    );
    expect(names.rows.map((row) => row.relname)).toEqual([
      'transactions_p0',
      'transactions_p3',
      'transactions_p4',
    ]);
    await database.pool.query('delete from dockets where docket_number = 36000');
    await database.pool.query(
      'update register_heads set height = $2, head_hash = $3 where register_no = $1',
      [registerNo, before.height, before.head_hash],
    );
  });

  it('answers unavailable when the connection is lost, and stores the same docket afterwards', async () => {
    const bundle = await docket(next());
    const { pool } = register.database;
    await pool.query(`create function cut_connection() returns trigger language plpgsql as
      $$ begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$`);
    await pool.query('create trigger cut before insert on outbox execute function cut_connection()');
    const cut = await post(bundle);
    expect([cut.status, cut.headers['retry-after']]).toEqual([503, '1']);
    await pool.query('drop trigger cut on outbox');
    expect((await post(bundle)).status).toBe(201);
  });

  it('stores a docket once for many concurrent writes', async () => {
    const bundle = await docket(next());
    const answers = await Promise.all(Array.from({ length: 8 }, () => post(bundle)));
    const statuses = answers.map((answer) => answer.status).toSorted((left, right) => left - right);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 200, 201]);
  });

  it('stores one of two dockets that race for a number', async () => {
    const own = await register.createRegister('Raced for');
    const state = await register.state(own);
    const race = (n: number) =>
      buildDocket(state, [transaction({ registerId: own, payload: { n } })], register.members);
    const results = await Promise.all([1, 2].map((n) => register.ledger.writeDocket(race(n))));
    expect(results.map((result) => result.outcome).toSorted()).toEqual(['divergent', 'stored']);
  });

  it('updates the counters when transactions are sealed', async () => {
    const before = (await register.call('GET', `/api/registers/${registerId}`, { token: 'admin' })).body;
    const many = Array.from({ length: 300 }, () => next());
    expect((await post(await docket(...many))).status).toBe(201);
    const after = (await register.call('GET', `/api/registers/${registerId}`, { token: 'admin' })).body;
    expect(after.transactionCount).toBe(before.transactionCount + 300);
    expect(after.height).toBe(before.height + 1);
    const stored = await register.call(
      'GET',
      `/api/registers/${registerId}/dockets/latest?include=transactions`,
      {
        token: 'admin',
      },
    );
    expect(stored.body.transactions.map((one: { txId: string }) => one.txId)).toEqual(
      many.map((one) => one.txId),
    );
  });
});
