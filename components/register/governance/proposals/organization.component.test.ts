import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memberDid } from '#core/ledger/did.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { testKey } from '../../testing/keys.ts';
import { organizationId, startTestRegister, type TestRegister } from '../../testing/register.ts';

const [wallet, derived, member] = [testKey(20), testKey(21), testKey(2)];
const owner = memberDid(derived.walletAddress);

describe('governance with the wallet of an organisation', () => {
  let register: TestRegister;
  let registerId: string;
  beforeAll(async () => {
    register = await startTestRegister('organization-governance');
    const { wallets } = register;
    wallets.ownByOrganization({ organizationId, key: wallet, derived, tokens: ['admin'] });
    wallets.own('second', member);
    registerId = await register.createRegister('Ours', { owners: [{ walletAddress: wallet.walletAddress }] });
  });
  afterAll(() => register.stop());

  const path = (rest: string) => `/api/registers/${registerId}${rest}`;
  const post = (rest: string, body: unknown, token = 'admin') =>
    register.call('POST', path(rest), { token, body });
  const add = {
    operationType: 'add-member',
    targetDid: memberDid(member.walletAddress),
    targetRole: 'Auditor',
  };

  it('signs with the key that the wallet derives, for callers with the grant', async () => {
    const roster = await register.call('GET', path('/governance/roster'), { token: 'user' });
    expect(roster.body.members).toMatchObject([{ did: owner, role: 'Owner' }]);
    const refused = await post('/governance/propose', add, 'user');
    expect([refused.status, refused.body.code]).toEqual([403, 'NOT_ON_ROSTER']);
    const answer = await post('/governance/propose', add);
    expect(answer.status).toBe(202);
    await register.seal(registerId);
    const sealed = await register.call('GET', path(`/transactions/${answer.body.txId}`), { token: 'admin' });
    expect(sealed.body).toMatchObject({
      senderAddress: derived.walletAddress,
      signatures: [{ publicKey: derived.publicKey }],
    });
  });

  it('updates the policy as the member with that key', async () => {
    const update = { policy: { governance: { proposalTtlDays: 3 } }, updatedBy: owner };
    expect((await post('/policy/update', update)).status).toBe(202);
    await register.seal(registerId);
    const policy = await register.call('GET', path('/policy'), { token: 'admin' });
    expect(policy.body.policy).toMatchObject({ version: 2, updatedBy: owner });
    const asWallet = { ...update, updatedBy: memberDid(wallet.walletAddress) };
    expect((await post('/policy/update', asWallet)).body.code).toBe('NOT_ON_ROSTER');
  });

  it('deletes for callers who may sign for the owner, and for no other member of the organisation', async () => {
    for (const token of ['user', 'second']) {
      const refused = await register.call('DELETE', path(''), { token });
      expect([refused.status, refused.body.code], token).toEqual([403, 'DELETE_NOT_ATTESTED']);
    }
    const own = await register.call('PUT', path(''), { token: 'user', body: { advertise: true } });
    expect(own.status).toBe(403);
    expect((await register.call('DELETE', path(''), { token: 'admin' })).status).toBe(204);
    await waitFor(() => register.validators.stopped.includes(`validator-0 ${registerId}`));
  });
});
