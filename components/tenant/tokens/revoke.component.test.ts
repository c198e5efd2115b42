import { generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { testInstallation } from '#kit/testing/runtime.ts';
import { tokenPath } from '../platform/principals/token-listener.ts';
import { bearer, formOf, grant, startReplica, startTestTenant, type TestTenant } from '../tenant.fixture.ts';

const password = 'marble orchard seldom rains';

describe('revocation and policies', () => {
  let tenant: TestTenant;
  let replica: TestTenant;
  let acme: string;
  let memberId: string;

  const post = (url: string, token: string | undefined, payload: object) =>
    tenant.app.inject({
      method: 'POST',
      url,
      payload,
      ...(token === undefined ? {} : { headers: bearer(token) }),
    });
  const me = async (token: string, on: TestTenant = tenant) =>
    (await on.app.inject({ url: '/api/auth/me', headers: bearer(token) })).statusCode;
  /** Waits until this replica and the other one refuse the token, within a second. */
  const expectDead = async (token: string) => {
    const since = performance.now();
    await expect.poll(() => me(token), { interval: 20 }).toBe(401);
    await expect.poll(() => me(token, replica), { interval: 20 }).toBe(401);
    expect(performance.now() - since).toBeLessThan(1_500);
  };
  const serviceToken = async () => {
    const client_id = 'service-register';
    const client_secret = tenant.files.secretOf(client_id);
    const form = formOf({ grant_type: 'client_credentials', client_id, client_secret });
    return (await tenant.internal.inject({ ...form, url: tokenPath })).json().access_token;
  };
  const userToken = (email: string) => grant(tenant, email, password);

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_revoke');
    replica = await startReplica({ ...tenant.files, remove: async () => undefined });
    const { access_token } = await grant(tenant);
    const created = await post('/api/organizations', access_token, { name: 'Acme', subdomain: 'acme' });
    acme = created.json().id;
    const users = `/api/organizations/${acme}/users`;
    const person = { displayName: 'A User', password };
    await post(users, access_token, { ...person, email: 'boss@acme.example', roles: ['Administrator'] });
    const member = { ...person, email: 'member@acme.example', roles: ['User'] };
    memberId = (await post(users, access_token, member)).json().id;
  });
  afterAll(async () => {
    await replica.stop();
    await tenant.stop();
  });

  it('a revoked access token is refused everywhere; the refresh token stays valid', async () => {
    const tokens = await userToken('member@acme.example');
    const answer = await post('/api/auth/token/revoke', tokens.access_token, { token: tokens.access_token });
    expect(answer.json()).toMatchObject({ success: true });
    await expectDead(tokens.access_token);
    const again = await post('/api/auth/token/refresh', undefined, { refreshToken: tokens.refresh_token });
    expect(again.statusCode).toBe(200);
  });

  it('revoking a refresh token ends its family', async () => {
    const tokens = await userToken('member@acme.example');
    const form = formOf({ token: tokens.refresh_token, token_type_hint: 'refresh_token' });
    const headers = { ...form.headers, ...bearer(tokens.access_token) };
    const answer = await tenant.app.inject({ ...form, url: '/api/auth/token/revoke', headers });
    expect(answer.statusCode).toBe(200);
    await expectDead(tokens.access_token);
    const again = await post('/api/auth/token/refresh', undefined, { refreshToken: tokens.refresh_token });
    expect(again.statusCode).toBe(401);
  });

  it('a token of another user and an unknown one get the same answer and are not revoked', async () => {
    const mine = await userToken('member@acme.example');
    const theirs = await grant(tenant);
    for (const token of [theirs.access_token, theirs.refresh_token, 'unknown', 'rt_unknown']) {
      expect((await post('/api/auth/token/revoke', mine.access_token, { token })).statusCode).toBe(200);
    }
    expect((await post('/api/auth/token/revoke', mine.access_token, {})).statusCode).toBe(400);
    expect(await me(theirs.access_token)).toBe(200);
    const again = await post('/api/auth/token/refresh', undefined, { refreshToken: theirs.refresh_token });
    expect(again.statusCode).toBe(200);
  });

  it('revoke-user ends all tokens of a user of the own organisation, and the next sign-in works at once', async () => {
    const boss = (await userToken('boss@acme.example')).access_token;
    const member = await userToken('member@acme.example');
    expect((await post('/api/auth/token/revoke-user', boss, { userId: memberId })).statusCode).toBe(200);
    const next = await userToken('member@acme.example');
    await expectDead(member.access_token);
    const refreshed = await post('/api/auth/token/refresh', undefined, {
      refreshToken: member.refresh_token,
    });
    expect(refreshed.statusCode).toBe(401);
    expect(await me(next.access_token)).toBe(200);
    const foreign = { userId: '00000000-0000-0000-0001-000000000001' };
    expect((await post('/api/auth/token/revoke-user', boss, foreign)).statusCode).toBe(403);
  });

  it('revoke-organization ends all of them; a foreign administrator may not', async () => {
    const boss = (await userToken('boss@acme.example')).access_token;
    const member = (await userToken('member@acme.example')).access_token;
    const foreign = { organizationId: SYSTEM_ORGANIZATION_ID };
    expect((await post('/api/auth/token/revoke-organization', boss, foreign)).statusCode).toBe(403);
    const own = { organizationId: acme };
    expect((await post('/api/auth/token/revoke-organization', boss, own)).statusCode).toBe(200);
    await expectDead(member);
    await expectDead(boss);
    expect(await me((await grant(tenant)).access_token)).toBe(200);
  });

  it('only the system administrator learns that a user or an organisation does not exist', async () => {
    const admin = (await grant(tenant)).access_token;
    const nowhere = '00000000-0000-0000-0000-00000000ffff';
    expect((await post('/api/auth/token/revoke-user', admin, { userId: nowhere })).statusCode).toBe(404);
    const organization = { organizationId: nowhere };
    expect((await post('/api/auth/token/revoke-organization', admin, organization)).statusCode).toBe(404);
    expect((await post('/api/auth/token/revoke-user', admin, { userId: 'x' })).statusCode).toBe(400);
    expect((await post('/api/auth/token/revoke-user', undefined, { userId: nowhere })).statusCode).toBe(401);
  });

  it('introspects for services', async () => {
    const service = await serviceToken();
    const { access_token } = await grant(tenant);
    const answer = await post('/api/auth/token/introspect', service, { token: access_token });
    expect(answer.headers['content-type']).toMatch(/^application\/json(?:;|$)/);
    expect(answer.json()).toMatchObject({
      active: true,
      token_type: 'Bearer',
      tokenType: 'Bearer',
      client_id: 'first-party',
      org_id: SYSTEM_ORGANIZATION_ID,
      tier: 'platform',
    });
    const dead = await post('/api/auth/token/introspect', service, { token: 'x' });
    expect(dead.body).toBe('{"active":false}');
    expect((await post('/api/auth/token/introspect', access_token, { token: 'x' })).statusCode).toBe(403);
  });

  it('introspects and revokes refresh tokens; who has one needs no bearer to end its session', async () => {
    const service = await serviceToken();
    const { access_token, refresh_token } = await grant(tenant);
    const introspect = async (token: string) =>
      (await post('/api/auth/token/introspect', service, { token })).json();
    expect(await introspect(refresh_token)).toMatchObject({ active: true, token_type: 'refresh_token' });
    const { refresh_token: next } = (
      await post('/api/auth/token/refresh', undefined, { refreshToken: refresh_token })
    ).json();
    expect([await introspect(refresh_token), (await introspect(next)).active]).toEqual([
      { active: false },
      true,
    ]);
    const revoke = (token: string) => post('/api/auth/token/revoke', undefined, { token });
    expect((await revoke(access_token)).statusCode).toBe(401);
    expect((await revoke('rt_unknown')).statusCode).toBe(200);
    expect((await revoke(next)).statusCode).toBe(200);
    expect(await introspect(next)).toEqual({ active: false });
    expect((await post('/api/auth/token/refresh', undefined, { refreshToken: next })).statusCode).toBe(401);
    await expect.poll(() => introspect(access_token)).toEqual({ active: false });
  });

  it('each kind of token passes exactly the policies it should', async () => {
    const platform = (await grant(tenant)).access_token;
    const member = (await userToken('member@acme.example')).access_token;
    const login = { email: 'boss@acme.example', password, tier: 'consumer' };
    const consumer = (await post('/api/auth/login', undefined, login)).json().access_token;
    const service = await serviceToken();
    const { privateKey } = await generateKeyPair('ES256');
    const forged = await new SignJWT({ tier: 'platform', roles: ['SystemAdmin'] })
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: tenant.keys.current().kid })
      .setIssuer(`urn:platform:${testInstallation}`)
      .setAudience(`${testInstallation}:platform`)
      .setExpirationTime('1h')
      .sign(privateKey);
    const [, payload] = platform.split('.');
    const unsigned = `${Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')}.${payload}.`;
    const callers = { platform, member, consumer, service, forged, unsigned, none: undefined };
    const expected: Record<string, readonly number[]> = {
      // RequireAuthenticated, RequireAdministrator, RequireService
      platform: [200, 200, 403],
      member: [200, 403, 403],
      consumer: [200, 403, 403],
      service: [200, 403, 200],
      forged: [401, 401, 401],
      unsigned: [401, 401, 401],
      none: [401, 401, 401],
    };
    for (const [name, token] of Object.entries(callers)) {
      const headers = token === undefined ? {} : bearer(token);
      const answers = [
        await tenant.app.inject({ url: '/api/auth/me', headers }),
        await tenant.app.inject({ url: '/api/organizations', headers }),
        await post('/api/auth/token/introspect', token, { token: 'x' }),
      ];
      expect([name, ...answers.map((answer) => answer.statusCode)]).toEqual([
        name,
        ...(expected[name] ?? []),
      ]);
    }
  });

  it('an expired token is refused after the skew of 30 s', async () => {
    const { access_token } = await grant(tenant);
    tenant.clock.advance(3_600_000 + 29_000);
    await expect.poll(() => me(access_token)).toBe(200);
    tenant.clock.advance(2_000);
    expect(await me(access_token)).toBe(401);
  });
});
