import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  adminEmail,
  adminPassword,
  formOf,
  grant,
  startTestTenant,
  type TestTenant,
} from '../tenant.fixture.ts';

describe('an unknown tier', () => {
  let tenant: TestTenant;
  beforeAll(async () => {
    tenant = await startTestTenant('tenant_tier');
  });
  afterAll(() => tenant.stop());

  const post = (url: string, payload: object) => tenant.app.inject({ method: 'POST', url, payload });
  const token = (parameters: Readonly<Record<string, string>>) =>
    tenant.app.inject({ ...formOf(parameters), url: '/api/service-auth/token' });
  const countFamilies = async () =>
    (await tenant.db.read.selectFrom('refresh_families').select('id').execute()).length;
  const login = { email: adminEmail, password: adminPassword };
  const password = { grant_type: 'password', username: adminEmail, password: adminPassword };
  const unknown = [
    'root',
    'service',
    'consumr',
    'platform consumer',
    'platform\u0000',
    'plаtform',
    'enrol-session',
  ];

  it.each(unknown)('%j is 400 at every token route, and no token is issued', async (tier) => {
    const { refresh_token: refreshToken } = await grant(tenant);
    const before = await countFamilies();
    const answers = [
      await post('/api/auth/login', { ...login, tier }),
      await post('/api/auth/token/refresh', { refreshToken, tier }),
      await token({ ...password, tier }),
      await post('/api/service-auth/token', { ...password, tier }),
      await token({ grant_type: 'refresh_token', refresh_token: refreshToken, tier }),
    ];
    expect(answers.map((answer) => answer.statusCode)).toEqual([400, 400, 400, 400, 400]);
    expect(answers.slice(2).map((answer) => answer.json().error)).toEqual(Array(3).fill('invalid_request'));
    expect(answers.filter((answer) => answer.body.includes('access_token'))).toEqual([]);
    expect(await countFamilies()).toBe(before);
    // the refused refresh did not consume the token
    const next = await post('/api/auth/token/refresh', { refreshToken });
    expect(next.statusCode).toBe(200);
  });

  it('an unknown tier is refused without checking the password', async () => {
    const wrong = { email: adminEmail, password: 'not the password', tier: 'root' };
    expect((await post('/api/auth/login', wrong)).statusCode).toBe(400);
    const form = { ...password, password: 'not the password', tier: 'root' };
    expect((await token(form)).json().error).toBe('invalid_request');
  });

  it.each([5, true, ['consumer'], {}])('%j is refused too', async (tier) => {
    expect((await post('/api/auth/login', { ...login, tier })).statusCode).toBe(400);
    expect((await post('/api/service-auth/token', { ...password, tier })).statusCode).toBe(400);
  });

  it('known tiers are case-insensitive, and an empty form parameter counts as omitted', async () => {
    for (const tier of ['consumer', ' Consumer ', 'CONSUMER']) {
      const answer = await post('/api/auth/login', { ...login, tier });
      expect(decodeJwt(answer.json().access_token)).toMatchObject({ tier: 'consumer' });
    }
    for (const tier of ['platform', 'Platform', '']) {
      expect(decodeJwt((await token({ ...password, tier })).json().access_token)).toMatchObject({
        tier: 'platform',
      });
    }
  });
});
