import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';

describe('submission of genesis to the validators', () => {
  let register: TestRegister;
  beforeAll(async () => {
    register = await startTestRegister('genesis');
    register.wallets.own('admin', testKey(1));
  });
  afterAll(() => register.stop());

  async function begin(): Promise<string> {
    const begun = await register.call('POST', '/api/registers/initiate', {
      token: 'admin',
      body: { title: 'x' },
    });
    const { registerId, nonce } = begun.body;
    const body = { registerId, nonce, autoAttest: true };
    await register.call('POST', '/api/registers/finalize', { token: 'admin', body });
    return registerId;
  }

  const work = async () => (await register.database.pool.query('select * from genesis_work')).rows;

  it('continues after outages of the wallet service and the validators, and ends with docket 0', async () => {
    const { wallets, validators } = register;
    const sign = wallets.signControl;
    let refusals = 0;
    wallets.signControl = async () => {
      refusals += 1;
      wallets.signControl = sign;
      throw new AppError('unavailable', 'UNAVAILABLE', 'away');
    };
    validators.refuseNext({ status: 503, body: {}, retryAfterSeconds: 1 });
    const registerId = await begin();
    await waitFor(() => validators.pooled(registerId).length > 0, { deadlineMs: 20_000 });
    expect(refusals).toBe(1);
    const [row] = await work();
    expect(row.attempts).toBeGreaterThanOrEqual(3);
    const early = await register.call('POST', `/api/registers/${registerId}/transactions`, {
      token: 'admin',
      body: { senderAddress: testKey(1).walletAddress, payload: 'MQ==' },
    });
    expect([early.status, early.body.code, early.headers['retry-after']]).toEqual([
      503,
      'REGISTER_NOT_READY',
      '1',
    ]);
    await register.seal(registerId);
    expect(await work()).toEqual([]);
  });

  it('accepts no other docket 0 than that of its genesis', async () => {
    const registerId = await begin();
    await waitFor(() => register.validators.pooled(registerId).length > 0);
    const bundle = await register.propose(registerId);
    const { header } = bundle;
    const config = JSON.stringify({ ...JSON.parse(header.genesisConfig ?? '{}'), networkId: 'other' });
    const results = [
      await register.ledger.writeDocket({ ...bundle, header: { ...header, genesisConfig: config } }),
      await register.ledger.writeDocket({ ...bundle, header: { ...header, isGenesis: false } }),
    ];
    expect(results.map((result) => result.outcome)).toEqual(['invalid', 'invalid']);
    const shown = await register.call('GET', `/api/registers/${registerId}`, { token: 'admin' });
    expect(shown.body).toMatchObject({ status: 'Checking', height: 0 });
  });

  it('accepts no docket 0 with another genesis transaction', async () => {
    const registerId = await begin();
    await waitFor(() => register.validators.pooled(registerId).length > 0);
    const change = 'update registers set genesis_transaction_id = $1 where register_id = $2';
    await register.database.pool.query(change, ['f'.repeat(64), registerId]);
    const other = await register.ledger.writeDocket(await register.propose(registerId));
    expect(other).toMatchObject({ outcome: 'invalid', violations: [{ code: 'VAL_PERM_002' }] });
  });

  it('answers for a register without dockets', async () => {
    const registerId = await begin();
    const get = (rest: string) =>
      register.call('GET', `/api/registers/${registerId}${rest}`, { token: 'admin' });
    expect((await get('/dockets')).body).toMatchObject({ items: [], totalCount: 0, hasMore: false });
    expect((await get('/dockets/latest')).body.code).toBe('DOCKET_NOT_FOUND');
    expect((await get('/transactions')).body).toMatchObject({ items: [], totalCount: 0 });
    expect((await get('/checkpoint')).body.code).toBe('REGISTER_NOT_READY');
    expect((await get('/proofs/consistency?from=1')).status).toBe(400);
  });
});
