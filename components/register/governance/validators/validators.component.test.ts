import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { validatorSetHash } from '#core/ledger/consensus.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import { buildDocket } from '../../testing/build-docket.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';

interface ListedValidator {
  readonly validatorId: string;
  readonly status: string;
}

describe('validators of a register', () => {
  let register: TestRegister;
  beforeAll(async () => {
    register = await startTestRegister('validators', { members: 4, spare: 2 });
  });
  afterAll(() => register.stop());
  // New registers include every validator that has announced itself.
  afterEach(() =>
    register.database.pool.query("delete from validator_directory where validator_id > 'validator-3'"),
  );

  const get = (path: string, token = 'admin') => register.call('GET', path, { token });
  const post = (path: string, body: unknown, token = 'admin') => register.call('POST', path, { token, body });
  const setAt = async (id: string) => {
    const { body } = await get(`/api/registers/${id}/validators/approved`);
    return body.validators.map((one: ListedValidator) => one.validatorId);
  };
  const spare = (index: number) => {
    const member = register.validators.members[4 + index];
    if (member === undefined) throw new Error('no spare validator');
    return member;
  };
  const next = (registerId: string, n: number) => transaction({ registerId, payload: { n } });

  async function registerSpare(id: string, validatorId = 'validator-4') {
    const answer = await post('/api/validators/register', { registerId: id, validatorId });
    expect(answer.status).toBe(202);
    await register.seal(id);
    return answer.body;
  }

  it('lists those of genesis as approved and operational', async () => {
    const id = await register.createRegister();
    const approved = await get(`/api/registers/${id}/validators/approved`);
    expect(approved.body).toMatchObject({ registerId: id, registrationMode: 'consent', count: 4, quorum: 3 });
    expect(approved.body.validators[0]).toMatchObject({
      validatorId: 'validator-0',
      did: expect.stringMatching(/^did:platform:w:/),
      publicKey: register.members[0]?.key.publicKey,
      approvedAt: expect.stringMatching(/Z$/),
      status: 'active',
      effectiveFromDocket: 0,
    });
    register.validators.away.add('validator-3');
    const operational = await get(`/api/registers/${id}/validators/operational`);
    register.validators.away.delete('validator-3');
    expect(operational.body.validators.map((one: ListedValidator) => one.validatorId)).toEqual([
      'validator-0',
      'validator-1',
      'validator-2',
    ]);
    expect(operational.body.validators[0]).toMatchObject({ status: 'active', isProposer: true });
    expect(operational.body.validators[0].ttlRemainingSeconds).toBeGreaterThan(0);
    register.validators.down = true;
    const nobody = await get(`/api/registers/${id}/validators/operational`);
    register.validators.down = false;
    expect([nobody.status, nobody.body.count]).toEqual([200, 0]);
  });

  it('an approved validator counts from the docket after its approval, and not before', async () => {
    const id = await register.createRegister();
    await register.introduce(spare(0));
    const registered = await registerSpare(id);
    expect(registered).toMatchObject({ validatorId: 'validator-4', status: 'pending' });
    const pending = await get(`/api/validators/${id}/pending`);
    expect(pending.body).toMatchObject({ count: 1, validators: [{ validatorId: 'validator-4' }] });
    expect(await setAt(id)).toHaveLength(4);
    const approved = await post(`/api/validators/${id}/validator-4/approve`, { approvalNotes: 'known' });
    expect([approved.status, approved.body.requiresGovernanceVote]).toEqual([202, false]);
    const bringing = await register.propose(id);
    const before = validatorSetHash((await register.state(id)).members);
    expect(bringing.header.validatorSetHash).toBe(before);
    expect(await register.ledger.writeDocket(bringing)).toMatchObject({ outcome: 'stored' });
    expect(await setAt(id)).toContain('validator-4');
    const state = await register.state(id);
    const tooFew = buildDocket(state, [next(id, 1)], register.members);
    expect(await register.ledger.writeDocket(tooFew)).toMatchObject({
      outcome: 'invalid',
      violations: [{ code: 'VAL_CERT_001' }],
    });
    const five = [...register.members, spare(0)];
    const right = buildDocket(state, [next(id, 2)], five);
    expect(right.header.validatorSetHash).not.toBe(before);
    expect(await register.ledger.writeDocket(right)).toMatchObject({ outcome: 'stored' });
    // Old dockets are verified with the set of their own height.
    expect(await register.ledger.writeDocket(bringing)).toMatchObject({ outcome: 'replayed' });
    const shown = await get(`/api/validators/${id}/validator-4`);
    expect(shown.body).toMatchObject({ status: 'active', effectiveFromDocket: 3 });
    expect((await get(`/api/validators/${id}/count`)).body).toMatchObject({
      count: 5,
      byStatus: { active: 5 },
    });
  });

  it('a removed validator no longer votes, and dockets that it sealed still verify', async () => {
    const id = await register.createRegister();
    const answer = await post(`/api/validators/${id}/validator-3/reject`, { reason: 'gone' });
    expect(answer.status).toBe(202);
    const bringing = await register.seal(id);
    const state = await register.state(id);
    expect(state.members.map((one) => one.validatorId)).toEqual([
      'validator-0',
      'validator-1',
      'validator-2',
    ]);
    const old = buildDocket(state, [next(id, 1)], register.members);
    expect(await register.ledger.writeDocket(old)).toMatchObject({ outcome: 'invalid' });
    await register.ledger.writeDocket(buildDocket(state, [next(id, 2)], register.members.slice(0, 3)));
    expect((await register.state(id)).height).toBe(3);
    expect(await register.ledger.writeDocket(bringing)).toMatchObject({ outcome: 'replayed' });
    const again = await post(`/api/validators/${id}/validator-3/reject`, {});
    expect([again.status, again.body.code]).toEqual([422, 'VAL_PERM_017']);
  });

  it('suspends a validator, and refuses a suspension that would leave too few', async () => {
    const id = await register.createRegister();
    expect((await post(`/api/validators/${id}/validator-1/suspend`, {})).status).toBe(202);
    await register.seal(id);
    expect((await register.state(id)).members).toHaveLength(3);
    const listed = await get(`/api/validators/${id}/validator-1`);
    expect(listed.body.status).toBe('suspended');
    const more = await post(`/api/validators/${id}/validator-2/suspend`, {});
    expect([more.status, more.body.code]).toEqual([422, 'VAL_PERM_011']);
  });

  it('seals no docket that changes more of the set than allowed', async () => {
    const id = await register.createRegister();
    for (const name of ['validator-1', 'validator-2']) {
      expect((await post(`/api/validators/${id}/${name}/suspend`, {})).status).toBe(202);
    }
    const bundle = buildDocket(await register.state(id), register.validators.take(id, 10), register.members);
    expect(await register.ledger.writeDocket(bundle)).toMatchObject({
      outcome: 'invalid',
      violations: [{ code: 'VAL_PERM_016' }],
    });
    expect((await register.state(id)).height).toBe(1);
  });

  it('admits a validator at once on a public register', async () => {
    const id = await register.createRegister('Public', {
      policy: { validators: { registrationMode: 'public' } },
    });
    await register.introduce(spare(0));
    expect(await registerSpare(id)).toMatchObject({ status: 'active' });
    expect((await register.state(id)).members).toHaveLength(5);
    expect((await get(`/api/validators/${id}/validator-4`)).body).not.toHaveProperty('approvedBy');
  });

  it('accepts a valid proof in the request, and no other one', async () => {
    const id = await register.createRegister();
    const { key, validatorId } = spare(1);
    const facts = { registerId: id, validatorId, publicKey: key.publicKey };
    const proof = encodeBase64(key.signer.sign(possessionBytes(facts)));
    const body = { registerId: id, validatorId, publicKey: key.publicKey };
    const forged = encodeBase64(key.signer.sign(possessionBytes({ ...facts, registerId: 'f'.repeat(32) })));
    const refused = await post('/api/validators/register', { ...body, proofOfPossession: forged });
    expect([refused.status, refused.body.code]).toEqual([400, 'VAL_SIG_002']);
    const taken = await post('/api/validators/register', { ...body, proofOfPossession: proof });
    expect(taken.status).toBe(202);
    await register.seal(id);
    const unknown = await post('/api/validators/register', { registerId: id, validatorId: 'validator-9' });
    expect([unknown.status, unknown.body.code]).toEqual([404, 'VALIDATOR_NOT_FOUND']);
  });

  it('is allowed for callers who manage registers', async () => {
    const id = await register.createRegister();
    const body = { registerId: id, validatorId: 'validator-4' };
    expect((await post('/api/validators/register', body, 'user')).status).toBe(403);
    expect((await post(`/api/validators/${id}/validator-1/suspend`, {}, 'user')).status).toBe(403);
    expect((await post(`/api/validators/${id}/nobody/approve`, {})).status).toBe(404);
    expect((await get(`/api/validators/${id}`, 'stranger')).status).toBe(404);
    expect((await get(`/api/validators/${id}`)).body.count).toBe(4);
    expect((await post(`/api/validators/${id}/refresh`, undefined)).body).toHaveProperty('refreshedAt');
    expect((await get('/api/validators/none')).status).toBe(404);
  });
});
