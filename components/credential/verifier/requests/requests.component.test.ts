import { createHash, verify, X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { caller, type Fixture, issuerUrl, openFixture, verifierIdentity } from '../../testing/fixture.ts';
import { type Held, Presenter, responseUriOf } from '../../testing/presenter.ts';

let fixture: Fixture;
let presenter: Presenter;
let held: Held;

beforeAll(async () => {
  fixture = await openFixture('credential_requests');
  presenter = new Presenter(fixture);
  held = await presenter.hold();
});

afterAll(() => fixture.close());

describe('a request for presentations', () => {
  test.each(['constructor', 'toString'])(
    'has a query of any id, also one that every object has: %s',
    async (id) => {
      const credential = {
        id,
        format: 'dc+sd-jwt',
        meta: { vct_values: ['urn:platform:credential:site-permit'] },
        claims: [{ path: ['permitNumber'] }],
      };
      const ask = {
        credentialType: undefined,
        requiredClaims: undefined,
        declaredQuery: { credentials: [credential] },
        trustPolicies: {},
      };
      const { requestId, request } = await presenter.asked(ask);
      const token = JSON.stringify(Object.fromEntries([[id, [await presenter.present(held, request)]]]));
      const posted = await fixture.app.inject({
        method: 'POST',
        url: responseUriOf(requestId).slice(issuerUrl.length),
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        payload: new URLSearchParams({ vp_token: token, state: request.state }).toString(),
      });
      expect([posted.statusCode, posted.body]).toEqual([200, '{}']);
      const { state, result } = (await presenter.result(requestId)).json();
      expect([state, result.errors]).toEqual(['Verified', []]);
    },
  );

  test('names authorities by their keys, and another authority does not do', async () => {
    const ask = (type: string, values: readonly string[]) => ({
      credentialType: undefined,
      requiredClaims: undefined,
      declaredQuery: {
        credentials: [
          {
            id: 'credential',
            format: 'dc+sd-jwt',
            meta: { vct_values: ['urn:platform:credential:site-permit'] },
            claims: [{ path: ['permitNumber'] }],
            trusted_authorities: [{ type, values }],
          },
        ],
      },
    });
    const { authorityKeyId } = fixture.organization.certificate;
    const codes = async (value: Held, values: readonly string[]) =>
      (await presenter.verified(value, ask('aki', values))).result.errors.map(
        ({ code }: { code: string }) => code,
      );
    expect(await codes(held, ['AAAA', authorityKeyId])).toEqual([]);
    expect(await codes(held, ['AAAA'])).toEqual(['TRUST_ISSUER_NOT_LISTED']);
    const ofRegister = await presenter.hold({ trustAnchor: 'register' });
    expect(await codes(ofRegister, [authorityKeyId])).toEqual(['TRUST_ISSUER_NOT_LISTED']);
    for (const type of ['etsi_tl', 'openid_federation'])
      expect((await presenter.ask(ask(type, ['https://x.test']))).json().code).toBe('DCQL_INVALID');
  });

  test('names types and issuers by any character, and addresses by those that they have', async () => {
    const any = { credentialType: 'urn:test:\0', acceptedIssuers: ['did:test:\0'] };
    expect((await presenter.ask(any)).statusCode).toBe(201);
    for (const redirectUri of ['https://a.test/\0', 'https://a.test/ b'])
      expect((await presenter.ask({ redirectUri })).json().code).toBe('INVALID_REQUEST');
  });

  test('whose query is named __proto__ is refused', async () => {
    const credential = '{"id":"__proto__","format":"dc+sd-jwt","meta":{"vct_values":["x"]}}';
    const declaredQuery = JSON.parse(`{"credentials":[${credential}]}`);
    const change = { credentialType: undefined, requiredClaims: undefined, declaredQuery };
    expect((await presenter.ask(change)).json().code).toBe('DCQL_INVALID');
  });

  test('is signed with the certificate that its client id names', async () => {
    const created = await presenter.ask({ purpose: 'To let you in' });
    expect(created.statusCode).toBe(201);
    const { requestId, authorizationRequestUri, clientId, nonce } = created.json();
    expect(clientId).toBe('x509_san_dns:issuer.test');
    const uri = new URL(authorizationRequestUri);
    expect([uri.protocol, uri.searchParams.get('client_id')]).toEqual(['openid4vp:', clientId]);
    const path = (uri.searchParams.get('request_uri') ?? '').slice(issuerUrl.length);
    const answer = await fixture.app.inject({ url: path });
    expect(answer.headers['content-type']).toBe('application/oauth-authz-req+jwt');
    const [head = '', body = '', signature = ''] = answer.body.split('.');
    const header = JSON.parse(Buffer.from(head, 'base64url').toString());
    expect(header).toMatchObject({ alg: 'ES256', typ: 'oauth-authz-req+jwt' });
    const key = {
      key: new X509Certificate(Buffer.from(header.x5c[0], 'base64')).publicKey,
      dsaEncoding: 'ieee-p1363',
    } as const;
    expect(verify('sha256', Buffer.from(`${head}.${body}`), key, Buffer.from(signature, 'base64url'))).toBe(
      true,
    );
    expect(JSON.parse(Buffer.from(body, 'base64url').toString())).toMatchObject({
      aud: 'https://self-issued.me/v2',
      response_type: 'vp_token',
      response_mode: 'direct_post',
      response_uri: responseUriOf(requestId),
      client_id: clientId,
      nonce,
      dcql_query: {
        credentials: [
          {
            id: 'credential',
            format: 'dc+sd-jwt',
            meta: { vct_values: ['urn:platform:credential:site-permit'] },
            claims: [{ path: ['permitNumber'] }],
          },
        ],
        credential_sets: [{ options: [['credential']], required: true, purpose: 'To let you in' }],
      },
    });
    expect((await presenter.verified(held, { purpose: 'To let you in' })).state).toBe('Verified');
    expect((await presenter.asked()).request['dcql_query']).not.toHaveProperty('credential_sets');
  });

  test('names the hash of its certificate, and repeats the nonce of the wallet', async () => {
    const { requestId, clientId } = (await presenter.ask({ clientIdPrefix: 'x509_hash' })).json();
    const posted = await fixture.app.inject({
      method: 'POST',
      url: `/api/v1/verifier/requests/${requestId}/request-object`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: 'wallet_nonce=abc&wallet_metadata=%7B%7D',
    });
    const [head = '', body = ''] = posted.body
      .split('.')
      .map((part) => Buffer.from(part, 'base64url').toString());
    const leaf = Buffer.from(JSON.parse(head).x5c[0], 'base64');
    expect(clientId).toBe(`x509_hash:${createHash('sha256').update(leaf).digest('base64url')}`);
    expect(JSON.parse(body)).toMatchObject({ wallet_nonce: 'abc', client_id: clientId });
  });

  test.each([
    ['nothing', { credentialType: undefined }],
    ['both a type and a query', { declaredQuery: { credentials: [] } }],
    [
      'an empty query',
      { credentialType: undefined, requiredClaims: undefined, declaredQuery: { credentials: [] } },
    ],
    [
      'claims beside a query, which would not be verified',
      {
        credentialType: undefined,
        requiredClaims: [{ claimName: 'permitNumber', expectedValue: 'P-17' }],
        declaredQuery: { credentials: [{ id: 'a', format: 'dc+sd-jwt', meta: { vct_values: ['urn:x'] } }] },
      },
    ],
    [
      'a query without meta',
      {
        credentialType: undefined,
        requiredClaims: undefined,
        declaredQuery: { credentials: [{ id: 'a', format: 'dc+sd-jwt' }] },
      },
    ],
    ['a policy for no query', { trustPolicies: { other: { sources: [{ kind: 'register' }] } } }],
  ])('for %s is refused', async (_, change) => {
    const answer = await presenter.ask(change);
    expect([answer.statusCode, answer.json().code]).toEqual([400, 'DCQL_INVALID']);
  });

  test('accepts issuers by a list or by a policy, which one would void', async () => {
    const trustPolicy = { sources: [{ kind: 'x509-tenant' }] };
    const answer = await presenter.ask({ acceptedIssuers: ['did:platform:org:w1other'], trustPolicy });
    expect([answer.statusCode, answer.json().code]).toEqual([400, 'INVALID_REQUEST']);
  });

  test('expects no value that no claim can have', async () => {
    const nested = JSON.parse(`${'['.repeat(65)}${']'.repeat(65)}`);
    for (const expectedValue of ['\ud800', nested]) {
      const requiredClaims = [{ claimName: 'a', expectedValue }];
      expect((await presenter.ask({ requiredClaims })).json().code).toBe('INVALID_REQUEST');
    }
  });

  test('sends people to safe addresses alone', async () => {
    for (const redirectUri of ['http://other.test/', 'javascript:alert(1)', 'ftp://x.test/']) {
      expect((await presenter.ask({ redirectUri })).json().code).toBe('REDIRECT_URI_REFUSED');
    }
  });

  test('by the hash of a certificate is signed by that one, or not at all, after it has changed', async () => {
    const { verifier } = fixture;
    const [first] = verifier.identities;
    const [second, third] = [await verifierIdentity(), await verifierIdentity()];
    const object = async (requestId: string) => {
      const answer = await fixture.app.inject({
        url: `/api/v1/verifier/requests/${requestId}/request-object`,
      });
      const [head = ''] = answer.body.split('.');
      if (answer.statusCode !== 200) return [answer.statusCode, answer.json().error];
      return [200, JSON.parse(Buffer.from(head, 'base64url').toString()).x5c[0]];
    };
    const byHash = (await presenter.ask({ clientIdPrefix: 'x509_hash' })).json().requestId;
    const byName = (await presenter.ask({ clientIdPrefix: 'x509_san_dns' })).json().requestId;
    verifier.identities = [second, first];
    expect(await object(byHash)).toEqual([200, first.x5c[0]]);
    expect(await object(byName)).toEqual([200, second.x5c[0]]);
    verifier.identities = [third, second];
    expect(await object(byHash)).toEqual([503, 'temporarily_unavailable']);
    expect(await object(byName)).toEqual([200, third.x5c[0]]);
    verifier.identities = [first];
  });

  test('is for callers with a token, of any tier', async () => {
    fixture.callers.set('Bearer citizen', caller({ tier: 'consumer' }));
    expect((await presenter.ask({}, 'Bearer citizen')).statusCode).toBe(201);
    expect((await presenter.ask({}, 'Bearer unknown')).statusCode).toBe(401);
  });

  test('ends: an expired or answered one has no object', async () => {
    const { requestId, request } = await presenter.asked({ expiresInSeconds: 60 });
    const presentation = await presenter.present(held, request);
    fixture.clock.advance(60_000);
    const url = `/api/v1/verifier/requests/${requestId}/request-object`;
    expect((await fixture.app.inject({ url })).statusCode).toBe(410);
    const late = await presenter.answer(requestId, request, { credential: [presentation] });
    expect([late.statusCode, late.json().code]).toEqual([410, 'REQUEST_ENDED']);
    expect((await presenter.result(requestId)).json()).toMatchObject({ state: 'Expired', result: null });
    const unknown = '/api/v1/verifier/requests/0190a5b2-7c3d-4e4f-8a1b-2c3d4e5f6a7b/request-object';
    expect((await fixture.app.inject({ url: unknown })).statusCode).toBe(404);
    expect((await fixture.app.inject({ url: unknown.replace('0190', 'zzzz') })).statusCode).toBe(404);
  });
});
