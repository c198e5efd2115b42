import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { liftCap } from '#kit/rate-limit/security-cap.ts';
import {
  adminEmail,
  bearer,
  grant,
  startReplica,
  startTestTenant,
  type TestTenant,
} from '../tenant.fixture.ts';

const password = 'seven quiet lanterns drift';
const email = 'lena@example.org';

describe('progressive lockout (identity.md A10)', () => {
  let tenant: TestTenant;
  let userId: string;

  const login = (secret: string, on: Pick<TestTenant, 'app'> = tenant, who = email) =>
    on.app.inject({ method: 'POST', url: '/api/auth/login', payload: { email: who, password: secret } });
  /** The minute that the throttle lasts, without waiting for it. */
  const passMinute = () => liftCap(tenant.db, { name: 'login-email', key: email });
  const fail = async (times: number) => {
    for (let i = 0; i < times; i++) {
      await passMinute();
      expect((await login('wrong')).statusCode).toBe(401);
    }
    await passMinute();
  };
  const unlock = async () => {
    const { access_token } = await grant(tenant);
    const url = `/api/organizations/${SYSTEM_ORGANIZATION_ID}/users/${userId}/unlock`;
    return tenant.app.inject({ method: 'POST', url, headers: bearer(access_token) });
  };

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_lockout', {
      CHANCERY_LOCKOUT_STEPS:
        '[{"failures":5,"seconds":10},{"failures":7,"seconds":60},{"failures":8,"seconds":"until-unlocked"}]',
    });
    const { access_token } = await grant(tenant);
    const created = await tenant.app.inject({
      method: 'POST',
      url: `/api/organizations/${SYSTEM_ORGANIZATION_ID}/users`,
      headers: bearer(access_token),
      payload: { email, displayName: 'Lena', password, roles: ['Auditor'] },
    });
    expect(created.statusCode).toBe(201);
    userId = created.json().id;
  });
  afterAll(() => tenant.stop());
  beforeEach(async () => {
    await passMinute();
    await unlock();
  });

  it('five wrong passwords throttle the address, known or not, on every replica', async () => {
    const replica = await startReplica({ ...tenant.files, remove: async () => undefined });
    for (const who of [email, 'ghost@example.org']) {
      for (let i = 0; i < 5; i++) expect((await login('wrong', tenant, who)).statusCode).toBe(401);
      const sixth = await login(password, replica, who.toUpperCase());
      expect(sixth.statusCode).toBe(429);
      expect(Number(sixth.headers['retry-after'])).toBeGreaterThan(0);
      expect(Number(sixth.headers['retry-after'])).toBeLessThanOrEqual(60);
    }
    await replica.stop();
  });

  it('parallel guesses count too: of fifty at most five are judged', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => login('wrong')));
    const statuses = answers.map((answer) => answer.statusCode);
    expect(statuses.filter((status) => status === 401)).toHaveLength(5);
    expect(statuses.filter((status) => status === 429)).toHaveLength(45);
  });

  it('parallel right passwords of one person all succeed', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => login(password)));
    expect(new Set(answers.map((answer) => answer.statusCode))).toEqual(new Set([200]));
  });

  it('locks at a step: the right password is refused, opens when the time has passed, and starts again at zero', async () => {
    await fail(5);
    expect((await login(password)).statusCode).toBe(401);
    tenant.clock.advance(9_000);
    expect((await login(password)).statusCode).toBe(401);
    tenant.clock.advance(1_001);
    expect((await login(password)).statusCode).toBe(200);
    await fail(4);
    expect((await login(password)).statusCode).toBe(200);
  });

  it('climbs the ladder until only an administrator opens it, and writes it down', async () => {
    await fail(5);
    tenant.clock.advance(10_001);
    await fail(2);
    tenant.clock.advance(59_000);
    expect((await login(password)).statusCode).toBe(401);
    tenant.clock.advance(1_001);
    await fail(1);
    tenant.clock.advance(365 * 86_400_000);
    expect((await login(password)).statusCode).toBe(401);
    await expect.poll(async () => (await unlock()).statusCode).toBe(200);
    expect((await login(password)).statusCode).toBe(200);
    const rows = await tenant.db.read
      .selectFrom('audit_events')
      .select(['event_type', 'details'])
      .where('event_type', 'in', ['AccountLockedOut', 'AccountUnlockedByAdmin'])
      .execute();
    expect(rows).toContainEqual({
      event_type: 'AccountLockedOut',
      details: { failures: 8, until: 'unlocked' },
    });
    expect(rows.map((row) => row.event_type)).toContain('AccountUnlockedByAdmin');
  });

  it('attempts while locked do not count', async () => {
    await fail(5);
    await fail(3);
    tenant.clock.advance(10_001);
    expect((await login(password)).statusCode).toBe(200);
  });

  it('refuses to say why', async () => {
    const bodyOf = async (secret: string, who: string) => {
      const { detail, code, status } = (await login(secret, tenant, who)).json();
      return { detail, code, status };
    };
    const wrong = await bodyOf('wrong', adminEmail);
    await liftCap(tenant.db, { name: 'login-email', key: adminEmail });
    const unknown = await bodyOf('wrong', 'nobody@example.org');
    await fail(5);
    const locked = await bodyOf(password, email);
    expect(unknown).toEqual(wrong);
    expect(locked).toEqual(wrong);
  });

  it('only an administrator of the organisation unlocks', async () => {
    const { access_token } = await grant(tenant, email, password);
    const url = `/api/organizations/${SYSTEM_ORGANIZATION_ID}/users/${userId}/unlock`;
    const answer = await tenant.app.inject({ method: 'POST', url, headers: bearer(access_token) });
    expect(answer.statusCode).toBe(403);
    const missing = url.replace(userId, '00000000-0000-0000-0000-00000000ffff');
    const admin = bearer((await grant(tenant)).access_token);
    expect((await tenant.app.inject({ method: 'POST', url: missing, headers: admin })).statusCode).toBe(404);
  });
});
