import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testKey } from '../../testing/keys.ts';
import { type Managed, operatorKey, startManaged } from './managed.fixture.ts';

describe('sandbox registers', () => {
  const ownKey = testKey(33);
  let managed: Managed;
  beforeAll(async () => {
    managed = await startManaged('sandbox');
    managed.register.wallets.own('blueprint', ownKey);
  });
  afterAll(() => managed.register.stop());

  const put = (organizationId: string, token = 'blueprint', body: object = {}) =>
    managed.register.call('PUT', `/api/internal/sandboxes/${organizationId}`, {
      token,
      body: { walletAddress: ownKey.walletAddress, ...body },
    });

  it('are one of an organisation, also when concurrent calls ask for it', async () => {
    const organizationId = randomUUID();
    const before = await managed.count();
    const answers = await Promise.all(Array.from({ length: 4 }, () => put(organizationId)));
    const made = answers.find(({ status }) => status === 200);
    const again = await put(organizationId);
    expect([again.status, again.body]).toEqual([200, made?.body]);
    expect(again.body.hasBegun).toBe(true);
    expect(await managed.count()).toBe(before + 1);
    expect((await put(randomUUID())).body.registerId).not.toBe(again.body.registerId);
  });

  it('are in development mode, marked, not advertised, and owned by the service', async () => {
    const organizationId = randomUUID();
    const { registerId } = (await put(organizationId)).body;
    await managed.sealed(registerId);
    const { body } = await managed.get(registerId);
    expect(body).toMatchObject({
      organizationId,
      title: 'Rehearsals',
      purpose: 'General',
      devMode: true,
      metadata: { sandbox: 'true' },
      phase: 'Online',
      roster: [{ walletAddress: ownKey.walletAddress, role: 'Owner' }],
    });
    expect(body.validators.size).toBe(5);
    const { rows } = await managed.register.database.pool.query(
      'select advertise from registers where register_id = $1',
      [registerId],
    );
    expect(rows).toEqual([{ advertise: false }]);
  });

  it.each(['operator', 'admin', 'system', 'user', 'validator'])('%s gets none', async (token) => {
    const before = await managed.count();
    expect((await put(randomUUID(), token)).status).toBe(403);
    expect(await managed.count()).toBe(before);
  });

  it('nothing of them can be chosen, and no wallet of somebody else owns one', async () => {
    for (const chosen of [
      { devMode: false },
      { title: 'Loans' },
      { validators: ['validator-0'] },
      { registerId: '0'.repeat(32) },
    ])
      expect((await put(randomUUID(), 'blueprint', chosen)).status).toBe(400);
    expect((await put('no-id')).status).toBe(404);
    const before = await managed.count();
    const organizationId = randomUUID();
    const foreign = await put(organizationId, 'blueprint', { walletAddress: operatorKey.walletAddress });
    expect([foreign.status, foreign.body.hasBegun]).toEqual([200, false]);
    expect(await managed.count()).toBe(before);
    expect((await put(organizationId)).body).toEqual({ registerId: foreign.body.registerId, hasBegun: true });
  });
});
