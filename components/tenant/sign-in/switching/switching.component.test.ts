import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PUBLIC_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { tokenPath } from '../../platform/principals/token-listener.ts';
import {
  bearer,
  formOf,
  grant,
  startTestTenant,
  type TestTenant,
  type TokenBody,
  verifyAddress,
} from '../../tenant.fixture.ts';

const password = 'velvet harbour counts seven';
const email = 'anna@example.org';

describe('organisation switching', () => {
  let tenant: TestTenant;
  let admin: string;
  const ids: Record<string, string> = {};

  const send = (method: 'GET' | 'POST' | 'PUT', url: string, token: string, payload?: object) =>
    tenant.app.inject({ method, url, headers: bearer(token), ...(payload === undefined ? {} : { payload }) });
  const idOf = (name: string) => ids[name] ?? 'none';
  const switchTo = (token: string, organizationId: string) =>
    send('POST', '/api/auth/switch-org', token, { organizationId });
  const signIn = async (organizationSubdomain?: string): Promise<TokenBody> => {
    const payload = { email, password, organizationSubdomain };
    return (await tenant.app.inject({ method: 'POST', url: '/api/auth/login', payload })).json();
  };
  const setStatus = (name: string, status: string) =>
    send('PUT', `/api/platform/organizations/${idOf(name)}/status`, admin, { status });
  const refreshed = (refreshToken: string) =>
    tenant.app.inject({ method: 'POST', url: '/api/auth/token/refresh', payload: { refreshToken } });

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_switching', { CHANCERY_PUBLIC_ORG_ENABLED: 'true' });
    admin = (await grant(tenant)).access_token;
    for (const name of ['home', 'away', 'closed', 'foreign']) {
      const made = await send('POST', '/api/organizations', admin, { name: `The ${name}`, subdomain: name });
      ids[name] = made.json().id;
    }
    const roles = { home: ['Administrator', 'Auditor'], away: ['User'], closed: ['Designer'] };
    for (const [name, granted] of Object.entries(roles)) {
      const user = { email, displayName: 'Anna', password, roles: granted };
      await send('POST', `/api/organizations/${idOf(name)}/users`, admin, user);
      await verifyAddress(tenant, email);
    }
    const citizen = { email, displayName: 'Anna', password, roles: ['User'] };
    await send('POST', `/api/organizations/${PUBLIC_ORGANIZATION_ID}/users`, admin, citizen);
    await setStatus('closed', 'Suspended');
  });
  afterAll(() => tenant.stop());

  it('lists the active organisations of the caller by name, with the highest role', async () => {
    const { access_token } = await signIn('home');
    const answer = await send('GET', '/api/auth/me/organizations', access_token);
    const others = { isCurrent: false, role: 'User' };
    expect(answer.json()).toEqual({
      items: [
        {
          ...others,
          organizationId: PUBLIC_ORGANIZATION_ID,
          organizationName: 'Public',
          subdomain: 'public',
        },
        { ...others, organizationId: idOf('away'), organizationName: 'The away', subdomain: 'away' },
        {
          organizationId: idOf('home'),
          organizationName: 'The home',
          subdomain: 'home',
          role: 'Administrator',
          isCurrent: true,
        },
      ],
    });
    expect(answer.headers['cache-control']).toBe('no-store');
  });

  it('issues tokens of the other organisation with the authentication of the session; the old token stays valid', async () => {
    const first = await signIn('home');
    const before = decodeJwt(first.access_token);
    tenant.clock.advance(5_000);
    const answer = await switchTo(first.access_token, idOf('away'));
    expect([answer.statusCode, answer.json()]).toMatchObject([
      200,
      { token_type: 'Bearer', expires_in: 3600 },
    ]);
    const after = decodeJwt(answer.json<TokenBody>().access_token);
    expect(after).toMatchObject({
      org_id: idOf('away'),
      tier: 'platform',
      roles: ['User'],
      platform_user_id: before['platform_user_id'],
      auth_time: before['auth_time'],
      amr: ['pwd'],
    });
    expect(after.sub).not.toBe(before.sub);
    expect(after['sid']).not.toBe(before['sid']);
    expect((await send('GET', '/api/auth/me', first.access_token)).json().organizationId).toBe(idOf('home'));
    // in the Public organisation every member has the tier consumer, whose tokens carry no roles
    const asCitizen = await switchTo(answer.json<TokenBody>().access_token, PUBLIC_ORGANIZATION_ID);
    const citizen = decodeJwt(asCitizen.json<TokenBody>().access_token);
    expect([citizen['tier'], citizen['roles']]).toEqual(['consumer', undefined]);
    const back = await switchTo(asCitizen.json<TokenBody>().access_token, idOf('home'));
    expect(decodeJwt(back.json<TokenBody>().access_token)).toMatchObject({
      tier: 'platform',
      roles: ['Administrator', 'Auditor'],
    });
    expect((await refreshed(answer.json<TokenBody>().refresh_token)).statusCode).toBe(200);
  });

  it('a sign-in that names no organisation uses the last one', async () => {
    const { access_token } = await signIn('home');
    await switchTo(access_token, idOf('away'));
    expect(decodeJwt((await signIn()).access_token)).toMatchObject({ org_id: idOf('away') });
  });

  it('a foreign, a suspended and an unknown organisation give the same answer', async () => {
    const { access_token } = await signIn('home');
    const unknown = '00000000-0000-4000-8000-000000000000';
    for (const organizationId of [idOf('foreign'), idOf('closed'), unknown]) {
      const refused = await switchTo(access_token, organizationId);
      expect([refused.statusCode, refused.json().code]).toEqual([403, 'NOT_A_MEMBER']);
    }
    for (const organizationId of ['', 'no guid']) {
      const refused = await switchTo(access_token, organizationId);
      expect([refused.statusCode, refused.json().code]).toEqual([400, 'INVALID_REQUEST']);
    }
  });

  it('a removed member can neither see the organisation nor switch to it', async () => {
    const { access_token } = await signIn('home');
    const setIdentity = (status: string) =>
      tenant.db.transact((tx) =>
        tx
          .updateTable('user_identities')
          .set({ status })
          .where('organization_id', '=', idOf('away'))
          .where('email', '=', email)
          .execute(),
      );
    for (const status of ['Suspended', 'Deleted']) {
      await setIdentity(status);
      const { items } = (await send('GET', '/api/auth/me/organizations', access_token)).json();
      expect(items.map((one: { subdomain: string }) => one.subdomain)).toEqual(['public', 'home']);
      expect((await switchTo(access_token, idOf('away'))).json().code).toBe('NOT_A_MEMBER');
    }
    await setIdentity('Active');
    expect((await switchTo(access_token, idOf('away'))).statusCode).toBe(200);
  });

  it('the session keeps the end of the first one, because switching is not an authentication', async () => {
    const familyOf = (token: string) =>
      tenant.db.read
        .selectFrom('refresh_families')
        .select(['auth_time', 'expires_at'])
        .where('id', '=', String(decodeJwt(token)['sid']))
        .executeTakeFirstOrThrow();
    const { access_token } = await signIn('home');
    tenant.clock.advance(5_000);
    const switched = (await switchTo(access_token, idOf('away'))).json<TokenBody>();
    expect(await familyOf(switched.access_token)).toEqual(await familyOf(access_token));

    await tenant.db.transact((tx) =>
      tx
        .updateTable('refresh_families')
        .set({ expires_at: new Date(tenant.clock.nowMs()) })
        .where('id', '=', String(decodeJwt(switched.access_token)['sid']))
        .execute(),
    );
    // the access token is still valid, but a new session would have ended already
    expect((await send('GET', '/api/auth/me', switched.access_token)).statusCode).toBe(200);
    const late = await switchTo(switched.access_token, idOf('home'));
    expect([late.statusCode, late.json().code]).toEqual([401, 'SESSION_ENDED']);
  });

  it('a signed-out session cannot start another one', async () => {
    const { access_token, refresh_token } = await signIn('home');
    const form = formOf({ token: refresh_token, token_type_hint: 'refresh_token' });
    const headers = { ...form.headers, ...bearer(access_token) };
    await tenant.app.inject({ ...form, url: '/api/auth/token/revoke', headers });
    const refused = await switchTo(access_token, idOf('away'));
    expect(refused.statusCode).toBe(401);
    expect(['SESSION_ENDED', 'UNAUTHORIZED']).toContain(refused.json().code);
  });

  it('a suspension concurrent with a switch leaves no valid session', async () => {
    const { access_token } = await signIn('home');
    const [switched] = await Promise.all([
      switchTo(access_token, idOf('away')),
      setStatus('away', 'Suspended'),
    ]);
    if (switched.statusCode === 200) {
      const { refresh_token } = switched.json<TokenBody>();
      expect((await refreshed(refresh_token)).statusCode).toBe(401);
    } else {
      expect(switched.json().code).toBe('NOT_A_MEMBER');
    }
    expect((await setStatus('away', 'Active')).statusCode).toBe(204);
  });

  it('writes an audit event in the organisation that was switched to', async () => {
    const { access_token } = await signIn('home');
    const tokens = (await switchTo(access_token, idOf('away'))).json<TokenBody>();
    const { sub, sid } = decodeJwt(tokens.access_token);
    const event = await tenant.db.read
      .selectFrom('audit_events')
      .selectAll()
      .where('organization_id', '=', idOf('away'))
      .where('event_type', '=', 'TokenIssued')
      .orderBy('id', 'desc')
      .executeTakeFirst();
    expect(event).toMatchObject({
      identity_id: sub,
      success: true,
      details: { method: 'switch-org', tier: 'platform', familyId: sid, from: idOf('home') },
    });
  });

  it('a service has no memberships', async () => {
    const client_id = 'service-register';
    const client_secret = tenant.files.secretOf(client_id);
    const form = formOf({ grant_type: 'client_credentials', client_id, client_secret });
    const token = (await tenant.internal.inject({ ...form, url: tokenPath })).json().access_token;
    const answers = [
      await send('GET', '/api/auth/me/organizations', token),
      await switchTo(token, idOf('home')),
    ];
    expect(answers.map((one) => [one.statusCode, one.json().code])).toEqual([
      [401, 'UNAUTHORIZED'],
      [401, 'UNAUTHORIZED'],
    ]);
  });
});
