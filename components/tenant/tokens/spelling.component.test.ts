import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withOtherSignatureForm, withTrailingBits } from '#kit/testing/tokens.ts';
import { tokenPath } from '../platform/principals/token-listener.ts';
import { bearer, formOf, grant, startTestTenant, type TestTenant } from '../tenant.fixture.ts';

describe('encodings of tokens', () => {
  let tenant: TestTenant;

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_spelling');
  });
  afterAll(() => tenant.stop());

  const me = async (token: string) =>
    (await tenant.app.inject({ url: '/api/auth/me', headers: bearer(token) })).statusCode;
  const post = (url: string, token: string | undefined, payload: object) =>
    tenant.app.inject({
      method: 'POST',
      url,
      payload,
      ...(token === undefined ? {} : { headers: bearer(token) }),
    });
  const serviceToken = async (): Promise<string> => {
    const client_id = 'service-register';
    const client_secret = tenant.files.secretOf(client_id);
    const form = formOf({ grant_type: 'client_credentials', client_id, client_secret });
    return (await tenant.internal.inject({ ...form, url: tokenPath })).json().access_token;
  };
  const otherSpellings = (token: string) => {
    const signature = token.slice(token.lastIndexOf('.') + 1);
    return [`${token}=`, `${token}==`, token.slice(0, -signature.length) + withTrailingBits(signature)];
  };

  it('an access token has one encoding: others are 401, inactive, and revoke nothing', async () => {
    const { access_token: token } = await grant(tenant);
    const service = await serviceToken();
    expect(await me(token)).toBe(200);
    for (const text of [...otherSpellings(token), `${token}\n`, ` ${token}`]) {
      if (text === text.trim()) expect(await me(text)).toBe(401);
      const answer = await post('/api/auth/token/introspect', service, { token: text });
      expect(answer.body).toBe('{"active":false}');
      expect((await post('/api/auth/token/revoke', token, { token: text })).statusCode).toBe(200);
    }
    expect(await me(token)).toBe(200);
  });

  it('both forms of an ECDSA signature are revoked together', async () => {
    const acts = [
      (token: string, twin: string) => post('/api/auth/token/revoke', twin, { token }),
      (token: string, twin: string) => post('/api/auth/token/revoke', token, { token: twin }),
      (_token: string, twin: string) => post('/api/auth/logout', twin, {}),
      (token: string) => post('/api/auth/logout', token, {}),
    ];
    for (const act of acts) {
      const { access_token: token } = await grant(tenant);
      const twin = withOtherSignatureForm(token);
      expect([await me(token), await me(twin)]).toEqual([200, 200]);
      expect((await act(token, twin)).statusCode).toBeLessThan(300);
      for (const text of [token, twin]) await expect.poll(() => me(text), { interval: 20 }).toBe(401);
    }
  });

  it('a refresh token has one encoding; another one neither refreshes nor counts as reuse', async () => {
    const { refresh_token: token } = await grant(tenant);
    const spellings = [`${token}=`, `${token}==`, `${token} `, `${token}\n`, ` ${token}`];
    for (const refreshToken of spellings) {
      expect((await post('/api/auth/token/refresh', undefined, { refreshToken })).statusCode).toBe(401);
    }
    const next = await post('/api/auth/token/refresh', undefined, { refreshToken: token });
    expect(next.statusCode).toBe(200);
  });
});
