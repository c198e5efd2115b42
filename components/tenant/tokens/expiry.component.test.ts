import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { authPlugin, createAuthenticator, givenKeys } from '#kit/auth/auth.ts';
import { createHttpServer } from '#kit/http/http.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { type CallOptions, call, createTestWorld, type TestWorld } from '../../gateway/testing/world.ts';
import { formOf, grant, startTestTenant, type TestTenant } from '../tenant.fixture.ts';

const skewMs = 30_000;
const realm = 'Bearer realm="platform"';

/** Calls a tenant and another service through the gateway with mutual TLS; their clocks are manual. */
describe('expired tokens through the gateway', () => {
  let world: TestWorld;
  let tenant: TestTenant;
  let port = 0;

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_expiry');
    world = await createTestWorld();
    const upstream = await world.startService('tenant', (request, response) =>
      tenant.app.routing(request, response),
    );
    await tenant.app.ready();
    const other = otherService(tenant);
    await other.ready();
    const wallet = await world.startService('wallet', (request, response) =>
      other.routing(request, response),
    );
    const services = { tenant: upstream.address, wallet: wallet.address };
    port = (await world.startGateway(services)).port;
  });
  afterAll(async () => {
    await world.stop();
    await tenant.stop();
  });

  /** A service that reads only the keys and revocations of the tenant. */
  function otherService({ clock, keys, revocations }: TestTenant) {
    const app = createHttpServer({ runtime: testRuntime('service-wallet', { clock }), title: 'other' });
    const tokenKeys = givenKeys(() => keys.jwks());
    authPlugin(
      app,
      createAuthenticator({ installation: testInstallation, keys: tokenKeys, revocations, clock }),
    );
    app.get(
      '/api/wallets',
      { config: { policy: 'RequireAuthenticated' }, schema: { hide: true } },
      async () => ({ items: [] }),
    );
    return app;
  }

  /** Advances all clocks, then refreshes the revocations of every service. */
  async function advance(ms: number): Promise<void> {
    tenant.clock.advance(ms);
    await expect
      .poll(() => {
        try {
          return tenant.revocations.assertFresh() ?? true;
        } catch {
          return false;
        }
      })
      .toBe(true);
  }

  const get = (path: string, token: string) =>
    call(port, path, { headers: { authorization: `Bearer ${token}` } });
  const postForm = (
    path: string,
    parameters: Record<string, string>,
    headers: CallOptions['headers'] = {},
  ) => {
    const form = formOf(parameters);
    return call(port, path, { method: 'POST', headers: { ...form.headers, ...headers }, body: form.payload });
  };
  const refresh = (token: string) =>
    postForm('/api/service-auth/token', { grant_type: 'refresh_token', refresh_token: token });
  const refreshJson = (refreshToken: string) =>
    call(port, '/api/auth/token/refresh', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ refreshToken }),
    });

  async function isExpired(path: string, token: string): Promise<void> {
    const answer = await get(path, token);
    expect([path, answer.status]).toEqual([path, 401]);
    expect(answer.headers['www-authenticate']).toBe(`${realm}, error="invalid_token"`);
    expect(answer.headers['content-type']).toContain('application/problem+json');
    expect(answer.json()).toMatchObject({ status: 401, code: 'UNAUTHORIZED', path });
    expect(answer.text).not.toContain(token.slice(0, 40));
  }

  it('an access token is 200 until its expiry plus skew, then 401 at every service, also where it was cached', async () => {
    const { access_token, expires_in } = await grant(tenant);
    const paths = ['/api/auth/me', '/api/wallets'];
    for (const path of paths) expect((await get(path, access_token)).status).toBe(200);
    await advance(expires_in * 1000 + skewMs - 2_000);
    for (const path of paths) expect((await get(path, access_token)).status).toBe(200);
    await advance(2_001);
    for (const path of paths) await isExpired(path, access_token);
    const none = await call(port, '/api/wallets');
    expect([none.status, none.headers['www-authenticate']]).toEqual([401, realm]);
  });

  it('its refresh token stays valid and gives a valid access token', async () => {
    const { access_token, refresh_token, expires_in } = await grant(tenant);
    await advance(expires_in * 1000 + skewMs + 1);
    await isExpired('/api/auth/me', access_token);
    const renewed = await refresh(refresh_token);
    expect(renewed.status).toBe(200);
    const token = String(renewed.json()['access_token']);
    expect((await get('/api/wallets', token)).status).toBe(200);
    await isExpired('/api/auth/me', access_token);
  });

  it('a refresh token is 401 invalid_grant a day after the sign-in, as form and as JSON, and no token is issued', async () => {
    const { refresh_token } = await grant(tenant);
    await advance(24 * 3_600_000 - 1_000);
    const last = await grant(tenant);
    await advance(1_001);
    const byForm = await refresh(refresh_token);
    expect([byForm.status, byForm.json()['error']]).toEqual([401, 'invalid_grant']);
    expect(byForm.headers['www-authenticate']).toBe(realm);
    const byJson = await refreshJson(refresh_token);
    expect([byJson.status, byJson.headers['www-authenticate']]).toEqual([401, realm]);
    for (const { text } of [byForm, byJson]) expect(text).not.toContain('access_token');
    expect((await refresh(last.refresh_token)).status).toBe(200);
  });

  it('an expired service token is 401, and introspection reports it as inactive', async () => {
    const mint = async () => {
      const form = formOf({
        grant_type: 'client_credentials',
        client_id: 'service-register',
        client_secret: tenant.files.secretOf('service-register'),
      });
      const answer = await tenant.internal.inject({ ...form, url: '/api/internal/service-auth/token' });
      expect(answer.statusCode).toBe(200);
      return answer.json<{ access_token: string; expires_in: number }>();
    };
    const introspect = (by: string, token: string) =>
      postForm('/api/auth/token/introspect', { token }, { authorization: `Bearer ${by}` });
    const user = await grant(tenant);
    const service = await mint();
    expect((await introspect(service.access_token, user.access_token)).json()['active']).toBe(true);
    await advance(Math.max(service.expires_in, user.expires_in) * 1000 + skewMs + 1);
    const refused = await introspect(service.access_token, user.access_token);
    expect(refused.status).toBe(401);
    expect(refused.headers['www-authenticate']).toBe(`${realm}, error="invalid_token"`);
    const fresh = await mint();
    const judged = await introspect(fresh.access_token, user.access_token);
    expect([judged.status, judged.json()]).toEqual([200, { active: false }]);
  });
});
