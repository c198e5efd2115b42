import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { buildDocket } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import { type TransactionOptions, transaction } from '../../testing/sealed.ts';

const [alice, bob, carol] = [1, 2, 3].map((n) => testKey(n).walletAddress);
const createdMs = Date.now() - 60_000;

interface Node {
  readonly txId: string;
  readonly docketNumber: number | null;
}

describe('queries', () => {
  let register: TestRegister;
  let loans: string;
  let grants: string;
  let theirs: string;

  /** Seals transactions in one docket and returns their ids. */
  async function seal(
    registerId: string,
    list: readonly (Omit<TransactionOptions, 'registerId' | 'payload'> & { sender?: number })[],
  ) {
    const rows = list.map(({ sender = 1, ...overrides }, index) =>
      transaction({
        registerId,
        payload: { registerId, index, overrides },
        key: testKey(sender),
        createdAt: new Date(createdMs + index).toISOString().replace('Z', '0000+00:00'),
        ...overrides,
      }),
    );
    const bundle = buildDocket(await register.state(registerId), rows, register.members);
    expect((await register.ledger.writeDocket(bundle)).outcome).toBe('stored');
    return rows.map(({ txId }) => txId);
  }

  beforeAll(async () => {
    register = await startTestRegister('queries');
    loans = await register.createRegister('Loans');
    grants = await register.createRegister('Grants');
    theirs = await register.createRegister('Theirs');
    await register.database.pool.query(
      `update subscriptions set organization_id = '22222222-2222-4222-8222-222222222222'
       where register_no = (select register_no from registers where register_id = $1)`,
      [theirs],
    );
    for (const id of [loans, grants, theirs]) {
      const many = Array.from({ length: 12 }, (_, n) => ({
        sender: 3,
        actionId: `bulk-${n}`,
        blueprintId: 'bulk',
        metadata: { instanceId: n % 2 === 0 ? 'even' : 'odd' },
      }));
      await seal(id, [
        { blueprintId: 'loan', recipients: [bob ?? '', alice ?? '', bob ?? ''] },
        {
          sender: 2,
          blueprintId: 'loan',
          actionId: '1',
          metadata: { instanceId: 'i-1' },
          recipients: [carol ?? ''],
        },
        { sender: 2, blueprintId: `long-${'x'.repeat(300)}`, actionId: '2' },
      ]);
      await seal(id, many);
      await seal(id, [{ sender: 2, blueprintId: 'loan', actionId: '3', metadata: { instanceId: 'i-1' } }]);
    }
  });
  afterAll(() => register.stop());

  const get = (path: string, token = 'admin') => register.call('GET', `/api/${path}`, { token });
  const actions = async (path: string, token?: string) => {
    const { status, body, text } = await get(path, token);
    expect([status, text.slice(0, 300)]).toEqual([200, expect.any(String)]);
    const items: { transaction?: { actionId: string }; actionId: string }[] = body.items;
    return {
      actions: items.map((item) => (item.transaction ?? item).actionId),
      total: body.totalCount,
      body,
    };
  };

  it('lists what an address sent', async () => {
    const own = await actions(`query/senders/${bob}/transactions?registerId=${loans}`);
    expect([own.actions, own.total]).toEqual([['3', '2', '1'], 3]);
    const all = await actions(`query/senders/${bob}/transactions`);
    expect([all.actions, all.total]).toEqual([['3', '2', '1', '3', '2', '1'], 6]);
    expect(all.body.items.map((item: { registerName: string }) => item.registerName)).toEqual([
      ...['Grants', 'Grants', 'Grants'],
      ...['Loans', 'Loans', 'Loans'],
    ]);
    expect((await actions('query/senders/nobody/transactions')).total).toBe(0);
  });

  it('lists what an address sent or received, each transaction once', async () => {
    const own = await actions(`query/wallets/${bob}/transactions?registerId=${loans}`);
    expect([own.actions, own.total]).toEqual([['3', '2', '1', '0'], 4]);
    expect((await actions(`query/wallets/${carol}/transactions`)).total).toBe(26);
    // sent to herself, and counted once
    const hers = await actions(`query/wallets/${alice}/transactions?registerId=${grants}`);
    expect([hers.actions, hers.total]).toEqual([['0'], 1]);
    const seen: string[] = [];
    let cursor: string | undefined = '';
    for (let pages = 0; cursor !== undefined && pages < 20; pages += 1) {
      const more: string = cursor === '' ? '' : `&cursor=${cursor}`;
      const { body } = await get(`query/wallets/${carol}/transactions?pageSize=4${more}`);
      seen.push(...body.items.map((item: { transaction: { txId: string } }) => item.transaction.txId));
      expect(body.hasMore).toBe(body.next !== undefined);
      cursor = body.next;
    }
    expect([seen.length, new Set(seen).size]).toEqual([26, 26]);
    const third = (await get(`query/wallets/${carol}/transactions?pageSize=4&page=3`)).body.items;
    expect(third.map((item: { transaction: { txId: string } }) => item.transaction.txId)).toEqual(
      seen.slice(8, 12),
    );
  });

  it('lists transactions of a blueprint and of its instances', async () => {
    const loan = await actions(`query/blueprints/loan/transactions?registerId=${loans}`);
    expect([loan.actions, loan.total]).toEqual([['3', '1', '0'], 3]);
    const one = await actions(`query/blueprints/loan/transactions?registerId=${loans}&instanceId=i-1`);
    expect([one.actions, one.total]).toEqual([['3', '1'], 2]);
    expect((await actions('query/blueprints/bulk/transactions?instanceId=even&pageSize=100')).total).toBe(12);
    expect((await actions('query/blueprints/bulk/transactions')).total).toBe(24);
    const long = `$filter=${encodeURIComponent(`blueprintId eq 'long-${'x'.repeat(300)}'`)}`;
    expect((await actions(`registers/${loans}/transactions?${long}`)).actions).toEqual(['2']);
  });

  it('returns statistics', async () => {
    const earliest = new Date(createdMs).toISOString();
    const { body } = await get(`query/stats?registerId=${loans}`);
    expect(body).toMatchObject({
      totalTransactions: 17,
      totalPayloads: 17,
      uniqueSenders: 4,
      uniqueRecipients: 3,
      uniqueWallets: 4,
      earliestTransaction: earliest,
    });
    expect(Date.parse(body.latestTransaction)).toBeGreaterThan(createdMs);
    expect((await get('query/stats')).body).toMatchObject({ totalTransactions: 34, uniqueWallets: 4 });
    expect((await get('query/stats', 'operator')).body.totalTransactions).toBe(51);
    expect((await get('query/stats', 'user')).body.totalTransactions).toBe(34);
  });

  it('marks counts as lower bounds also where addresses occur in several registers', async () => {
    const { pool } = register.database;
    await pool.query(`insert into sender_counters (register_no, sender_address, transaction_count)
      select register_no, 'x' || n + 20000 * (register_no % 2), 1 from registers, generate_series(1, 60000) as n`);
    const { body } = await get('query/stats');
    expect(body.uniqueSenders).toBeLessThanOrEqual(80_010);
    expect(body.uniqueCountsAreLowerBounds).toBe(true);
    await pool.query("delete from sender_counters where sender_address like 'x%'");
    expect((await get('query/stats')).body.uniqueCountsAreLowerBounds).toBeUndefined();
  });

  it("never shows another organisation's rows", async () => {
    for (const path of [
      `query/wallets/${bob}/transactions`,
      `query/senders/${bob}/transactions`,
      'query/blueprints/loan/transactions',
    ]) {
      expect((await get(`${path}?registerId=${theirs}`)).body.code).toBe('REGISTER_NOT_FOUND');
      const { body } = await get(`${path}?pageSize=100`);
      const ids = body.items.map((item: { registerId: string }) => item.registerId);
      expect(new Set(ids)).toEqual(new Set([loans, grants]));
      const foreign = (await get(`${path}?pageSize=2`, 'stranger')).body;
      expect(new Set(foreign.items.map((item: { registerId: string }) => item.registerId))).toEqual(
        new Set([theirs]),
      );
      const borrowed = (await get(`${path}?cursor=${foreign.next}&pageSize=100`)).body.items;
      expect(borrowed.map((item: { registerId: string }) => item.registerId)).not.toContain(theirs);
    }
    expect((await get(`query/stats?registerId=${theirs}`)).status).toBe(404);
    expect((await get(`registers/${theirs}/transactions/graph`)).status).toBe(404);
    expect((await register.call('GET', '/api/query/stats')).status).toBe(401);
  });

  it('refuses invalid pages and cursors', async () => {
    const codes = async (query: string) =>
      (await get(`query/senders/${bob}/transactions?${query}`)).body.code;
    expect(await codes('pageSize=101')).toBe('INVALID_REQUEST');
    expect(await codes('page=0')).toBe('INVALID_REQUEST');
    expect(await codes('page=1000&pageSize=100')).toBe('PAGE_TOO_DEEP');
    expect(await codes('cursor=x')).toBe('QUERY_INVALID');
    expect(await codes('registerId=x')).toBe('REGISTER_NOT_FOUND');
    for (const path of ['wallets/%00', 'senders/a%00', 'blueprints/%00'])
      expect((await get(`query/${path}/transactions`)).status).toBe(404);
    expect((await get('query/blueprints/a/transactions?instanceId=%00')).status).toBe(400);
  });

  it('reads the graph of 5,000 transactions by cursor, each exactly once', async () => {
    const large = await register.createRegister('Large');
    for (let docket = 0; docket < 5; docket += 1) {
      const list = Array.from({ length: 1_000 }, (_, n) => ({ actionId: `${docket}-${n}` }));
      await seal(large, list);
    }
    const seen: Node[] = [];
    let before: string | undefined;
    for (let pages = 0; pages < 10; pages += 1) {
      const more = before === undefined ? '' : `&before=${before}`;
      const { body } = await get(`registers/${large}/transactions/graph?limit=1000${more}`);
      expect(body.totalCount).toBe(5_001);
      seen.push(...body.nodes);
      before = body.nodes.at(-1)?.txId;
      if (!body.hasMore) break;
    }
    expect([seen.length, new Set(seen.map(({ txId }) => txId)).size]).toEqual([5_001, 5_001]);
    const numbers = seen.map(({ docketNumber }) => docketNumber ?? Number.NaN);
    expect(numbers).toEqual(numbers.toSorted((left, right) => right - left));
    expect((await get(`registers/${large}/transactions/graph`)).body.nodes).toHaveLength(200);
    for (const query of ['limit=1001', 'limit=0', 'before=x', `before=${'0'.repeat(64)}`]) {
      const answer = await get(`registers/${large}/transactions/graph?${query}`);
      expect([query, answer.status]).toEqual([query, 400]);
    }
  });

  it('lists pending transactions before the ledger, with links as they were signed', async () => {
    const id = await register.createRegister('Waiting');
    const [first = ''] = await seal(id, [{ metadata: { instanceId: 'i-9' } }]);
    const submit = async (n: number) => {
      const body = {
        transactionType: 'Action',
        senderAddress: alice,
        payload: Buffer.from(JSON.stringify({ n })).toString('base64'),
        metadata: { blueprintId: 'loan', actionId: String(n), instanceId: 'i-9' },
        ...(n === 0 && { previousTransactionId: first }),
      };
      const sent = await register.call('POST', `/api/registers/${id}/transactions`, { token: 'admin', body });
      return String(sent.body.txId);
    };
    const [one, two] = [await submit(0), await submit(1)];
    const path = `registers/${id}/transactions/graph`;
    const { body } = await get(path);
    expect(body.nodes).toHaveLength(4);
    expect(new Set(body.nodes.slice(0, 2).map(({ txId }: Node) => txId))).toEqual(new Set([one, two]));
    expect(body.nodes.find(({ txId }: Node) => txId === one)).toEqual({
      txId: one,
      prevTxId: first,
      senderWallet: alice,
      timeStamp: expect.stringMatching(/^\d{4}-.*Z$/),
      docketNumber: null,
      blueprintId: 'loan',
      instanceId: 'i-9',
      transactionType: 'Action',
    });
    expect(body.nodes[2]).toMatchObject({ txId: first, prevTxId: null, docketNumber: 1, instanceId: 'i-9' });
    expect([body.totalCount, body.hasMore]).toEqual([2, false]);
    const paged: string[] = [];
    for (let before = ''; paged.length < 10; before = `&before=${paged.at(-1)}`) {
      const page = (await get(`${path}?limit=1${before}`)).body;
      paged.push(...page.nodes.map(({ txId }: Node) => txId));
      if (!page.hasMore) break;
    }
    expect(paged).toEqual(body.nodes.map(({ txId }: Node) => txId));
  });

  it('has a transaction once that is sealed while the graph is read', async () => {
    const id = await register.createRegister('Sealing');
    const path = `registers/${id}/transactions/graph`;
    const idsOf = async (query = '') =>
      (await get(`${path}${query}`)).body.nodes.map(({ txId }: Node) => txId);
    const before = await idsOf();
    const submit = async (n: number) => {
      const payload = Buffer.from(JSON.stringify({ n })).toString('base64');
      const metadata = { blueprintId: 'loan', actionId: String(n) };
      const body = { transactionType: 'Action', senderAddress: alice, payload, metadata };
      const sent = await register.call('POST', `/api/registers/${id}/transactions`, { token: 'admin', body });
      return String(sent.body.txId);
    };
    const { listPending } = register.validators;
    const sealWhileListed = () => {
      register.validators.listPending = async (at, registerId, limit) => {
        register.validators.listPending = listPending;
        const listed = await listPending(at, registerId, limit);
        await register.seal(id);
        return listed;
      };
    };
    const one = await submit(1);
    const cursor = await register.database.pool.connect();
    await cursor.query('begin');
    await cursor.query(
      `select 1 from register_projections
        where register_no = (select register_no from registers where register_id = $1) for update`,
      [id],
    );
    sealWhileListed();
    const asked = idsOf();
    await Promise.race([asked, new Promise((resolve) => setTimeout(resolve, 300))]);
    await cursor.query('rollback');
    cursor.release();
    expect(await asked).toEqual([one, ...before]);

    const two = await submit(2);
    const { freshness } = register.ledger.deps.queries;
    const settle = vi.spyOn(freshness, 'settle').mockImplementationOnce(async (_, headers) => {
      await register.seal(id);
      return freshness.settle(await register.state(id), headers);
    });
    expect(await idsOf()).toEqual([two, one, ...before]);
    expect(settle).toHaveBeenCalledTimes(2);
    settle.mockRestore();

    const three = await submit(3);
    sealWhileListed();
    expect(await idsOf(`?before=${three}`)).toEqual([two, one, ...before]);
  });
});
