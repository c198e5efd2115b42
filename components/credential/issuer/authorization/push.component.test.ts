import { calculateJwkThumbprint } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Attester } from '../../testing/attester.ts';
import { HaipWallet } from '../../testing/haip-wallet.ts';
import { walletKey } from '../../testing/wallet.ts';

let haip: HaipWallet;

beforeAll(async () => {
  haip = await HaipWallet.open('credential_push');
});

afterAll(() => haip.close());

describe('a pushed request is refused', () => {
  test.each([
    ['without PKCE', { code_challenge: '' }, 'invalid_request'],
    ['with a plain challenge', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['for an implicit answer', { response_type: 'token' }, 'unsupported_response_type'],
    ['for another configuration', { scope: 'other' }, 'invalid_scope'],
    ['without a scope', { scope: '' }, 'invalid_scope'],
    ['for an unknown offer', { issuer_state: 'x' }, 'invalid_request'],
    ['back to a script', { redirect_uri: 'javascript:alert(1)' }, 'invalid_request'],
    ['back over plain HTTP', { redirect_uri: 'http://wallet.test/' }, 'invalid_request'],
    ['with another client id', { client_id: 'https://other.test' }, 'invalid_client'],
    ['with a request inside', { request_uri: 'urn:x' }, 'invalid_request'],
  ])('%s', async (_, change, error) => {
    const flow = await haip.begin();
    const answer = await haip.form('/par', { ...flow.pushed, ...change }, await haip.attested());
    expect(answer.json().error).toBe(error);
  });

  test('for each fault of the attestation', async () => {
    const flow = await haip.begin();
    const stranger = await Attester.open();
    const other = await walletKey();
    const now = haip.wallet.nowSeconds;
    const used = await haip.attested();
    expect((await haip.form('/par', flow.pushed, used)).statusCode).toBe(201);
    const { 'oauth-client-attestation': alone = '' } = await haip.attested();
    for (const [fault, headers] of Object.entries({
      none: {},
      'no proof': { 'oauth-client-attestation': alone },
      'unknown attester': await stranger.headers(haip.instance, now),
      type: await haip.attested({ typ: 'JWT' }),
      expired: await haip.attested({ attestation: { exp: now - 61 } }),
      'no expiry': await haip.attested({ attestation: { exp: undefined } }),
      'another key': await haip.attested({ attestation: { cnf: { jwk: other.jwk } } }),
      'no key': await haip.attested({ attestation: { cnf: {} } }),
      audience: await haip.attested({ proof: { aud: 'https://other.test' } }),
      'old proof': await haip.attested({ proof: { iat: now - 301 } }),
      'no jti': await haip.attested({ proof: { jti: undefined } }),
      used,
    })) {
      const answer = await haip.form('/par', flow.pushed, headers);
      expect([answer.statusCode, answer.json().error], fault).toEqual([401, 'invalid_client']);
    }
  });
});

describe('a pushed request with a DPoP proof is refused', () => {
  test('for each fault of the proof', async () => {
    const flow = await haip.begin();
    const named = { ...flow.pushed, dpop_jkt: await calculateJwkThumbprint(haip.dpopKey.jwk) };
    const nonce = await haip.wallet.dpopNonce();
    const used = await haip.proof('/par');
    expect(
      (await haip.form('/par', flow.pushed, { ...(await haip.attested()), dpop: used })).statusCode,
    ).toBe(201);
    for (const [fault, pushed, dpop, error] of [
      ['no proof', flow.pushed, 'x', 'invalid_dpop_proof'],
      [
        'of another request',
        flow.pushed,
        await haip.wallet.dpop(haip.dpopKey, { path: '/token', nonce }),
        'invalid_dpop_proof',
      ],
      ['used', flow.pushed, used, 'invalid_dpop_proof'],
      [
        'without nonce',
        flow.pushed,
        await haip.wallet.dpop(haip.dpopKey, { path: '/par' }),
        'use_dpop_nonce',
      ],
      [
        'of another key than dpop_jkt',
        named,
        await haip.proof('/par', await walletKey()),
        'invalid_dpop_proof',
      ],
    ] as const) {
      const answer = await haip.form('/par', pushed, { ...(await haip.attested()), dpop });
      expect([answer.statusCode, answer.json().error], fault).toEqual([400, error]);
    }
    for (const thumbprint of ['a'.repeat(42), 'a'.repeat(44), `${'a'.repeat(42)}+`]) {
      const answer = await haip.form('/par', { ...flow.pushed, dpop_jkt: thumbprint }, await haip.attested());
      expect(answer.json().error, thumbprint).toBe('invalid_request');
    }
  });
});

describe('a code', () => {
  test.each([
    ['a proof', true, false],
    ['dpop_jkt', false, true],
    ['both', true, true],
  ])('is bound to the key that %s of the pushed request names', async (_, isProved, isNamed) => {
    for (const [key, status] of [
      [await walletKey(), 400],
      [haip.dpopKey, 200],
    ] as const) {
      const flow = await haip.begin();
      const code = await haip.codeOf(await haip.bind(flow, { isProved, isNamed }));
      const answer = await haip.token(haip.grantOf(flow, code), key);
      expect(answer.statusCode).toBe(status);
      if (status === 400) {
        expect(answer.json().error).toBe('invalid_grant');
        expect((await haip.token(haip.grantOf(flow, code))).json().error).toBe('invalid_grant');
      }
    }
  });
});
