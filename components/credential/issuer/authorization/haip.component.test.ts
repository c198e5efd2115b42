import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseCertificate } from '#core/trust/certificate.ts';
import { Attester } from '../../testing/attester.ts';
import { type Fixture, issuerUrl, openFixture } from '../../testing/fixture.ts';
import { configurationOf, decodeSdJwt, TestWallet, type WalletKey, walletKey } from '../../testing/wallet.ts';

const clientId = 'https://wallet.test';
const redirectUri = 'eudi-wallet://back?x=1';

let fixture: Fixture;
let wallet: TestWallet;
let attester: Attester;
let instance: WalletKey;
let dpopKey: WalletKey;

beforeAll(async () => {
  attester = await Attester.open();
  const authorities = [parseCertificate(new X509Certificate(attester.certificate.rootPem).raw)];
  const served = { profile: 'haip-1.0', authorities, requiresKeyAttestation: true } as const;
  fixture = await openFixture('credential_haip', served);
  wallet = new TestWallet(fixture);
  [instance, dpopKey] = [await walletKey(), await walletKey()];
});

afterAll(() => fixture.close());

const form = (
  path: string,
  fields: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
) =>
  fixture.app.inject({
    method: 'POST',
    url: path,
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    payload: new URLSearchParams(fields).toString(),
  });

const attested = (change?: Parameters<Attester['headers']>[2]) =>
  attester.headers(instance, wallet.nowSeconds, change);

interface Flow {
  readonly offer: { readonly offerId: string; readonly txCode: string };
  readonly configurationId: string;
  readonly verifier: string;
  readonly pushed: Readonly<Record<string, string>>;
}

/** An offer, and what a wallet pushes for it. */
async function begin(): Promise<Flow> {
  const offer = (await wallet.offer()).json();
  const verifier = randomBytes(32).toString('base64url');
  const configurationId = configurationOf(offer);
  const pushed = {
    response_type: 'code',
    client_id: clientId,
    issuer_state: offer.credentialOffer.grants.authorization_code.issuer_state,
    redirect_uri: redirectUri,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    scope: configurationId,
    state: 's-1',
  };
  return { offer, configurationId, verifier, pushed };
}

async function push(flow: Flow): Promise<string> {
  const answer = await form('/par', flow.pushed, await attested());
  expect(answer.statusCode).toBe(201);
  return answer.json().request_uri;
}

const approve = (requestUri: string, txCode: string) =>
  form('/authorize', { request_uri: requestUri, client_id: clientId, tx_code: txCode });

async function codeOf(flow: Flow): Promise<string> {
  const answer = await approve(await push(flow), flow.offer.txCode);
  expect(answer.statusCode).toBe(303);
  return new URL(String(answer.headers.location)).searchParams.get('code') ?? '';
}

async function token(
  fields: Readonly<Record<string, string>>,
  key = dpopKey,
  headers?: Readonly<Record<string, string>>,
) {
  const dpop = await wallet.dpop(key, { path: '/token', nonce: await wallet.dpopNonce() });
  return form('/token', fields, { ...(headers ?? (await attested())), dpop });
}

const grantOf = (flow: Flow, code: string) => ({
  grant_type: 'authorization_code',
  code,
  code_verifier: flow.verifier,
  redirect_uri: redirectUri,
});

async function tokensOf(flow: Flow) {
  const answer = await token(grantOf(flow, await codeOf(flow)));
  expect(answer.statusCode).toBe(200);
  return answer.json();
}

async function credential(accessToken: string, body: Readonly<Record<string, unknown>>, key = dpopKey) {
  const nonce = await wallet.dpopNonce();
  const dpop = await wallet.dpop(key, { path: '/credential', nonce, accessToken });
  return wallet.credential(accessToken, body, { authorization: `DPoP ${accessToken}`, dpop });
}

