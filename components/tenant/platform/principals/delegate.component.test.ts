import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import {
  adminEmail,
  adminPassword,
  bearer,
  formOf,
  startTestTenant,
  type TestTenant,
} from '../../tenant.fixture.ts';
import { delegatedTokenPath, tokenPath } from './token-listener.ts';
import { upsert } from './upsert.ts';

const password = 'twelve tin whistles play';

describe('delegated tokens and closed accounts', () => {
  let tenant: TestTenant;
  let userId: string;
  let user: string;

  const login = async () => {
    const payload = { email: 'user@example.org', password };
    return tenant.app.inject({ method: 'POST', url: '/api/auth/login', payload });
  };
  const delegated = (parameters: Record<string, string>) => {
    const client_secret = tenant.files.secretOf('service-register');
    const form = formOf({ client_id: 'service-register', client_secret, ...parameters });
    return tenant.internal.inject({ ...form, url: delegatedTokenPath });
  };
  const set = (table: 'platform_users' | 'organizations' | 'user_identities', status: string) =>
    tenant.db.transact((tx) => tx.updateTable(table).set({ status }).execute());

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_delegate', { CHANCERY_PASSWORD_GRANT_ENABLED: 'false' });
    const admin = await tenant.app.inject({
      method: 'POST',
      url: '/api/auth/login',
      payload: { email: adminEmail, password: adminPassword },
    });
    const created = await tenant.app.inject({
      method: 'POST',
      url: `/api/organizations/${SYSTEM_ORGANIZATION_ID}/users`,
      headers: bearer(admin.json().access_token),
      payload: { email: 'user@example.org', displayName: 'User', password },
    });
    userId = created.json().id;
    user = (await login()).json().access_token;
    const spec = {
      clientId: 'service-register',
      serviceName: 'register',
      scopes: ['wallets:sign', 'tenant:delegate'],
      canSignSystem: true,
    };
    await upsert(tenant.managePrincipals, spec, 'test');
  });
  afterAll(() => tenant.stop());

  it('the password grant can be disabled; sign-in stays available', async () => {
    const form = formOf({ grant_type: 'password', username: adminEmail, password: adminPassword });
    const answer = await tenant.app.inject({ ...form, url: '/api/service-auth/token' });
    expect([answer.statusCode, answer.json().error]).toEqual([400, 'unsupported_grant_type']);
    expect((await login()).statusCode).toBe(200);
  });

  it('a restricted token gives no service a token', async () => {
    const complete = (profile_completed: boolean) =>
      tenant.db.transact((tx) =>
        tx.updateTable('user_identities').set({ profile_completed }).where('id', '=', userId).execute(),
      );
    await complete(false);
    const restricted = (await login()).json().access_token;
    await complete(true);
    const answer = await delegated({ subject_token: restricted });
    expect([answer.statusCode, answer.json().error]).toEqual([401, 'invalid_grant']);
    expect((await delegated({ subject_token: user })).statusCode).toBe(200);
  });

  it('an authorised principal may name the user by id, with or without the organisation', async () => {
    const byId = await delegated({ delegated_user_id: userId });
    expect(byId.json().issued_token_type).toBe('urn:ietf:params:oauth:token-type:access_token');
    expect(byId.json()).toMatchObject({ expires_in: 300, scope: 'wallets:sign tenant:delegate' });
    const claims = decodeJwt(byId.json().access_token);
    expect(claims).toMatchObject({ delegated_user_id: userId, delegated_org_id: SYSTEM_ORGANIZATION_ID });
    const human = String(decodeJwt(user)['platform_user_id']);
    const organization = { delegated_organization_id: SYSTEM_ORGANIZATION_ID };
    const byHuman = await delegated({ delegated_user_id: human, ...organization });
    expect(decodeJwt(byHuman.json().access_token)['delegated_user_id']).toBe(userId);
    expect((await delegated({ delegated_user_id: 'unknown' })).statusCode).toBe(401);
    expect((await delegated({})).json().error).toBe('invalid_request');
    expect((await delegated({ grant_type: 'password' })).json().error).toBe('unsupported_grant_type');
    const rows = await tenant.db.read
      .selectFrom('audit_events')
      .select('details')
      .where('event_type', '=', 'TokenIssued')
      .where('identity_id', '=', userId)
      .execute();
    expect(rows[0]?.details).toMatchObject({
      delegated: true,
      clientId: 'service-register',
      credential: 'secret',
    });
  });

  it('accepts JSON and HTTP Basic too', async () => {
    const secret = tenant.files.secretOf('service-register');
    const basic = Buffer.from(`service-register:${secret}`).toString('base64');
    const byBasic = await tenant.internal.inject({
      ...formOf({ grant_type: 'client_credentials' }),
      headers: { 'content-type': 'application/x-www-form-urlencoded', authorization: `Basic ${basic}` },
      url: tokenPath,
    });
    expect(byBasic.statusCode).toBe(200);
    const payload = { clientId: 'service-register', clientSecret: secret, delegatedUserId: userId };
    const byJson = await tenant.internal.inject({ method: 'POST', url: delegatedTokenPath, payload });
    expect(byJson.statusCode).toBe(200);
  });

  it('the token names person, organisation and session, with the roles of the token it was exchanged for', async () => {
    const own = decodeJwt(user);
    const membership = {
      delegated_user_id: userId,
      delegated_platform_user_id: own['platform_user_id'],
      delegated_org_id: SYSTEM_ORGANIZATION_ID,
    };
    const exchanged = decodeJwt((await delegated({ subject_token: user })).json().access_token);
    expect(exchanged).toMatchObject({ ...membership, delegated_roles: own['roles'] ?? [] });
    expect(exchanged['delegated_sid']).toBe(own['sid']);
    expect(exchanged).not.toHaveProperty('platform_user_id');
    const admin = await tenant.app.inject({
      method: 'POST',
      url: '/api/auth/login',
      payload: { email: adminEmail, password: adminPassword },
    });
    const byAdmin = await delegated({ subject_token: admin.json().access_token });
    const roles = decodeJwt(byAdmin.json().access_token)['delegated_roles'];
    expect(roles).toEqual(decodeJwt(admin.json().access_token)['roles']);
    expect(roles).toContain('SystemAdmin');
    const payload = { email: adminEmail, password: adminPassword, tier: 'consumer' };
    const consumer = await tenant.app.inject({ method: 'POST', url: '/api/auth/login', payload });
    const byConsumer = await delegated({ subject_token: consumer.json().access_token });
    expect(decodeJwt(byConsumer.json().access_token)['delegated_roles']).toEqual([]);
    const named = decodeJwt((await delegated({ delegated_user_id: userId })).json().access_token);
    expect(named).toMatchObject(membership);
    expect(named).not.toHaveProperty('delegated_sid');
  });

  it('the end of the session ends a delegated token; a revoked token is not exchanged', async () => {
    const tokens = (await login()).json();
    const token = (await delegated({ subject_token: tokens.access_token })).json().access_token;
    const me = async () =>
      (await tenant.app.inject({ url: '/api/auth/me', headers: bearer(token) })).statusCode;
    expect(await me()).toBe(200);
    const logout = await tenant.app.inject({
      method: 'POST',
      url: '/api/auth/logout',
      headers: bearer(tokens.access_token),
      payload: {},
    });
    expect(logout.statusCode).toBeLessThan(300);
    await expect.poll(me).toBe(401);
    const again = await delegated({ subject_token: tokens.access_token });
    expect([again.statusCode, again.json().error]).toEqual([401, 'invalid_grant']);
  });

  it('a delegated token stays a service token until it expires', async () => {
    const token = (await delegated({ subject_token: user })).json().access_token;
    const me = () => tenant.app.inject({ url: '/api/auth/me', headers: bearer(token) });
    expect((await me()).json()).toMatchObject({ tokenType: 'service', roles: [] });
    const again = await delegated({ subject_token: token });
    expect([again.statusCode, again.json().error]).toEqual([401, 'invalid_grant']);
    tenant.clock.advance(331_000);
    await expect.poll(async () => (await me()).statusCode).toBe(401);
  });

  it.each([
    ['platform_users', 'Suspended'],
    ['user_identities', 'Suspended'],
    ['organizations', 'Suspended'],
  ] as const)(
    '%s %s: no token for or of the user, and a living one cannot be renewed',
    async (table, status) => {
      const tokens = (await login()).json();
      await set(table, status);
      expect((await login()).statusCode).toBe(401);
      const payload = { refreshToken: tokens.refresh_token };
      const refreshed = await tenant.app.inject({ method: 'POST', url: '/api/auth/token/refresh', payload });
      expect(refreshed.statusCode).toBe(401);
      if (table !== 'platform_users') {
        const answer = await delegated({ delegated_user_id: userId });
        expect([answer.statusCode, answer.json().error]).toEqual([401, 'invalid_grant']);
      }
      await set(table, 'Active');
      expect((await login()).statusCode).toBe(200);
    },
  );
});
