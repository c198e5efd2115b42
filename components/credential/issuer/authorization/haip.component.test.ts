import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Attester } from '../../testing/attester.ts';
import { issuerUrl } from '../../testing/fixture.ts';
import { clientId, HaipWallet } from '../../testing/haip-wallet.ts';
import { decodeSdJwt, walletKey } from '../../testing/wallet.ts';

let haip: HaipWallet;

beforeAll(async () => {
  haip = await HaipWallet.open('credential_haip');
});

afterAll(() => haip.close());

describe('an offer in haip-1.0', () => {
  test('leads from a pushed request over the code of the person to a credential of an attested key', async () => {
    const flow = await haip.begin();
    expect(flow.offer).not.toHaveProperty('preAuthorizedCode');
    const requestUri = await haip.push(flow);
    const query = new URLSearchParams({ request_uri: requestUri, client_id: clientId });
    const page = await haip.fixture.app.inject({ url: `/authorize?${query}` });
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
    expect(page.body).toContain('name="tx_code"');
    expect(page.body).not.toContain('<script');
    const approved = await haip.approve(requestUri, flow.offer.txCode);
    const back = new URL(String(approved.headers.location));
    expect(String(back)).toMatch(/^eudi-wallet:\/\/back\?x=1&/);
    expect([back.searchParams.get('state'), back.searchParams.get('iss')]).toEqual(['s-1', issuerUrl]);
    const given = (await haip.token(haip.grantOf(flow, back.searchParams.get('code') ?? ''))).json();
    expect(given).toMatchObject({ token_type: 'DPoP', refresh_token: expect.any(String) });
    const keys = [await walletKey(), await walletKey()];
    const attestation = await haip.attester.attestKeys(keys, haip.wallet.nowSeconds, {
      nonce: await haip.wallet.nonce(),
    });
    const answer = await haip.credential(given.access_token, {
      credential_configuration_id: flow.configurationId,
      proofs: { attestation: [attestation] },
    });
    const { credentials } = answer.json();
    expect(
      credentials.map((one: { credential: string }) => decodeSdJwt(one.credential).payload.cnf.jwk),
    ).toEqual(keys.map(({ jwk }) => jwk));
    const refreshed = (
      await haip.token({ grant_type: 'refresh_token', refresh_token: given.refresh_token })
    ).json();
    const key = await walletKey();
    const nonce = await haip.wallet.nonce();
    const jwt = await haip.wallet.proof(key, {
      payload: { nonce },
      header: { key_attestation: await haip.attester.attestKeys([key], haip.wallet.nowSeconds) },
    });
    const again = await haip.credential(refreshed.access_token, {
      credential_configuration_id: flow.configurationId,
      proofs: { jwt: [jwt] },
    });
    expect(again.statusCode).toBe(200);
  });

  test('can be taken with authorization_details, whose identifier then asks for the credential', async () => {
    const flow = await haip.begin();
    const { scope: credential_configuration_id = '', ...others } = flow.pushed;
    const detail = { type: 'openid_credential', credential_configuration_id };
    const pushed = { ...others, authorization_details: JSON.stringify([detail]) };
    const given = await haip.tokensOf({ ...flow, pushed });
    expect(given.authorization_details).toEqual([
      { ...detail, credential_identifiers: [expect.any(String)] },
    ]);
    expect(await haip.tokensOf(await haip.begin())).not.toHaveProperty('authorization_details');
    const [
      {
        credential_identifiers: [credential_identifier],
      },
    ] = given.authorization_details;
    const request = async (asked: Readonly<Record<string, unknown>>) => {
      const nonce = await haip.wallet.nonce();
      const keys = [await walletKey()];
      const attestation = await haip.attester.attestKeys(keys, haip.wallet.nowSeconds, { nonce });
      return haip.credential(given.access_token, { ...asked, proofs: { attestation: [attestation] } });
    };
    const both = await request({ credential_identifier, credential_configuration_id });
    expect(both.json().error).toBe('invalid_credential_request');
    const other = await request({ credential_identifier: 'other' });
    expect(other.json().error).toBe('unknown_credential_identifier');
    expect((await request({ credential_identifier })).statusCode).toBe(200);
    const metadata = await haip.fixture.app.inject({ url: '/.well-known/oauth-authorization-server' });
    expect(metadata.json().authorization_details_types_supported).toEqual(['openid_credential']);
  });

  test('is signed under a certificate: the register cannot be its anchor', async () => {
    const answer = await haip.wallet.offer({ trustAnchor: 'register' });
    expect([answer.statusCode, answer.json().code]).toEqual([400, 'CLAIMS_INVALID']);
  });

  test('is served in no weaker way', async () => {
    const flow = await haip.begin();
    const preAuthorized = {
      grant_type: 'urn:ietf:params:oauth:grant-type:pre-authorized_code',
      'pre-authorized_code': String(flow.pushed['issuer_state']),
      tx_code: flow.offer.txCode,
    };
    expect((await haip.token(preAuthorized)).json().error).toBe('unsupported_grant_type');
    const code = await haip.codeOf(flow);
    const bearer = await haip.form('/token', haip.grantOf(flow, code), await haip.attested());
    expect(bearer.json().error).toBe('invalid_dpop_proof');
    const plain = await haip.token(haip.grantOf(flow, code), haip.dpopKey, {});
    expect([plain.statusCode, plain.json().error]).toEqual([401, 'invalid_client']);
    const { access_token: accessToken } = (await haip.token(haip.grantOf(flow, code))).json();
    const asBearer = await haip.wallet.credential(accessToken, {});
    expect(asBearer.json().error).toBe('invalid_token');
    const unattested = await haip.credential(accessToken, {
      credential_configuration_id: flow.configurationId,
      proofs: { jwt: [await haip.wallet.proof(await walletKey())] },
    });
    expect(unattested.json().error).toBe('invalid_proof');
  });
});

