import { X509Certificate } from 'node:crypto';
import { compactVerify, importX509 } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Fixture, issuerUrl, openFixture } from '../../testing/fixture.ts';
import { Presenter } from '../../testing/presenter.ts';
import { TestWallet } from '../../testing/wallet.ts';

let fixture: Fixture;

beforeAll(async () => {
  fixture = await openFixture('credential_haip_verifier', { profile: 'haip-1.0' });
});

afterAll(() => fixture.close());

describe('metadata in haip-1.0', () => {
  test('name the grants of the profile alone', async () => {
    const { body } = await fixture.app.inject({ url: '/.well-known/oauth-authorization-server' });
    expect(JSON.parse(body)).toEqual({
      issuer: issuerUrl,
      token_endpoint: `${issuerUrl}/token`,
      dpop_signing_alg_values_supported: ['ES256', 'EdDSA'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      response_types_supported: ['code'],
      authorization_endpoint: `${issuerUrl}/authorize`,
      pushed_authorization_request_endpoint: `${issuerUrl}/par`,
      require_pushed_authorization_requests: true,
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
      authorization_details_types_supported: ['openid_credential'],
      token_endpoint_auth_methods_supported: ['attest_jwt_client_auth'],
      client_attestation_signing_alg_values_supported: ['ES256'],
      client_attestation_pop_signing_alg_values_supported: ['ES256'],
    });
  });

  test('of the issuer come signed where a client asks for it', async () => {
    await new TestWallet(fixture).offer();
    const url = '/.well-known/openid-credential-issuer';
    const signed = await fixture.app.inject({
      url,
      headers: { accept: 'application/jwt, application/json;q=0.5' },
    });
    expect(signed.headers['content-type']).toBe('application/jwt');
    const [head = ''] = signed.body.split('.');
    const { typ, x5c } = JSON.parse(Buffer.from(head, 'base64url').toString());
    expect(typ).toBe('openidvci-issuer-metadata+jwt');
    const pem = new X509Certificate(Buffer.from(x5c[0], 'base64')).toString();
    const { payload } = await compactVerify(signed.body, await importX509(pem, 'ES256'));
    expect(JSON.parse(Buffer.from(payload).toString())).toMatchObject({
      sub: issuerUrl,
      credential_issuer: issuerUrl,
    });
    expect((await fixture.app.inject({ url })).json().credential_issuer).toBe(issuerUrl);
  });
});

describe('a verifier in haip-1.0', () => {
  test('asks by x509_hash for an encrypted answer, and in no weaker way', async () => {
    const presenter = new Presenter(fixture);
    const created = (await presenter.ask()).json();
    expect(created.clientId).toMatch(/^x509_hash:/);
    expect(created.authorizationRequestUri).toMatch(/^haip-vp:/);
    expect((await presenter.open(created.requestId)).response_mode).toBe('direct_post.jwt');
    for (const weaker of [{ responseMode: 'direct_post' }, { clientIdPrefix: 'x509_san_dns' }]) {
      expect((await presenter.ask(weaker)).json().code).toBe('PROFILE_WEAKER');
    }
  });
});

test('the routes of haip-1.0 are not served in openid4vc-1.0', async () => {
  const other = await openFixture('credential_no_haip');
  for (const request of [
    { method: 'POST', url: '/par' },
    { method: 'GET', url: '/authorize?request_uri=a&client_id=b' },
  ] as const) {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const answer = await other.app.inject({
      ...request,
      ...(request.method === 'POST' && { headers, payload: 'a=b' }),
    });
    expect(answer.statusCode).toBe(404);
  }
  await other.close();
});
