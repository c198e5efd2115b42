import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { subscribe } from '../../registers/subscriptions/store.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';

const owner = testKey(1);
const tooFew = [422, 'VAL_PERM_011'];

describe('a removal while members are unreachable', () => {
  let register: TestRegister;
  let registerId = '';
  beforeAll(async () => {
    register = await startTestRegister('operational', { members: 4 });
    registerId = await register.createRegister();
    const { registerNo } = await register.database.read
      .selectFrom('registers')
      .select('register_no as registerNo')
      .where('register_id', '=', registerId)
      .executeTakeFirstOrThrow();
    await register.database.transact((tx) =>
      subscribe(tx, { organizationId: SYSTEM_ORGANIZATION_ID, registerNo, kind: 'Owner', at: new Date() }),
    );
  });
  afterAll(() => register.stop());
  afterEach(() => {
    register.validators.away.clear();
    register.wallets.own('admin', owner);
    register.validators.take(registerId, 100);
  });

  const act = async (validatorId: string, name: string, token = 'admin') => {
    const path = `/api/validators/${registerId}/${validatorId}/${name}`;
    const { status, body } = await register.call('POST', path, { token, body: {} });
    return [status, body.code];
  };
  const propose = async (body: object, query = '', token = 'admin') => {
    const path = `/api/registers/${registerId}/governance/propose${query}`;
    return register.call('POST', path, { token, body });
  };
  const waiting = () => register.validators.pooled(registerId).length;

  test('is refused when too few of the remaining members are operational, on every route', async () => {
    register.validators.away.add('validator-3');
    expect(await act('validator-1', 'suspend')).toEqual(tooFew);
    expect(await act('validator-1', 'reject')).toEqual(tooFew);
    for (const mode of ['auto', 'direct', 'proposal']) {
      const { status, body } = await propose({
        operationType: 'remove-validator',
        validatorId: 'validator-1',
        mode,
      });
      expect([status, body.code]).toEqual(tooFew);
      expect(body.error).toMatch(/3 that would be left 2 are operational, and 3 must vote/);
    }
    expect(waiting()).toBe(0);
  });

  test('is refused also when it is submitted with a signature', async () => {
    const asked = await propose({ operationType: 'suspend-validator', validatorId: 'validator-1' });
    expect(asked.status).toBe(202);
    const [sealed] = register.validators.take(registerId, 1);
    const payload = JSON.parse(Buffer.from(sealed?.payload ?? []).toString());
    register.validators.away.add('validator-3');
    const signature = { publicKey: owner.publicKey, signatureValue: 'AAAA', algorithm: 'ED25519' };
    const transaction = {
      transactionId: 'ab'.repeat(32),
      actionId: 'control.validator.suspend',
      payload,
      createdAt: '2026-11-21T12:00:00Z',
      metadata: { Type: 'Control' },
      signatures: [signature],
    };
    const { status, body } = await propose({ transaction });
    expect([status, body.code]).toEqual(tooFew);
  });

  test('is accepted when the removed member is the unreachable one, as are operations that remove no member', async () => {
    register.validators.away.add('validator-3');
    expect(await act('validator-3', 'suspend')).toEqual([202, undefined]);
    const target = `did:platform:w:${testKey(30).walletAddress}`;
    register.wallets.own('third', testKey(30));
    const added = await propose({ operationType: 'add-member', targetDid: target, targetRole: 'Auditor' });
    expect(added.status).toBe(202);
    expect(waiting()).toBe(2);
  });

  test('may be forced by system administrators only', async () => {
    register.validators.away.add('validator-3');
    expect(await act('validator-1', 'suspend?force=true')).toEqual(tooFew);
    const operation = { operationType: 'suspend-validator', validatorId: 'validator-2' };
    expect((await propose(operation, '?force=true')).body.code).toBe('VAL_PERM_011');
    register.wallets.own('system', owner);
    expect(await act('validator-1', 'suspend', 'system')).toEqual(tooFew);
    expect(await act('validator-1', 'suspend?force=true', 'system')).toEqual([202, undefined]);
    expect((await propose(operation, '?force=true', 'system')).status).toBe(202);
    expect((await propose(operation, '?force=perhaps', 'system')).status).toBe(400);
  });

  test('answers 503 when no member can be reached', async () => {
    for (const { validatorId } of register.validators.members) register.validators.away.add(validatorId);
    expect(await act('validator-1', 'suspend')).toEqual([503, 'VALIDATOR_UNAVAILABLE']);
  });
});
