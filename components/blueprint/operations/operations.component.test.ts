import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { application, startPermits } from '../testing/permits.ts';

type Permits = Awaited<ReturnType<typeof startPermits>>;

describe('operations', () => {
  let permits: Permits;

  beforeAll(async () => {
    permits = await startPermits('blueprint_operations');
  });
  afterAll(() => permits.world.stop());
  beforeEach(() => permits.reset());

  it('start an instance once, and again when the start failed', async () => {
    await permits.prepare(false);
    permits.world.keys.hooks.beforeSign = () => {
      throw new Error('killed');
    };
    const first = await permits.apply();
    const second = await permits.apply();
    expect([second.status, second.body.code]).toEqual([409, 'ACTION_NOT_CURRENT']);
    await permits.world.runner.settle();
    permits.world.clock.advance(301_000);
    permits.world.keys.hooks.beforeSign = undefined;
    await permits.world.runner.takeUp();
    await permits.world.runner.settle();
    expect(await permits.operation(first.body.operationId)).toMatchObject({
      status: 'Failed',
      transactionHash: null,
      error: { code: 'AUTHORITY_EXPIRED', step: 3 },
    });
    expect(permits.sealed()).toHaveLength(0);
    await permits.done(0, application, { token: 'user' });
  });

  /** Goes on with what a process left that was killed at a point. */
  async function afterKill(): Promise<void> {
    await permits.world.runner.settle();
    permits.world.clock.advance(15_000);
    const other = permits.world.startRunner('two');
    await other.takeUp();
    await other.settle();
    await other.stop();
  }

  describe.each([
    ['behind 202, before the envelope', 'build'],
    ['between the signature and its commit', 'sign'],
    ['before the submission', 'submit'],
    ['between the submission and its answer', 'answer'],
  ])('killed %s', (_name, point) => {
    it('go on with the same bytes and are sealed once', async () => {
      await permits.prepare(false);
      let kills = 0;
      const kill = () => {
        kills += 1;
        if (kills === 1) throw new Error('killed');
      };
      if (point === 'build') permits.world.keys.hooks.beforeFindKey = kill;
      if (point === 'sign') permits.world.keys.hooks.afterSign = kill;
      if (point === 'submit') permits.world.sealing.hooks.beforeSubmit = kill;
      if (point === 'answer') permits.world.sealing.hooks.afterSubmit = kill;
      permits.world.keys.signatures.splice(0);
      const { body } = await permits.apply();
      await afterKill();
      expect(kills).toBeGreaterThan(0);
      expect(await permits.operation(body.operationId)).toMatchObject({ status: 'Complete' });
      expect(permits.sealed()).toHaveLength(1);
      expect(new Set(permits.world.sealing.submissions).size).toBe(1);
      expect(new Set(permits.world.keys.signatures).size).toBe(1);
      await permits.world.projector.catchUpRegister(permits.at.registerId);
      expect(await permits.instance()).toMatchObject({ currentActionIds: [1], completedActionCount: 1 });
    });
  });

  it('are evaluated anew behind a step that was first', async () => {
    await permits.prepare(false);
    await permits.done(0, application, { token: 'user' });
    const both = await Promise.all(
      [10, 20].map((safetyScore) =>
        permits.execute(1, { safetyScore }, { token: 'designer', wallet: permits.wallets.board }),
      ),
    );
    await permits.world.runner.settle();
    const ends = await Promise.all(both.map(({ body }) => permits.operation(body.operationId, 'designer')));
    expect(ends.map(({ status, error }) => error?.code ?? status).sort()).toEqual([
      'ACTION_NOT_CURRENT',
      'Complete',
    ]);
    expect(permits.sealed()).toHaveLength(2);
  });

  it('are sent again until they are sealed or cannot be any more', async () => {
    await permits.prepare(false);
    const register = permits.world.registers.get(permits.at.registerId);
    if (register === undefined) throw new Error('no register');
    permits.world.registers.set(permits.at.registerId, { ...register, isSealing: false });
    const { body } = await permits.apply();
    await permits.world.runner.settle();
    expect(await permits.operation(body.operationId)).toMatchObject({
      status: 'Failed',
      error: { code: 'SUBMISSION_EXPIRED', step: 4 },
    });
    expect(permits.world.sealing.submissions.length).toBeGreaterThan(10);
    expect(new Set(permits.world.sealing.submissions).size).toBe(1);
  });

  it('wake followers of events for events alone, and each request at the end of its own operation', async () => {
    const { world } = permits;
    await permits.prepare(false);
    const countEvents = async (): Promise<number> => {
      const text = "select count(*)::int as count from outbox where kind = 'OperationChanged'";
      return (await world.db.pool.query(text)).rows[0].count;
    };
    const [events, wakes] = [await countEvents(), world.wakes.count];
    const held = Promise.withResolvers<void>();
    world.keys.hooks.beforeSign = () => held.promise;
    const { operationId } = (await permits.apply()).body;
    const waiting = [1, 2].map(() => world.runner.waitForEnd(operationId, 20_000));
    await expect
      .poll(() => world.runner.waitForEnd(operationId, 10), { timeout: 10_000 })
      .toMatchObject({ status: 'BuildingTransaction' });
    held.resolve();
    for (const ended of await Promise.all(waiting)) expect(ended).toMatchObject({ status: 'Complete' });
    await world.runner.settle();
    expect(await world.runner.waitForEnd(operationId, 10)).toMatchObject({ status: 'Complete' });
    expect(await world.runner.waitForEnd(randomUUID(), 10)).toBeUndefined();
    expect([await countEvents(), world.wakes.count]).toEqual([events + 2, wakes + 2]);
  });

  it('show operations to their owners alone', async () => {
    await permits.prepare(false);
    const { operationId } = (await permits.apply()).body;
    await permits.world.runner.settle();
    const foreign = await permits.world.call('GET', `/api/operations/${operationId}`, { token: 'stranger' });
    expect([foreign.status, foreign.body.code]).toEqual([404, 'OPERATION_NOT_FOUND']);
    const missing = await permits.world.call('GET', `/api/operations/${randomUUID()}`, { token: 'user' });
    expect(missing.body.code).toBe('OPERATION_NOT_FOUND');
    const list = (token: string, query = '') =>
      permits.world.call('GET', `/api/operations?wallet=${permits.wallets.applicant}${query}`, { token });
    const own = await list('user', '&pageSize=1');
    expect(own.body).toMatchObject({ page: 1, pageSize: 1, hasMore: true });
    expect(own.body.items[0]).toMatchObject({
      operationId,
      status: 'Complete',
      actionTitle: 'Apply',
      walletAddress: permits.wallets.applicant,
      recipientCount: 3,
      errorMessage: null,
    });
    expect((await list('stranger')).status).toBe(403);
    expect((await list('user', '&pageSize=51')).status).toBe(400);
  });
});
