import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memberDid } from '#core/ledger/did.ts';
import { buildDocket } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';

const owner = memberDid(testKey(1).walletAddress);

describe('policies of a register', () => {
  let register: TestRegister;
  beforeAll(async () => {
    register = await startTestRegister('policy');
    register.wallets.own('second', testKey(2));
  });
  afterAll(() => register.stop());

  const get = (id: string, rest: string, token = 'admin') =>
    register.call('GET', `/api/registers/${id}${rest}`, { token });
  const post = (id: string, rest: string, body: unknown, token = 'admin') =>
    register.call('POST', `/api/registers/${id}${rest}`, { token, body });
  const update = (id: string, policy: object, rest: object = {}) =>
    post(id, '/policy/update', { policy, updatedBy: owner, ...rest });

  it('the next version takes effect from the docket after its own, and every version stays readable', async () => {
    const id = await register.createRegister();
    const first = await get(id, '/policy');
    expect(first.body).toMatchObject({ registerId: id, isDefault: true, policy: { version: 1 } });
    const next = { version: 2, consensus: { maxTransactionsPerDocket: 2 } };
    const updated = await update(id, next, { transitionMode: 'immediate' });
    expect(updated.status).toBe(202);
    expect(updated.body).toMatchObject({ registerId: id, newVersion: 2, status: 'submitted' });
    const three = Array.from({ length: 3 }, (_, n) => transaction({ registerId: id, payload: { n } }));
    // The docket that introduces the limit is judged by the policy before it.
    const bringing = buildDocket(
      await register.state(id),
      [...register.validators.take(id, 10), ...three],
      register.members,
    );
    expect(await register.ledger.writeDocket(bringing)).toMatchObject({ outcome: 'stored' });
    const more = Array.from({ length: 3 }, (_, n) => transaction({ registerId: id, payload: { more: n } }));
    const tooMany = buildDocket(await register.state(id), more, register.members);
    expect(await register.ledger.writeDocket(tooMany)).toMatchObject({
      outcome: 'invalid',
      violations: [{ code: 'VAL_SIZE_001' }],
    });
    const { body } = await get(id, '/policy');
    expect(body).toMatchObject({
      isDefault: false,
      policy: { version: 2, updatedBy: owner, consensus: { maxTransactionsPerDocket: 2 } },
    });
    expect(body.policy.governance).toEqual(first.body.policy.governance);
    expect((await register.call('GET', `/api/registers/${id}`, { token: 'admin' })).body.policyVersion).toBe(
      2,
    );
    const history = await get(id, '/policy/history?pageSize=1');
    expect(history.body).toMatchObject({ totalCount: 2, hasMore: true, page: 1, pageSize: 1 });
    expect(history.body.items).toEqual(history.body.versions);
    expect(history.body.items[0]).toMatchObject({
      version: 2,
      txId: updated.body.txId,
      docketNumber: 1,
      effectiveFromDocket: 2,
      updatedBy: owner,
    });
    const older = await get(id, '/policy/history?pageSize=1&page=2');
    expect(older.body.items[0]).toMatchObject({ version: 1, docketNumber: 0, updatedBy: null });
  });

  it('stores names and texts that columns cannot hold, as they were signed', async () => {
    const id = await register.createRegister('Strange');
    const strange = { later: { 'n\u0000': 'a\u0000b', list: ['\u0000'] } };
    const answer = await update(id, strange, { justification: 'so' });
    expect(answer.status).toBe(202);
    await register.seal(id);
    expect((await get(id, '/policy')).body.policy).toMatchObject(strange);
    expect((await get(id, '/policy/history')).body.items[0].policy).toMatchObject(strange);
    expect((await get(id, '/governance/history')).body.items[0].txId).toBe(answer.body.txId);
  });

  it('refuses a policy that would stop the register permanently', async () => {
    const id = await register.createRegister('Stopping');
    for (const consensus of [{ precisionMs: 49 }, { messageDelayMs: 999 }, { maxTransactionBytes: 16_383 }]) {
      const { status, body } = await update(id, { consensus });
      expect([status, body.code], JSON.stringify(consensus)).toEqual([422, 'VAL_POLICY_005']);
    }
    const policy = { consensus: { precisionMs: 1 } };
    const body = { title: 'Stillborn', policy };
    const begun = await register.call('POST', '/api/registers/initiate', { token: 'admin', body });
    expect(begun.status).toBe(400);
  });

  it('refuses a repeated version, a malformed policy, and consent without a transition', async () => {
    const id = await register.createRegister('Public', {
      policy: { validators: { registrationMode: 'public' } },
    });
    const same = await update(id, { version: 1 });
    expect([same.status, same.body.code, same.body.currentVersion]).toEqual([
      409,
      'POLICY_VERSION_CONFLICT',
      1,
    ]);
    const ahead = await update(id, { version: 3 });
    expect(ahead.status).toBe(409);
    const closing = { validators: { registrationMode: 'consent' } };
    const hasty = await update(id, closing);
    expect([hasty.status, hasty.body.code]).toEqual([400, 'TRANSITION_MODE_REQUIRED']);
    const wrong = await update(id, { consensus: { maxTransactionsPerDocket: 0 } });
    expect([wrong.status, wrong.body.code]).toEqual([400, 'INVALID_POLICY']);
    const mechanism = await update(id, { leaderElection: { mechanism: 'raft' } });
    expect([mechanism.status, mechanism.body.code]).toEqual([422, 'MECHANISM_NOT_SUPPORTED']);
    expect((await post(id, '/policy/update', { policy: {} })).status).toBe(400);
    expect((await update(id, closing, { transitionMode: 'GracePeriod' })).status).toBe(202);
  });

  it('accepts an update only from its own author on the roster', async () => {
    const id = await register.createRegister();
    const body = { policy: { version: 2 }, updatedBy: owner };
    expect((await post(id, '/policy/update', body, 'user')).status).toBe(403);
    const borrowed = await post(id, '/policy/update', body, 'second');
    expect([borrowed.status, borrowed.body.code]).toEqual([403, 'NOT_ON_ROSTER']);
    const other = { ...body, updatedBy: memberDid(testKey(2).walletAddress) };
    expect((await post(id, '/policy/update', other, 'second')).body.code).toBe('NOT_ON_ROSTER');
    expect((await register.call('POST', `/api/registers/${id}/policy/update`, { body })).status).toBe(401);
    expect((await post('a'.repeat(32), '/policy/update', body)).status).toBe(404);
  });

  it('of two updates with the same version one is sealed, and the validators refuse the other', async () => {
    const id = await register.createRegister();
    await update(id, { version: 2, governance: { proposalTtlDays: 3 } });
    await update(id, { version: 2, governance: { proposalTtlDays: 4 } });
    const both = register.validators.take(id, 10);
    expect(both).toHaveLength(2);
    const bundle = buildDocket(await register.state(id), both, register.members);
    expect(await register.ledger.writeDocket(bundle)).toMatchObject({
      outcome: 'invalid',
      violations: [{ code: 'VAL_POLICY_004', field: expect.stringContaining('transactions[1]') }],
    });
    const [first] = both;
    if (first === undefined) throw new Error('nothing pooled');
    const one = buildDocket(await register.state(id), [first], register.members);
    expect(await register.ledger.writeDocket(one)).toMatchObject({ outcome: 'stored' });
    expect((await get(id, '/policy/history')).body.totalCount).toBe(2);
  });

  it('keeps unknown members, and removes those set to null', async () => {
    const id = await register.createRegister();
    await update(id, { version: 2, governance: { newer: { deep: 1 } }, strange: true });
    await register.seal(id);
    await update(id, { consensus: { maxTransactionsPerDocket: 7 }, strange: null });
    await register.seal(id);
    const { policy } = (await get(id, '/policy')).body;
    expect(policy).toMatchObject({
      version: 3,
      governance: { newer: { deep: 1 } },
      consensus: { maxTransactionsPerDocket: 7 },
    });
    expect(policy).not.toHaveProperty('strange');
  });

  it('opens a proposal where other members must agree', async () => {
    const id = await register.createRegister();
    const operation = {
      operationType: 'add-member',
      targetDid: memberDid(testKey(2).walletAddress),
      targetRole: 'Admin',
    };
    expect((await post(id, '/governance/propose', operation)).status).toBe(202);
    await register.seal(id);
    const updated = await update(id, { version: 2 });
    expect(updated.body).toMatchObject({ requiresGovernanceVote: true, proposalId: updated.body.txId });
    await register.seal(id);
    expect((await get(id, '/policy')).body.policy.version).toBe(1);
  });
});

