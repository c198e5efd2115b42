import type { PoolClient } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { buildDocket } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';
import { type Projector, startProjector } from './jobs.ts';
import { projectedHeight } from './progress/store.ts';
import { projectStored } from './store.ts';

let own: TestRegister;
let id: string;
let number: number;
let other: PoolClient;

/** Locks the cursor as another process does that writes index rows of the register. */
const lock = async () => {
  await other.query('begin');
  await other.query('select 1 from register_projections where register_no = $1 for update', [number]);
};
const unlock = () => other.query('rollback');
const isComplete = async () =>
  (await projectedHeight(own.database.read, number)) === (await own.state(id)).height;
const writeOne = async (n: number) => {
  const sealed = [transaction({ registerId: id, payload: { n } })];
  const bundle = buildDocket(await own.state(id), sealed, own.members);
  expect(await own.ledger.writeDocket(bundle)).toMatchObject({ outcome: 'stored' });
};

beforeAll(async () => {
  own = await startTestRegister('projection_locked');
  id = await own.createRegister();
  ({ registerNo: number } = await own.state(id));
  await waitFor(isComplete);
  other = await own.database.pool.connect();
});
afterAll(async () => {
  other.release();
  await own.stop();
});

describe('queries over several registers', () => {
  it('wait for the registers that they cover', async () => {
    const mine = await own.createRegister('Mine');
    await own.database.pool.query('update subscriptions set organization_id = $2 where register_no = $1', [
      number,
      '22222222-2222-4222-8222-222222222222',
    ]);
    await lock();
    await writeOne(0);
    const msOf = async (token: string, path: string) => {
      const startedAt = performance.now();
      expect((await own.call('GET', path, { token })).status).toBe(200);
      return performance.now() - startedAt;
    };
    const all = '/odata/Transactions/$count?$filter=position eq 0';
    const one = `${all} and registerId eq '${mine}'`;
    const sent = `/api/query/senders/${testKey(1).walletAddress}/transactions`;
    for (const [token, path] of [
      ['admin', all],
      ['admin', sent],
      ['admin', '/api/query/stats'],
      ['operator', one],
    ] as const)
      expect(await msOf(token, path), path).toBeLessThan(700);
    for (const [token, path] of [
      ['stranger', all],
      ['stranger', sent],
      ['operator', all],
    ] as const)
      expect(await msOf(token, path), path).toBeGreaterThan(900);
    await unlock();
    const found = await own.call('GET', sent, { token: 'stranger' });
    expect(found.body.totalCount).toBe(1);
  });
});

describe('a process that finds the cursor of a register locked', () => {
  let projector: Projector;

  beforeAll(async () => {
    await own.ledger.projector.stop();
    projector = startProjector({ ...own.runtime, database: own.database });
  });
  afterAll(() => projector.stop());

  it('tries again shortly', async () => {
    await projector.progress(number, 100);
    await lock();
    await writeOne(1);
    projector.wake(number);
    await projector.progress(number, 500);
    await unlock();
    // long before the next search
    await waitFor(isComplete, { deadlineMs: 1_000, what: 'the rows' });
  });

  it('does not take a locked cursor for the end of a failure', async () => {
    const { pool } = own.database;
    await pool.query(`create function refuse_rows() returns trigger language plpgsql as
      $$ begin raise exception 'no space left'; end $$`);
    await pool.query(
      'create trigger refuse before insert on transaction_rows for each row execute function refuse_rows()',
    );
    await writeOne(2);
    projector.wake(number);
    await waitFor(() => projector.isFailing(number), { everyMs: 1, what: 'the failure' });
    await lock();
    await projector.progress(number, 1_500);
    expect(projector.isFailing(number)).toBe(true);
    await pool.query('drop trigger refuse on transaction_rows');
    await unlock();
    await waitFor(async () => !projector.isFailing(number) && (await isComplete()), { what: 'the rows' });
  });

  it('has nothing to do for a deleted register', async () => {
    const { pool } = own.database;
    await lock();
    expect(await projectStored(own.database, number)).toBe('busy');
    await unlock();
    await pool.query("update registers set status = 'Deleted' where register_no = $1", [number]);
    expect(await projectStored(own.database, number)).toBe('gone');
  });
});