test('a request without a token is told of DPoP, and a token that is bound to no key is not accepted', async () => {
  const none = await haip.fixture.app.inject({ method: 'POST', url: '/credential', payload: {} });
  expect([none.statusCode, none.json().error]).toEqual([401, 'invalid_token']);
  expect(none.headers['www-authenticate']).toMatch(/^DPoP /);
  const { access_token: accessToken } = await haip.tokensOf(await haip.begin());
  // As one that was given before the installation got the profile.
  await haip.fixture.db.transact((tx) =>
    tx.updateTable('access_tokens').set({ dpop_thumbprint: null }).execute(),
  );
  const asBearer = await haip.wallet.credential(accessToken, {});
  expect([asBearer.statusCode, asBearer.json().error]).toEqual([401, 'invalid_token']);
});

describe('the approval', () => {
  test('counts wrong codes, and ends the offer with the fifth', async () => {
    const flow = await haip.begin();
    const requestUri = await haip.push(flow);
    for (const left of [4, 3, 2]) {
      expect((await haip.approve(requestUri, 'wrong')).body).toContain(`${left} tries are left`);
    }
    expect((await haip.approve(requestUri, '')).body).toContain('One try is left');
    const last = new URL(String((await haip.approve(requestUri, 'wrong')).headers.location));
    expect(last.searchParams.get('error')).toBe('access_denied');
    expect((await haip.approve(requestUri, flow.offer.txCode)).body).toContain('has ended');
    const again = await haip.form('/par', flow.pushed, await haip.attested());
    expect(again.json().error).toBe('invalid_request');
  });

  test('shows what the offer says of the transaction code', async () => {
    const description = 'The code is in the letter of 1 May <b>';
    const requestUri = await haip.push(await haip.begin({ txCode: { description } }));
    const query = new URLSearchParams({ request_uri: requestUri, client_id: clientId });
    const page = await haip.fixture.app.inject({ url: `/authorize?${query}` });
    expect(page.body).toContain('<p>The code is in the letter of 1 May &lt;b&gt;</p>');
    expect((await haip.approve(requestUri, 'wrong')).body).toContain('the letter of 1 May');
  });

  test('uses a request once, for its client, in its time', async () => {
    const flow = await haip.begin();
    const requestUri = await haip.push(flow);
    const stranger = { request_uri: requestUri, client_id: 'other', tx_code: flow.offer.txCode };
    expect((await haip.form('/authorize', stranger)).body).toContain('has ended');
    expect((await haip.approve(requestUri, flow.offer.txCode)).statusCode).toBe(303);
    expect((await haip.approve(requestUri, flow.offer.txCode)).body).toContain('has ended');
    const late = await haip.push(flow);
    haip.fixture.clock.advance(300_000);
    expect((await haip.approve(late, flow.offer.txCode)).body).toContain('has ended');
    expect((await haip.approve('<script>', 'x')).body).not.toContain('<script');
    expect((await haip.fixture.app.inject({ url: '/authorize' })).json().error).toBe('invalid_request');
  });
});