describe('an offer in haip-1.0', () => {
  test('leads from a pushed request over the code of the person to a credential of an attested key', async () => {
    const flow = await begin();
    expect(flow.offer).not.toHaveProperty('preAuthorizedCode');
    const requestUri = await push(flow);
    const query = new URLSearchParams({ request_uri: requestUri, client_id: clientId });
    const page = await fixture.app.inject({ url: `/authorize?${query}` });
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
    expect(page.body).toContain('name="tx_code"');
    expect(page.body).not.toContain('<script');
    const approved = await approve(requestUri, flow.offer.txCode);
    const back = new URL(String(approved.headers.location));
    expect(String(back)).toMatch(/^eudi-wallet:\/\/back\?x=1&/);
    expect([back.searchParams.get('state'), back.searchParams.get('iss')]).toEqual(['s-1', issuerUrl]);
    const given = (await token(grantOf(flow, back.searchParams.get('code') ?? ''))).json();
    expect(given).toMatchObject({ token_type: 'DPoP', refresh_token: expect.any(String) });
    const keys = [await walletKey(), await walletKey()];
    const attestation = await attester.attestKeys(keys, wallet.nowSeconds, { nonce: await wallet.nonce() });
    const answer = await credential(given.access_token, {
      credential_configuration_id: flow.configurationId,
      proofs: { attestation: [attestation] },
    });
    const { credentials } = answer.json();
    expect(
      credentials.map((one: { credential: string }) => decodeSdJwt(one.credential).payload.cnf.jwk),
    ).toEqual(keys.map(({ jwk }) => jwk));
    const refreshed = (
      await token({ grant_type: 'refresh_token', refresh_token: given.refresh_token })
    ).json();
    const key = await walletKey();
    const nonce = await wallet.nonce();
    const jwt = await wallet.proof(key, {
      payload: { nonce },
      header: { key_attestation: await attester.attestKeys([key], wallet.nowSeconds) },
    });
    const again = await credential(refreshed.access_token, {
      credential_configuration_id: flow.configurationId,
      proofs: { jwt: [jwt] },
    });
    expect(again.statusCode).toBe(200);
  });

  test('is served in no weaker way', async () => {
    const flow = await begin();
    const preAuthorized = {
      grant_type: 'urn:ietf:params:oauth:grant-type:pre-authorized_code',
      'pre-authorized_code': String(flow.pushed['issuer_state']),
      tx_code: flow.offer.txCode,
    };
    expect((await token(preAuthorized)).json().error).toBe('unsupported_grant_type');
    const code = await codeOf(flow);
    const bearer = await form('/token', grantOf(flow, code), await attested());
    expect(bearer.json().error).toBe('invalid_dpop_proof');
    const plain = await token(grantOf(flow, code), dpopKey, {});
    expect([plain.statusCode, plain.json().error]).toEqual([401, 'invalid_client']);
    const { access_token: accessToken } = (await token(grantOf(flow, code))).json();
    const asBearer = await wallet.credential(accessToken, {});
    expect(asBearer.json().error).toBe('invalid_token');
    const unattested = await credential(accessToken, {
      credential_configuration_id: flow.configurationId,
      proofs: { jwt: [await wallet.proof(await walletKey())] },
    });
    expect(unattested.json().error).toBe('invalid_proof');
  });
});

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
    const flow = await begin();
    const answer = await form('/par', { ...flow.pushed, ...change }, await attested());
    expect(answer.json().error).toBe(error);
  });

  test('for each fault of the attestation', async () => {
    const flow = await begin();
    const stranger = await Attester.open();
    const other = await walletKey();
    const now = wallet.nowSeconds;
    const used = await attested();
    expect((await form('/par', flow.pushed, used)).statusCode).toBe(201);
    const { 'oauth-client-attestation': alone = '' } = await attested();
    for (const [fault, headers] of Object.entries({
      none: {},
      'no proof': { 'oauth-client-attestation': alone },
      'unknown attester': await stranger.headers(instance, now),
      type: await attested({ typ: 'JWT' }),
      expired: await attested({ attestation: { exp: now - 61 } }),
      'no expiry': await attested({ attestation: { exp: undefined } }),
      'another key': await attested({ attestation: { cnf: { jwk: other.jwk } } }),
      'no key': await attested({ attestation: { cnf: {} } }),
      audience: await attested({ proof: { aud: 'https://other.test' } }),
      'old proof': await attested({ proof: { iat: now - 301 } }),
      'no jti': await attested({ proof: { jti: undefined } }),
      used,
    })) {
      const answer = await form('/par', flow.pushed, headers);
      expect([answer.statusCode, answer.json().error], fault).toEqual([401, 'invalid_client']);
    }
  });
});

describe('the approval', () => {
  test('counts wrong codes, and ends the offer with the fifth', async () => {
    const flow = await begin();
    const requestUri = await push(flow);
    for (const left of [4, 3, 2]) {
      expect((await approve(requestUri, 'wrong')).body).toContain(`${left} tries are left`);
    }
    expect((await approve(requestUri, '')).body).toContain('One try is left');
    const last = new URL(String((await approve(requestUri, 'wrong')).headers.location));
    expect(last.searchParams.get('error')).toBe('access_denied');
    expect((await approve(requestUri, flow.offer.txCode)).body).toContain('has ended');
    const again = await form('/par', flow.pushed, await attested());
    expect(again.json().error).toBe('invalid_request');
  });

  test('uses a request once, for its client, in its time', async () => {
    const flow = await begin();
    const requestUri = await push(flow);
    const stranger = { request_uri: requestUri, client_id: 'other', tx_code: flow.offer.txCode };
    expect((await form('/authorize', stranger)).body).toContain('has ended');
    expect((await approve(requestUri, flow.offer.txCode)).statusCode).toBe(303);
    expect((await approve(requestUri, flow.offer.txCode)).body).toContain('has ended');
    const late = await push(flow);
    fixture.clock.advance(300_000);
    expect((await approve(late, flow.offer.txCode)).body).toContain('has ended');
    expect((await approve('<script>', 'x')).body).not.toContain('<script');
    expect((await fixture.app.inject({ url: '/authorize' })).json().error).toBe('invalid_request');
  });
});

