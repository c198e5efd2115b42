import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { validatorSetHash } from '#core/ledger/consensus.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import type { ValidatorAddress } from '../../clients/validators.ts';
import { createDefaultSet } from '../../registers/directory/default-set.ts';
import { buildDocket, type TestMember } from '../../testing/build-docket.ts';
import { nextKey } from '../../testing/fake-validators.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';

describe('key rotation of a validator', () => {
  let register: TestRegister;
  beforeAll(async () => {
    register = await startTestRegister('rotation', { members: 4, spare: 1 });
  });
  afterAll(() => register.stop());

  const post = (path: string, body: object = {}, token = 'admin') =>
    register.call('POST', path, { token, body });
  const rotate = (id: string, validatorId: string, body: object = {}, token = 'admin') =>
    post(`/api/validators/${id}/${validatorId}/rotate-key`, body, token);
  const next = (registerId: string, n: number) => transaction({ registerId, payload: { n } });

  /** The members after `validator-1` rotated. */
  function rotated(): TestMember[] {
    return register.members.map((one) =>
      one.validatorId === 'validator-1' ? { ...one, key: nextKey(one.key.publicKey) } : one,
    );
  }

  test('from the next docket on only the new key counts; signatures of the old one still verify', async () => {
    const id = await register.createRegister();
    const answer = await rotate(id, 'validator-1', { reason: 'due' });
    expect([answer.status, answer.body.status]).toEqual([202, 'submitted']);
    const before = (await register.state(id)).members;
    const bringing = buildDocket(
      await register.state(id),
      register.validators.take(id, 10),
      register.members,
    );
    expect(await register.ledger.writeDocket(bringing)).toMatchObject({ outcome: 'stored' });
    const state = await register.state(id);
    expect(state.members.map(({ validatorId }) => validatorId)).toEqual(
      before.map(({ validatorId }) => validatorId),
    );
    const withOld = buildDocket(state, [next(id, 1)], register.members);
    expect(await register.ledger.writeDocket(withOld)).toMatchObject({ outcome: 'invalid' });
    const withNew = buildDocket(state, [next(id, 2)], rotated());
    expect(withNew.header.validatorSetHash).toBe(validatorSetHash(state.members));
    expect(withNew.header.validatorSetHash).not.toBe(bringing.header.validatorSetHash);
    // A vote of the old key in a docket of the new set.
    const attestations = buildDocket(state, [next(id, 2)], register.members.slice(1)).attestations;
    expect(await register.ledger.writeDocket({ ...withNew, attestations })).toMatchObject({
      outcome: 'invalid',
    });
    expect(await register.ledger.writeDocket(withNew)).toMatchObject({ outcome: 'stored' });
    expect(await register.ledger.writeDocket(bringing)).toMatchObject({ outcome: 'replayed' });
    const { body } = await register.call('GET', `/api/validators/${id}/validator-1`, { token: 'admin' });
    const { publicKey } = nextKey(register.members[1]?.key.publicKey ?? '');
    expect(body).toMatchObject({ status: 'active', effectiveFromDocket: 2, publicKey });
    const again = await rotate(id, 'validator-1');
    expect(again.status).toBe(202);
    const [sealed] = register.validators.take(id, 1);
    const { operation } = JSON.parse(Buffer.from(sealed?.payload ?? []).toString());
    expect(operation.validatorEntry.publicKey).toBe(nextKey(publicKey).publicKey);
  });

  test('accepts a key in the request with its proof, and no key without one', async () => {
    const id = await register.createRegister();
    const { publicKey, signer } = testKey(61);
    const proof = (registerId: string) =>
      encodeBase64(signer.sign(possessionBytes({ registerId, validatorId: 'validator-2', publicKey })));
    const forged = await rotate(id, 'validator-2', { publicKey, proofOfPossession: proof('f'.repeat(32)) });
    expect(forged.body.code).toBe('VAL_SIG_002');
    const alone = await rotate(id, 'validator-2', { publicKey });
    expect([alone.status, alone.body.code]).toEqual([409, 'VALIDATOR_KEY_CHANGED']);
    const taken = await rotate(id, 'validator-2', { publicKey, proofOfPossession: proof(id) });
    expect(taken.status).toBe(202);
    await register.seal(id);
    expect((await register.state(id)).members[2]?.publicKey).toBe(publicKey);
    const other = await rotate(id, 'validator-3', { publicKey, proofOfPossession: proof(id) });
    expect([other.status, other.body.code]).toEqual([422, 'VAL_PERM_017']);
  });

  test('is allowed for callers who manage registers, for members of the set only', async () => {
    const id = await register.createRegister();
    expect((await rotate(id, 'validator-1', {}, 'user')).status).toBe(403);
    expect((await rotate(id, 'nobody')).status).toBe(404);
    expect((await post(`/api/validators/${id}/validator-3/suspend`)).status).toBe(202);
    await register.seal(id);
    const suspended = await rotate(id, 'validator-3');
    expect([suspended.status, suspended.body.code]).toEqual([422, 'VAL_PERM_017']);
    register.validators.away.add('validator-2');
    const away = await rotate(id, 'validator-2');
    register.validators.away.clear();
    expect(away.status).toBe(503);
  });

  test('a new register begins with the key that its validator proves, which may be a later one than it announced', async () => {
    const { database, runtime, validators, members } = register;
    const { clock, log } = runtime;
    const verifier = createVerifier(nodeEd25519());
    const registerId = 'ab'.repeat(16);
    const laterKeys = {
      provePossession: (at: ValidatorAddress, id: string) => {
        const own = members.find(({ validatorId }) => validatorId === at.validatorId)?.key.publicKey;
        return validators.provePossession(at, id, own);
      },
    };
    const shared = { database, clock, log, verifier, freshMs: Number.MAX_SAFE_INTEGER / 1e4 };
    const set = await createDefaultSet({ ...shared, validators: laterKeys })(registerId);
    expect(set.slice(0, 4).map(({ publicKey }) => publicKey)).toEqual(
      members.map(({ key }) => nextKey(key.publicKey).publicKey),
    );
    const liar = {
      provePossession: async (at: ValidatorAddress, id: string) => ({
        ...(await laterKeys.provePossession(at, id)),
        publicKey: testKey(62).publicKey,
      }),
    };
    await expect(createDefaultSet({ ...shared, validators: liar })(registerId)).rejects.toMatchObject({
      code: 'VALIDATOR_UNAVAILABLE',
    });
  });
});
