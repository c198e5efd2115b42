import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { application, startPermits } from '../testing/permits.ts';

type Permits = Awaited<ReturnType<typeof startPermits>>;

describe('actions', () => {
  let permits: Permits;

  beforeAll(async () => {
    permits = await startPermits('blueprint_actions');
  });
  afterAll(() => permits.world.stop());
  beforeEach(() => permits.reset());

  it('walk a permit through an encrypted register', async () => {
    await permits.prepare(false);
    const first = await permits.done(0, application, { token: 'user' });
    expect(first).toMatchObject({
      currentStep: 4,
      totalSteps: 4,
      stepName: 'Done',
      percentComplete: 100,
      transactionHash: permits.sealed()[0]?.record.txId,
    });
    expect(permits.world.sealing.submissions[0]).not.toMatch(/AB-1234|siteReference|ann@example/);
    expect(permits.sealed()[0]?.record.recipients).toEqual(
      [permits.wallets.office, permits.wallets.board].sort(),
    );
    const reason = 'The floor area is not that of the plans.';
    const rejection = await permits.world.call(
      'POST',
      `/api/instances/${permits.at.instanceId}/actions/1/reject`,
      {
        token: 'designer',
        body: { reason, fieldErrors: { '/floorAreaM2': 'too small' } },
      },
    );
    expect([rejection.status, rejection.body]).toMatchObject([
      200,
      {
        instanceId: permits.at.instanceId,
        targetActionId: 0,
        targetParticipantId: 'applicant',
        isTerminal: false,
      },
    ]);
    expect(permits.sealed()[1]?.record).toMatchObject({
      type: 'Rejection',
      txId: rejection.body.transactionHash,
    });
    expect(permits.world.sealing.submissions.join()).not.toContain(reason);
    await permits.world.runner.settle();
    await permits.done(0, { ...application, floorAreaM2: 700 }, { token: 'user' });
    await permits.done(1, { safetyScore: 80 }, { token: 'designer', wallet: permits.wallets.board });
    const decided = { decision: 'approved', permitNumber: 'P000001', validFrom: '2027-01-01' };
    const decision = await permits.execute(2, decided, { token: 'admin', wallet: permits.wallets.office });
    expect([decision.status, decision.body.errors]).toEqual([202, undefined]);
    await permits.world.runner.settle();
    expect(await permits.instance()).toMatchObject({ currentActionIds: [3], completedActionCount: 4 });
    await permits.done(3, { collected: true }, { token: 'user' });
    expect(await permits.instance()).toMatchObject({ state: 'Completed', currentActionIds: [] });
    const ended = await permits.execute(3, { collected: true });
    expect([ended.status, ended.body.code]).toEqual([409, 'INSTANCE_TERMINAL']);
    const rows = await permits.world.db.read.selectFrom('operations').selectAll().execute();
    for (const row of rows) {
      expect([row.sealed_input, row.sealed_delegation, row.draft]).toEqual([null, null, null]);
    }
  });

  it('walk it through a register of development, and answer with the result', async () => {
    await permits.prepare(true);
    const { status, body } = await permits.apply();
    expect([status, body.code]).toEqual([200, undefined]);
    expect(body).toMatchObject({
      accepted: true,
      instanceId: permits.at.instanceId,
      calculations: { riskTier: 'high', feeMinor: 15_500 },
      nextActions: [{ actionId: 1, participantId: 'safety-board' }],
      isComplete: false,
      warnings: [],
    });
    expect(body.pending).toBeUndefined();
    expect(body.transactionHash).toBe(permits.sealed()[0]?.record.txId);
    expect(JSON.parse(body.serializedTransaction).Payload.data).toMatchObject(application);
  });

  it('refuse what is wrong with a step before there is an operation', async () => {
    await permits.prepare(false);
    const code = async (answer: ReturnType<Permits['execute']>) => {
      const { status, body } = await answer;
      return [status, body.code];
    };
    const known = permits.at.instanceId;
    permits.at.instanceId = randomUUID();
    expect(await code(permits.apply())).toEqual([404, 'INSTANCE_NOT_FOUND']);
    permits.at.instanceId = known;
    expect(await code(permits.apply({ wallet: permits.wallets.office }))).toEqual([403, 'WALLET_NOT_OWNED']);
    expect(await code(permits.execute(9, {}))).toEqual([404, 'ACTION_NOT_FOUND']);
    expect(await code(permits.execute(2, {}, { token: 'admin', wallet: permits.wallets.office }))).toEqual([
      409,
      'ACTION_NOT_CURRENT',
    ]);
    expect(await code(permits.apply({ more: { actionId: '1' } }))).toEqual([400, 'INVALID_REQUEST']);
    expect(await code(permits.apply({ more: { previousTransactionHash: 'a'.repeat(64) } }))).toEqual([
      409,
      'STALE_PREDECESSOR',
    ]);
    const invalid = await permits.execute(0, { ...application, floorAreaM2: 0, surplus: 1 });
    expect([invalid.status, invalid.body.code]).toEqual([422, 'PAYLOAD_INVALID']);
    expect(invalid.body.errors.map((each: { keyword: string }) => each.keyword).sort()).toEqual([
      'additionalProperties',
      'minimum',
    ]);
    expect(await code(permits.apply({ headers: { 'x-delegation-token': 'forged' } }))).toEqual([
      403,
      'DELEGATION_INVALID',
    ]);
    permits.world.answers.validatorsLackingPins = ['validator-0'];
    expect(await code(permits.apply())).toEqual([503, 'VALIDATOR_TOO_OLD']);
    delete permits.world.answers.validatorsLackingPins;
    permits.world.sealing.participantKeys.push({
      address: permits.wallets.board,
      status: 'Revoked',
      algorithm: '',
      publicKey: '',
    });
    expect(await code(permits.apply())).toEqual([422, 'RECIPIENT_REVOKED']);
    permits.world.sealing.participantKeys.splice(0);
    permits.world.keys.setStatus(permits.wallets.board, 'Revoked');
    const revoked = await permits.apply();
    expect([revoked.body.code, revoked.body.wallets]).toEqual(['RECIPIENT_REVOKED', [permits.wallets.board]]);
    permits.world.keys.setStatus(permits.wallets.board, 'Locked');
    const unknown = await permits.apply();
    expect([unknown.body.code, unknown.body.wallets]).toEqual([
      'RECIPIENT_KEY_UNRESOLVED',
      [permits.wallets.board],
    ]);
    permits.world.keys.setStatus(permits.wallets.board, 'Active');
    await permits.done(0, application, { token: 'user' });
    expect(await code(permits.execute(1, { safetyScore: 1 }))).toEqual([403, 'SENDER_NOT_PARTICIPANT']);
    const stranger = permits.world.wallets.get('stranger')?.[0] ?? '';
    expect(await code(permits.execute(1, {}, { token: 'stranger', wallet: stranger }))).toEqual([
      403,
      'INSTANCE_ACCESS_DENIED',
    ]);
    const made = await permits.world.db.read
      .selectFrom('operations')
      .selectAll()
      .where('instance_id', '=', permits.at.instanceId)
      .execute();
    expect(made).toHaveLength(1);
  });

  it('are rejected by the participant who takes them, and with a reason', async () => {
    await permits.prepare(true);
    const first = await permits.apply();
    const reject = (token: string, body: object) =>
      permits.world.call('POST', '/api/actions/reject', {
        token,
        body: {
          transactionHash: first.body.transactionHash,
          registerAddress: permits.at.registerId,
          ...body,
        },
      });
    const missing = await reject('designer', { senderWallet: permits.wallets.board });
    expect([missing.status, missing.body.code]).toEqual([400, 'REJECTION_REASON_REQUIRED']);
    const foreign = await reject('user', { senderWallet: permits.wallets.applicant, reason: 'no' });
    expect([foreign.status, foreign.body.code]).toEqual([403, 'SENDER_NOT_PARTICIPANT']);
    const done = await reject('designer', { senderWallet: permits.wallets.board, reason: 'no' });
    expect([done.status, done.body.targetActionId]).toEqual([200, 0]);
    const again = await reject('designer', { senderWallet: permits.wallets.board, reason: 'no' });
    expect([again.status, again.body.code]).toEqual([409, 'ACTION_NOT_CURRENT']);
    const start = await permits.world.call(
      'POST',
      `/api/instances/${permits.at.instanceId}/actions/0/reject`,
      {
        token: 'user',
        body: { reason: 'no' },
      },
    );
    expect([start.status, start.body.code]).toEqual([409, 'REJECTION_NOT_ALLOWED']);
  });

  it.each([false, true])(
    'show each participant its own view alone (development mode: %s)',
    async (devMode) => {
      await permits.prepare(devMode);
      const read = async (token: string, path = '/disclosures') =>
        (await permits.world.call('GET', `/api/workflows/${permits.at.instanceId}${path}`, { token })).body;
      await permits.apply();
      await permits.world.runner.settle();
      const fields = async (token: string) => Object.keys((await read(token)).disclosedFields).sort();
      expect(await fields('designer')).toEqual(['floorAreaM2', 'hazardous', 'riskTier', 'siteReference']);
      expect(await fields('admin')).toHaveLength(7);
      expect(await read('stranger')).toEqual({
        instanceId: permits.at.instanceId,
        actionId: 1,
        registerId: permits.at.registerId,
        recipientResolved: false,
        disclosures: [],
        disclosedFields: {},
        warnings: [],
      });
      expect((await read('user', '/actions/9/disclosures')).code).toBe('ACTION_NOT_FOUND');
      const reason = 'The plans are missing.';
      const headers = { 'x-delegation-token': 'forged' };
      await permits.world.call('POST', `/api/instances/${permits.at.instanceId}/actions/1/reject`, {
        token: 'designer',
        body: { reason },
      });
      await permits.world.runner.settle();
      expect((await read('user')).disclosures).toMatchObject([
        { actionId: 0 },
        { actionId: 1, data: { reason } },
      ]);
      expect((await read('admin')).disclosures).toHaveLength(1);
      const state = (token: string, more: object = {}) =>
        permits.world.call('GET', `/api/instances/${permits.at.instanceId}/state`, { token, ...more });
      const own = await state('designer');
      expect(own.headers['cache-control']).toBe('no-store');
      expect(own.body).toMatchObject({
        instanceId: permits.at.instanceId,
        actionCount: 1,
        previousTransactionId: permits.sealed()[1]?.record.txId,
        actions: { 0: { txId: permits.sealed()[0]?.record.txId, data: { riskTier: 'high' } } },
        merged: { floorAreaM2: 620 },
        missing: [],
      });
      expect(own.body.merged.contact).toBeUndefined();
      expect((await state('stranger')).status).toBe(403);
      expect((await state('user', { headers })).status).toBe(devMode ? 200 : 403);
    },
  );

  it('are listed for the wallet that takes them, and read by those who take part', async () => {
    await permits.prepare(false);
    const { office, board, stranger, applicant } = permits.wallets;
    await permits.done(0, application, { token: 'user' });
    const { registerId, blueprintId, instanceId } = permits.at;
    const read = (token: string, wallet: string, path = '') =>
      permits.world.call('GET', `/api/actions/${wallet}/${registerId}${path}`, { token });
    const mine = await read('designer', board);
    expect(mine.body).toMatchObject({ totalCount: 1, items: [{ instanceId, actionId: 1, isCurrent: true }] });
    expect((await read('admin', office)).body.totalCount).toBe(0);
    expect((await read('admin', board)).status).toBe(403);
    const available = async (token: string, wallet: string) => {
      const { blueprints } = (await read(token, wallet, '/blueprints')).body;
      const [found] = blueprints.filter((each: { blueprintId: string }) => each.blueprintId === blueprintId);
      const actions = found.availableActions as { actionId: number; isAvailable: boolean }[];
      return actions.map(({ actionId, isAvailable }) => [actionId, isAvailable]);
    };
    expect(await available('designer', board)).toEqual([
      [0, true],
      [1, true],
      [3, false],
    ]);
    expect(await available('user', applicant)).toEqual([
      [0, true],
      [3, false],
    ]);
    const txId = permits.sealed()[0]?.record.txId;
    expect((await read('designer', board, `/${txId}`)).body).toMatchObject({
      transactionHash: txId,
      actionId: '0',
      senderWallet: applicant,
      payloadData: { floorAreaM2: 620, riskTier: 'high' },
    });
    expect((await read('stranger', stranger, `/${txId}`)).body.code).toBe('INSTANCE_NOT_FOUND');
  });

  it('act once for an Idempotency-Key', async () => {
    await permits.prepare(false);
    const headers = { 'idempotency-key': randomUUID() };
    const first = await permits.apply({ headers });
    const again = await permits.apply({ headers });
    await permits.world.runner.settle();
    const later = await permits.apply({ headers });
    const ids = [again, later].map(({ body }) => body.operationId);
    expect(ids).toEqual([first.body.operationId, first.body.operationId]);
    expect(permits.sealed()).toHaveLength(1);
    const other = await permits.execute(0, { ...application, floorAreaM2: 1 }, { headers });
    expect([other.status, other.body.code]).toEqual([409, 'IDEMPOTENCY_KEY_REUSED']);
  });

  it('begin an instance when none is named', async () => {
    await permits.prepare(false);
    const body = {
      blueprintId: permits.at.blueprintId,
      actionId: '0',
      senderWallet: permits.wallets.applicant,
      registerAddress: permits.at.registerId,
      previousTransactionHash: null,
      payloadData: application,
    };
    const begun = await permits.world.call('POST', '/api/actions', { token: 'user', body });
    expect([begun.status, begun.body.code]).toEqual([202, undefined]);
    expect(begun.headers.location).toBe(`/api/operations/${begun.body.operationId}`);
    await permits.world.runner.settle();
    permits.at.instanceId = begun.body.instanceId;
    expect(await permits.instance()).toMatchObject({ state: 'Active', currentActionIds: [1] });
    const late = await permits.world.call('POST', '/api/actions', {
      token: 'user',
      body: { ...body, actionId: 1 },
    });
    expect([late.status, late.body.code]).toEqual([400, 'INSTANCE_REQUIRED']);
  });
});
