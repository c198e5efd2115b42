import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Fixture, issuerUrl, openFixture } from '../../testing/fixture.ts';
import { configurationOf, possession, TestWallet, walletKey } from '../../testing/wallet.ts';

let fixture: Fixture;
let wallet: TestWallet;

beforeAll(async () => {
  fixture = await openFixture('credential_dpop');
  wallet = new TestWallet(fixture);
});

afterAll(() => fixture.close());

describe('a token that is bound to a key', () => {
  async function bound() {
    const key = await walletKey();
    const offer = (await wallet.offer()).json();
    const form = { 'pre-authorized_code': offer.preAuthorizedCode };
    const dpop = await wallet.dpop(key, { path: '/token', nonce: await wallet.dpopNonce() });
    const token = (await wallet.token(form, { dpop })).json();
    const accessToken = String(token.access_token);
    const body = async () => ({
      credential_configuration_id: configurationOf(offer),
      proofs: { jwt: [await wallet.proof(await walletKey())] },
    });
    return { key, accessToken, body, type: token.token_type };
  }

  test('is accepted with a proof of the key alone', async () => {
    const { key, accessToken, body, type } = await bound();
    expect(type).toBe('DPoP');
    const nonce = await wallet.dpopNonce();
    const to = { path: '/credential', nonce, accessToken };
    const send = async (dpop: string, authorization = `DPoP ${accessToken}`) =>
      wallet.credential(accessToken, await body(), { authorization, dpop });
    expect((await wallet.credential(accessToken, await body())).json().error).toBe('invalid_token');
    const other = await walletKey();
    for (const [fault, proof] of Object.entries({
      'another key': await wallet.dpop(other, to),
      'no token hash': await wallet.dpop(key, { path: '/credential', nonce }),
      'another token': await wallet.dpop(key, { ...to, accessToken: 'x' }),
      'another path': await wallet.dpop(key, { ...to, path: '/token' }),
      'another method': await wallet.dpop(key, to, { payload: { htm: 'GET' } }),
      'another origin': await wallet.dpop(key, to, { payload: { htu: 'https://other.test/credential' } }),
      old: await wallet.dpop(key, to, { payload: { iat: wallet.nowSeconds - 301 } }),
      typ: await wallet.dpop(key, to, { header: { typ: 'JWT' } }),
      text: 'x',
    })) {
      const answer = await send(proof);
      expect([answer.statusCode, answer.json().error], fault).toEqual([401, 'invalid_dpop_proof']);
    }
    const without = await send(await wallet.dpop(key, { path: '/credential', accessToken }));
    expect([without.statusCode, without.json().error]).toEqual([401, 'use_dpop_nonce']);
    expect(without.headers['www-authenticate']).toBe('DPoP error="use_dpop_nonce"');
    const given = String(without.headers['dpop-nonce']);
    const proof = await wallet.dpop(key, { path: '/credential', accessToken, nonce: given });
    expect((await send(proof)).statusCode).toBe(200);
    expect((await send(proof)).json().error).toBe('invalid_dpop_proof');
  });

  test('a bearer token is not accepted as one of DPoP', async () => {
    const { accessToken } = await wallet.accepted();
    const answer = await wallet.credential(accessToken, {}, { authorization: `DPoP ${accessToken}` });
    expect(answer.json().error).toBe('invalid_token');
  });
});

test('a proof is not accepted as a proof of DPoP, or the reverse', async () => {
  const key = await walletKey();
  const offer = (await wallet.offer()).json();
  const proof = await possession(key, { payload: { aud: issuerUrl, iat: wallet.nowSeconds } });
  const form = { 'pre-authorized_code': offer.preAuthorizedCode };
  expect((await wallet.token(form, { dpop: proof })).json().error).toBe('invalid_dpop_proof');
});
