import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  adminEmail,
  adminPassword,
  bearer,
  formOf,
  grant,
  startReplica,
  startTestTenant,
  type TestTenant,
} from '../tenant.fixture.ts';

describe('refresh rotation', () => {
  let tenant: TestTenant;
  beforeAll(async () => {
    tenant = await startTestTenant('tenant_refresh');
  });
  afterAll(() => tenant.stop());

  const refresh = (refresh_token: string, on: Pick<TestTenant, 'app'> = tenant) =>
    on.app.inject({
      ...formOf({ grant_type: 'refresh_token', refresh_token }),
      url: '/api/service-auth/token',
    });
  const me = async (token: string) =>
    (await tenant.app.inject({ url: '/api/auth/me', headers: bearer(token) })).statusCode;

  it('a lost answer is repeated; a late reuse ends the whole family', async () => {
    const first = await grant(tenant);
    const second = (await refresh(first.refresh_token)).json();
    expect(second.refresh_token).not.toBe(first.refresh_token);
    tenant.clock.advance(1_000);
    const again = await refresh(first.refresh_token);
    expect(again.json().refresh_token).toBe(second.refresh_token);
    expect(await me(second.access_token)).toBe(200);
    tenant.clock.advance(14_000);
    const late = await refresh(first.refresh_token);
    expect([late.statusCode, late.json().error]).toEqual([401, 'invalid_grant']);
    expect((await refresh(second.refresh_token)).statusCode).toBe(401);
    await expect.poll(() => me(second.access_token)).toBe(401);
    const rows = await tenant.db.read
      .selectFrom('audit_events')
      .select(['event_type', 'details'])
      .where('event_type', 'in', ['RefreshTokenReuseDetected', 'TokenRevoked'])
      .execute();
    const familyId = decodeJwt(first.access_token)['sid'];
    expect(rows).toContainEqual({ event_type: 'RefreshTokenReuseDetected', details: { familyId } });
    expect(rows).toContainEqual({
      event_type: 'TokenRevoked',
      details: { familyId, reason: 'refresh_reuse' },
    });
  });

  it('a used token whose successor was used counts as reuse, also immediately', async () => {
    const first = await grant(tenant);
    const second = (await refresh(first.refresh_token)).json();
    await refresh(second.refresh_token);
    expect((await refresh(first.refresh_token)).statusCode).toBe(401);
  });

  it('20 parallel refreshes on two replicas give one new generation', async () => {
    const replica = await startReplica({ ...tenant.files, remove: async () => undefined });
    const { refresh_token, access_token } = await grant(tenant);
    replica.clock.set(tenant.clock.nowMs());
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => refresh(refresh_token, i % 2 === 0 ? tenant : replica)),
    );
    expect(answers.map((answer) => answer.statusCode)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(new Set(answers.map((answer) => answer.json().refresh_token)).size).toBe(1);
    const family = await tenant.db.read
      .selectFrom('refresh_families')
      .select('generation')
      .where('id', '=', String(decodeJwt(access_token)['sid']))
      .executeTakeFirstOrThrow();
    expect(family.generation).toBe(1);
    await replica.stop();
  });

  it('ends 24 hours after the sign-in, independent of its use', async () => {
    let token = (await grant(tenant)).refresh_token;
    for (let hour = 0; hour < 23; hour++) {
      tenant.clock.advance(3_600_000);
      const answer = await refresh(token);
      expect(answer.statusCode).toBe(200);
      token = answer.json().refresh_token;
    }
    tenant.clock.advance(3_600_000);
    expect((await refresh(token)).statusCode).toBe(401);
  });

  it('keeps the tier, changes it on request, and reads the roles from the database', async () => {
    const payload = { email: adminEmail, password: adminPassword, tier: 'consumer' };
    const login = await tenant.app.inject({ method: 'POST', url: '/api/auth/login', payload });
    const refreshed = await refresh(login.json().refresh_token);
    expect(decodeJwt(refreshed.json().access_token)).toMatchObject({ tier: 'consumer' });
    const request = { refreshToken: refreshed.json().refresh_token, tier: 'platform' };
    const raised = await tenant.app.inject({
      method: 'POST',
      url: '/api/auth/token/refresh',
      payload: request,
    });
    const claims = decodeJwt(raised.json().access_token);
    expect(claims).toMatchObject({ tier: 'platform', roles: expect.arrayContaining(['SystemAdmin']) });
    expect(claims['sid']).toBe(decodeJwt(login.json().access_token)['sid']);
    expect(claims['auth_time']).toBe(decodeJwt(login.json().access_token)['auth_time']);
  });

  it('refuses a forged token, an access token and the tokens of a suspended user', async () => {
    const tokens = await grant(tenant);
    expect((await refresh(tokens.access_token)).statusCode).toBe(401);
    const forged = tokens.refresh_token.replace(/.$/, (last) => (last === 'A' ? 'Q' : 'A'));
    expect((await refresh(forged)).statusCode).toBe(401);
    const setStatus = (status: string) =>
      tenant.db.transact((tx) => tx.updateTable('platform_users').set({ status }).execute());
    await setStatus('Suspended');
    expect((await refresh(tokens.refresh_token)).statusCode).toBe(401);
    await setStatus('Active');
    expect((await refresh(tokens.refresh_token)).statusCode).toBe(200);
  });

  it('ignores an invalid authorization header', async () => {
    const { refresh_token } = await grant(tenant);
    const payload = { refreshToken: refresh_token };
    const headers = bearer('rubbish');
    const answer = await tenant.app.inject({
      method: 'POST',
      url: '/api/auth/token/refresh',
      payload,
      headers,
    });
    expect(answer.statusCode).toBe(200);
  });
});