describe('development mode and the crypto policy', () => {
  let register: TestRegister;
  beforeAll(async () => {
    register = await startTestRegister('dev-mode');
  });
  afterAll(() => register.stop());

  const get = (id: string, rest: string) =>
    register.call('GET', `/api/registers/${id}${rest}`, { token: 'admin' });
  const post = (id: string, rest: string, body?: unknown, token = 'admin') =>
    register.call('POST', `/api/registers/${id}${rest}`, {
      token,
      ...(body !== undefined && { body }),
    });
  const create = () => register.createRegister('In development', { devMode: true });

  it('development mode is turned off once, permanently', async () => {
    const id = await create();
    expect((await get(id, '')).body.devMode).toBe(true);
    const first = await post(id, '/disable-dev-mode');
    expect(first.status).toBe(200);
    expect(first.body).toMatchObject({ registerId: id, policyVersion: 2, status: 'submitted' });
    expect((await get(id, '')).body.devMode).toBe(true);
    await register.seal(id);
    expect((await get(id, '')).body.devMode).toBe(false);
    const again = await post(id, '/disable-dev-mode');
    expect([again.status, again.body.code]).toEqual([409, 'DEV_MODE_ALREADY_DISABLED']);
    const back = await post(id, '/governance/crypto-policy', { cryptoPolicy: { devMode: true } });
    expect([back.status, back.body.code]).toEqual([422, 'VAL_POLICY_003']);
    const history = await get(id, '/crypto-policy/history');
    expect(history.body.items).toMatchObject([
      { version: 2, txId: first.body.txId, cryptoPolicy: { devMode: false } },
      { version: 1, cryptoPolicy: { devMode: true } },
    ]);
    const sealed = await get(id, `/transactions/${first.body.txId}`);
    expect(sealed.body).toMatchObject({
      blueprintId: 'register-governance-v1',
      actionId: 'control.crypto.update',
      transactionType: 'Control',
      metadata: { Type: 'Control', transactionType: 'CryptoPolicyUpdate', policyVersion: '2' },
    });
  });

  it('answers 403 for users, 422 when validators refuse, 502 without validators', async () => {
    const id = await create();
    expect((await post(id, '/disable-dev-mode', undefined, 'user')).status).toBe(403);
    register.validators.refuseNext({ status: 422, body: { code: 'VAL_POLICY_004' }, retryAfterSeconds: 0 });
    const refused = await post(id, '/disable-dev-mode');
    expect([refused.status, refused.body.code, refused.body.reason]).toEqual([
      422,
      'POLICY_UPDATE_REJECTED',
      'VAL_POLICY_004',
    ]);
    register.validators.down = true;
    const away = await post(id, '/disable-dev-mode');
    register.validators.down = false;
    expect(away.status).toBe(502);
    expect((await get(id, '')).body.devMode).toBe(true);
  });

  it('holds signatures to the algorithms of the crypto policy from the next docket on', async () => {
    const id = await create();
    const narrowed = { cryptoPolicy: { acceptedSignatureAlgorithms: ['NISTP256'] } };
    const refused = await post(id, '/governance/crypto-policy', narrowed);
    expect([refused.status, refused.body.code]).toEqual([422, 'VAL_POLICY_007']);
    const required = { cryptoPolicy: { requiredSignatureAlgorithms: ['ED25519'] } };
    expect((await post(id, '/governance/crypto-policy', required)).status).toBe(202);
    await register.seal(id);
    expect((await get(id, '/crypto-policy')).body.cryptoPolicy).toMatchObject({
      version: 2,
      requiredSignatureAlgorithms: ['ED25519'],
    });
    const malformed = await post(id, '/governance/crypto-policy', { cryptoPolicy: { devMode: 'yes' } });
    expect([malformed.status, malformed.body.code]).toEqual([400, 'INVALID_POLICY']);
    const stale = await post(id, '/governance/crypto-policy', { cryptoPolicy: { version: 2 } });
    expect([stale.status, stale.body.currentVersion]).toEqual([409, 2]);
  });
});
