import { createLocalJWKSet, jwtVerify } from 'jose';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_ADMIN_ID, SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { testInstallation } from '#kit/testing/runtime.ts';
import {
  adminEmail,
  adminPassword,
  bearer,
  formOf,
  grant,
  startTestTenant,
  type TestTenant,
} from '../tenant.fixture.ts';

describe('sign-in', () => {
  let tenant: TestTenant;
  beforeAll(async () => {
    tenant = await startTestTenant('tenant_sign_in');
  });
  afterAll(() => tenant.stop());
  const token = (parameters: Record<string, string>) =>
    tenant.app.inject({ ...formOf(parameters), url: '/api/service-auth/token' });

  it('the password grant issues a token that an independent library verifies with the published keys', async () => {
    const answer = await token({ grant_type: 'password', username: adminEmail, password: adminPassword });
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['cache-control']).toBe('no-store');
    const body = answer.json();
    expect(body).toMatchObject({ token_type: 'Bearer', expires_in: 3600 });
    const jwks = await tenant.app.inject({ url: '/.well-known/jwks.json' });
    expect(jwks.json().keys).toHaveLength(2);
    const keySet = createLocalJWKSet(jwks.json());
    const { payload, protectedHeader } = await jwtVerify(body.access_token, keySet, {
      issuer: `urn:platform:${testInstallation}`,
      audience: `${testInstallation}:platform`,
      typ: 'at+jwt',
    });
    expect(protectedHeader.alg).toBe('ES256');
    expect(payload).toMatchObject({
      sub: DEFAULT_ADMIN_ID,
      org_id: SYSTEM_ORGANIZATION_ID,
      email: adminEmail,
      email_verified: true,
      roles: ['SystemAdmin', 'Administrator', 'Designer', 'Auditor', 'User'],
      token_type: 'user',
      token_use: 'access',
      tier: 'platform',
      client_id: 'first-party',
      amr: ['pwd'],
      acr: 'basic',
    });
    expect(payload).toHaveProperty('sid');
    expect(payload).toHaveProperty('auth_time');
    expect(payload).toHaveProperty('platform_user_id');
  });

  it('publishes authorisation server metadata', async () => {
    const answer = await tenant.app.inject({
      url: '/.well-known/oauth-authorization-server/api/service-auth',
    });
    expect(answer.json()).toMatchObject({
      issuer: `urn:platform:${testInstallation}`,
      jwks_uri: 'http://127.0.0.1:8080/.well-known/jwks.json',
      token_endpoint: 'http://127.0.0.1:8080/api/service-auth/token',
    });
  });

  it.each([
    [{ grant_type: 'password', username: adminEmail, password: 'wrong' }, 401, 'invalid_grant'],
    [{ grant_type: 'password', username: 'unknown@example.org', password: 'wrong' }, 401, 'invalid_grant'],
    [{ grant_type: 'client_credentials', client_id: 'service-register' }, 400, 'unsupported_grant_type'],
    [{ grant_type: 'password', username: adminEmail }, 400, 'invalid_request'],
    [{ username: adminEmail }, 400, 'invalid_request'],
    [{ grant_type: 'refresh_token', refresh_token: 'rt_x' }, 401, 'invalid_grant'],
    [
      {
        grant_type: 'password',
        username: adminEmail,
        password: adminPassword,
        organization_subdomain: 'nowhere',
      },
      401,
      'invalid_grant',
    ],
  ])('refuses %j with %i %s', async (parameters, status, error) => {
    const answer = await token(parameters);
    expect([answer.statusCode, answer.json().error]).toEqual([status, error]);
    expect(answer.json()).toHaveProperty('error_description');
  });

  it('refuses a repeated parameter, another content type and malformed JSON', async () => {
    const url = '/api/service-auth/token';
    const repeated = await tenant.app.inject({
      ...formOf({}),
      url,
      payload: 'grant_type=password&grant_type=x',
    });
    expect([repeated.statusCode, repeated.json().error]).toEqual([400, 'invalid_request']);
    const text = { method: 'POST', url, headers: { 'content-type': 'text/plain' }, payload: 'x' } as const;
    expect((await tenant.app.inject(text)).statusCode).toBe(415);
    const json = { ...text, headers: { 'content-type': 'application/json' }, payload: '{' };
    const malformed = await tenant.app.inject(json);
    expect([malformed.statusCode, malformed.json().error]).toEqual([400, 'invalid_request']);
  });

  it('signs in with JSON, returns the caller, and signs out permanently', async () => {
    const login = await tenant.app.inject({
      method: 'POST',
      url: '/api/auth/login',
      payload: { email: ` ${adminEmail.toUpperCase()}`, password: adminPassword },
    });
    expect(login.statusCode).toBe(200);
    const headers = bearer(login.json().access_token);
    const me = await tenant.app.inject({ url: '/api/auth/me', headers });
    expect(me.json()).toMatchObject({
      userId: DEFAULT_ADMIN_ID,
      email: adminEmail,
      tier: 'platform',
      authMethod: 'pwd',
    });
    const out = await tenant.app.inject({ method: 'POST', url: '/api/auth/logout', headers });
    expect(out.json()).toMatchObject({ success: true });
    await expect
      .poll(async () => (await tenant.app.inject({ url: '/api/auth/me', headers })).statusCode)
      .toBe(401);
    const payload = { refreshToken: login.json().refresh_token };
    const again = await tenant.app.inject({ method: 'POST', url: '/api/auth/token/refresh', payload });
    expect(again.statusCode).toBe(401);
  });

  it('refuses malformed e-mail addresses', async () => {
    const payload = { email: 'a\u0000@example.org', password: 'x' };
    const answer = await tenant.app.inject({ method: 'POST', url: '/api/auth/login', payload });
    expect([answer.statusCode, answer.json().errors]).toEqual([400, { email: [expect.any(String)] }]);
  });

  it('issues a consumer token on request, and a platform token to every entitled account', async () => {
    const body = { email: adminEmail, password: adminPassword, tier: 'consumer' };
    const login = await tenant.app.inject({ method: 'POST', url: '/api/auth/login', payload: body });
    const me = await tenant.app.inject({ url: '/api/auth/me', headers: bearer(login.json().access_token) });
    expect(me.json()).toMatchObject({ tier: 'consumer', roles: [] });
  });

  it('writes audit rows without secrets', async () => {
    await grant(tenant);
    const rows = await tenant.db.read.selectFrom('audit_events').selectAll().execute();
    expect(rows.map((row) => row.event_type)).toEqual(
      expect.arrayContaining(['Login', 'LoginFailed', 'Logout']),
    );
    expect(JSON.stringify(rows)).not.toContain(adminPassword);
  });

  it('recovers without internal errors when all database connections are lost under load', async () => {
    const { access_token } = await grant(tenant);
    const headers = bearer(access_token);
    const statuses = async () => {
      const answers = await Promise.all([
        token({ grant_type: 'password', username: adminEmail, password: adminPassword }),
        tenant.app.inject({ url: '/api/organizations', headers }),
        tenant.app.inject({ url: '/api/auth/me', headers }),
      ]);
      return answers.map((answer) => answer.statusCode);
    };
    const running = Array.from({ length: 6 }, () => statuses());
    const client = new pg.Client({ connectionString: tenant.files.env['DATABASE_URL'] });
    await client.connect();
    await client.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    );
    await client.end();
    const seen = (await Promise.all([...running, statuses()])).flat();
    expect(seen.filter((status) => status !== 200 && status !== 503)).toEqual([]);
    await expect.poll(statuses).toEqual([200, 200, 200]);
  });
});