describe('a code', () => {
  test('serves one of ten requests at one time, for 60 s', async () => {
    const flow = await haip.begin();
    const code = await haip.codeOf(flow);
    const sent = await Promise.all(Array.from({ length: 10 }, () => haip.token(haip.grantOf(flow, code))));
    expect(sent.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
    const slow = await haip.begin();
    const late = await haip.codeOf(slow);
    haip.fixture.clock.advance(60_000);
    expect((await haip.token(haip.grantOf(slow, late))).json().error).toBe('invalid_grant');
  });

  test.each([
    ['another verifier', { code_verifier: 'a'.repeat(43) }],
    ['another address', { redirect_uri: 'https://other.test/' }],
  ])('with %s is refused, and used up', async (_, change) => {
    const flow = await haip.begin();
    const code = await haip.codeOf(flow);
    expect((await haip.token({ ...haip.grantOf(flow, code), ...change })).json().error).toBe('invalid_grant');
    expect((await haip.token(haip.grantOf(flow, code))).json().error).toBe('invalid_grant');
  });

  test('of a second approval is of no use once the offer is taken', async () => {
    const flow = await haip.begin();
    const [first, second] = [await haip.codeOf(flow), await haip.codeOf(flow)];
    expect((await haip.token(haip.grantOf(flow, first))).statusCode).toBe(200);
    expect((await haip.token(haip.grantOf(flow, second))).json().error).toBe('invalid_grant');
  });
});

describe('a refresh token', () => {
  const refresh = (refreshToken: string, key = haip.dpopKey) =>
    haip.token({ grant_type: 'refresh_token', refresh_token: refreshToken }, key);

  test('is replaced, and ends all tokens when it comes a second time', async () => {
    const given = await haip.tokensOf(await haip.begin());
    const next = (await refresh(given.refresh_token)).json();
    expect(next.refresh_token).not.toBe(given.refresh_token);
    expect((await refresh(given.refresh_token)).json().error).toBe('invalid_grant');
    expect((await refresh(next.refresh_token)).json().error).toBe('invalid_grant');
    expect((await haip.credential(next.access_token, {})).json().error).toBe('invalid_token');
  });

  test('ends with the credential when that is revoked, also while it is refreshed', async () => {
    const flow = await haip.begin();
    const given = await haip.tokensOf(flow);
    const nonce = await haip.wallet.nonce();
    const attestation = await haip.attester.attestKeys([await walletKey()], haip.wallet.nowSeconds, {
      nonce,
    });
    const proofs = { attestation: [attestation] };
    const body = { credential_configuration_id: flow.configurationId, proofs };
    expect((await haip.credential(given.access_token, body)).statusCode).toBe(200);
    const state = await haip.fixture.app.inject({
      url: `/api/v1/offers/${flow.offer.offerId}`,
      headers: { authorization: 'Bearer service' },
    });
    const revoke = haip.fixture.app.inject({
      method: 'POST',
      url: `/api/v1/credentials/${state.json().credentialIds[0]}/revoke`,
      headers: { authorization: 'Bearer service' },
      payload: { reason: 'test' },
    });
    const [raced, revoked] = await Promise.all([refresh(given.refresh_token), revoke]);
    expect(revoked.statusCode).toBe(200);
    const last = raced.statusCode === 200 ? raced.json() : given;
    expect((await refresh(last.refresh_token)).json().error).toBe('invalid_grant');
    expect((await haip.credential(last.access_token, {})).json().error).toBe('invalid_token');
  });

  test('is bound to its key', async () => {
    const given = await haip.tokensOf(await haip.begin());
    expect((await refresh(given.refresh_token, await walletKey())).json().error).toBe('invalid_dpop_proof');
    expect((await refresh(given.refresh_token)).statusCode).toBe(200);
    expect((await refresh('unknown')).json().error).toBe('invalid_grant');
  });

  test('is bound to the instance of the wallet that got it', async () => {
    const given = await haip.tokensOf(await haip.begin());
    const form = { grant_type: 'refresh_token', refresh_token: given.refresh_token };
    const other = await haip.attester.headers(await walletKey(), haip.wallet.nowSeconds);
    expect((await haip.token(form, haip.dpopKey, other)).json().error).toBe('invalid_grant');
    expect((await haip.token(form)).statusCode).toBe(200);
  });

  test('of a release that stored no instance is bound with its next use', async () => {
    const given = await haip.tokensOf(await haip.begin());
    await haip.fixture.db.transact((tx) =>
      tx.updateTable('refresh_tokens').set({ client_thumbprint: null }).execute(),
    );
    const next = (await refresh(given.refresh_token)).json();
    const form = { grant_type: 'refresh_token', refresh_token: next.refresh_token };
    const other = await haip.attester.headers(await walletKey(), haip.wallet.nowSeconds);
    expect((await haip.token(form, haip.dpopKey, other)).json().error).toBe('invalid_grant');
  });
});

describe('keys', () => {
  test('are refused for each fault of their attestation', async () => {
    const flow = await haip.begin();
    const { access_token: accessToken } = await haip.tokensOf(flow);
    const stranger = await Attester.open();
    const [key, other, ed] = [await walletKey(), await walletKey(), await walletKey('EdDSA')];
    const now = haip.wallet.nowSeconds;
    const nonce = await haip.wallet.nonce();
    const jwt = async (attestation: unknown) => ({
      jwt: [await haip.wallet.proof(key, { payload: { nonce }, header: { key_attestation: attestation } })],
    });
    const attestation = (text: string) => ({ attestation: [text] });
    for (const [fault, proofs] of Object.entries({
      'of another maker': await jwt(await stranger.attestKeys([key], now)),
      'another key': await jwt(await haip.attester.attestKeys([other], now)),
      'no text': await jwt({}),
      expired: await jwt(await haip.attester.attestKeys([key], now, { exp: now - 61 })),
      'without an end beside a proof': await jwt(
        await haip.attester.attestKeys([key], now, { exp: undefined }),
      ),
      'an end that is no time': attestation(
        await haip.attester.attestKeys([key], now, { nonce, exp: String(now - 61) }),
      ),
      'without nonce': attestation(await haip.attester.attestKeys([key], now)),
      Ed25519: attestation(await haip.attester.attestKeys([ed], now, { nonce })),
      twice: attestation(await haip.attester.attestKeys([key, key], now, { nonce })),
      'no keys': attestation(await haip.attester.attestKeys([], now, { nonce })),
    })) {
      const answer = await haip.credential(accessToken, {
        credential_configuration_id: flow.configurationId,
        proofs,
      });
      expect([answer.statusCode, answer.json().error], fault).toEqual([400, 'invalid_proof']);
    }
  });
});