describe('a code', () => {
  test('serves one of ten requests at one time, for 60 s', async () => {
    const flow = await begin();
    const code = await codeOf(flow);
    const sent = await Promise.all(Array.from({ length: 10 }, () => token(grantOf(flow, code))));
    expect(sent.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
    const slow = await begin();
    const late = await codeOf(slow);
    fixture.clock.advance(60_000);
    expect((await token(grantOf(slow, late))).json().error).toBe('invalid_grant');
  });

  test.each([
    ['another verifier', { code_verifier: 'a'.repeat(43) }],
    ['another address', { redirect_uri: 'https://other.test/' }],
  ])('with %s is refused, and used up', async (_, change) => {
    const flow = await begin();
    const code = await codeOf(flow);
    expect((await token({ ...grantOf(flow, code), ...change })).json().error).toBe('invalid_grant');
    expect((await token(grantOf(flow, code))).json().error).toBe('invalid_grant');
  });

  test('of a second approval is of no use once the offer is taken', async () => {
    const flow = await begin();
    const [first, second] = [await codeOf(flow), await codeOf(flow)];
    expect((await token(grantOf(flow, first))).statusCode).toBe(200);
    expect((await token(grantOf(flow, second))).json().error).toBe('invalid_grant');
  });
});

describe('a refresh token', () => {
  const refresh = (refreshToken: string, key = dpopKey) =>
    token({ grant_type: 'refresh_token', refresh_token: refreshToken }, key);

  test('is replaced, and ends all tokens when it comes a second time', async () => {
    const given = await tokensOf(await begin());
    const next = (await refresh(given.refresh_token)).json();
    expect(next.refresh_token).not.toBe(given.refresh_token);
    expect((await refresh(given.refresh_token)).json().error).toBe('invalid_grant');
    expect((await refresh(next.refresh_token)).json().error).toBe('invalid_grant');
    expect((await credential(next.access_token, {})).json().error).toBe('invalid_token');
  });

  test('ends with the credential when that is revoked, also while it is refreshed', async () => {
    const flow = await begin();
    const given = await tokensOf(flow);
    const nonce = await wallet.nonce();
    const attestation = await attester.attestKeys([await walletKey()], wallet.nowSeconds, { nonce });
    const proofs = { attestation: [attestation] };
    const body = { credential_configuration_id: flow.configurationId, proofs };
    expect((await credential(given.access_token, body)).statusCode).toBe(200);
    const state = await fixture.app.inject({
      url: `/api/v1/offers/${flow.offer.offerId}`,
      headers: { authorization: 'Bearer service' },
    });
    const revoke = fixture.app.inject({
      method: 'POST',
      url: `/api/v1/credentials/${state.json().credentialIds[0]}/revoke`,
      headers: { authorization: 'Bearer service' },
      payload: { reason: 'test' },
    });
    const [raced, revoked] = await Promise.all([refresh(given.refresh_token), revoke]);
    expect(revoked.statusCode).toBe(200);
    const last = raced.statusCode === 200 ? raced.json() : given;
    expect((await refresh(last.refresh_token)).json().error).toBe('invalid_grant');
    expect((await credential(last.access_token, {})).json().error).toBe('invalid_token');
  });

  test('is bound to its key', async () => {
    const given = await tokensOf(await begin());
    expect((await refresh(given.refresh_token, await walletKey())).json().error).toBe('invalid_dpop_proof');
    expect((await refresh(given.refresh_token)).statusCode).toBe(200);
    expect((await refresh('unknown')).json().error).toBe('invalid_grant');
  });
});

describe('keys', () => {
  test('are refused for each fault of their attestation', async () => {
    const flow = await begin();
    const { access_token: accessToken } = await tokensOf(flow);
    const stranger = await Attester.open();
    const [key, other, ed] = [await walletKey(), await walletKey(), await walletKey('EdDSA')];
    const now = wallet.nowSeconds;
    const nonce = await wallet.nonce();
    const jwt = async (attestation: unknown) => ({
      jwt: [await wallet.proof(key, { payload: { nonce }, header: { key_attestation: attestation } })],
    });
    const attestation = (text: string) => ({ attestation: [text] });
    for (const [fault, proofs] of Object.entries({
      'of another maker': await jwt(await stranger.attestKeys([key], now)),
      'another key': await jwt(await attester.attestKeys([other], now)),
      'no text': await jwt({}),
      expired: await jwt(await attester.attestKeys([key], now, { exp: now - 61 })),
      'without nonce': attestation(await attester.attestKeys([key], now)),
      Ed25519: attestation(await attester.attestKeys([ed], now, { nonce })),
      twice: attestation(await attester.attestKeys([key, key], now, { nonce })),
      'no keys': attestation(await attester.attestKeys([], now, { nonce })),
    })) {
      const answer = await credential(accessToken, {
        credential_configuration_id: flow.configurationId,
        proofs,
      });
      expect([answer.statusCode, answer.json().error], fault).toEqual([400, 'invalid_proof']);
    }
  });
});
