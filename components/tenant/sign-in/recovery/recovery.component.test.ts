import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readMails } from '../../people/messages/messages.fixture.ts';
import { bearer, passTime, startReplica, startTestTenant, type TestTenant } from '../../tenant.fixture.ts';
import { recordStatements } from '../statements.fixture.ts';

const password = 'marble orchard seldom rains';
const next = 'seven quiet lanterns drift';
const hourMs = 3_600_000;

describe('passwords of the own account', () => {
  let tenant: TestTenant;
  let other: TestTenant;

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_recovery', { CHANCERY_PUBLIC_ORG_ENABLED: 'true' });
    other = await startReplica(tenant.files);
  });
  afterAll(async () => {
    await other.app.close();
    await other.db.close();
    await tenant.stop();
  });

  const post = (url: string, payload: object, token?: string, on = tenant) =>
    on.app.inject({ method: 'POST', url, payload, ...(token && { headers: bearer(token) }) });
  const login = (email: string, secret = password, remoteAddress = '198.51.100.7') =>
    tenant.app.inject({
      method: 'POST',
      url: '/api/auth/login',
      payload: { email, password: secret },
      remoteAddress,
    });
  const linkIn = async (email: string) => {
    const text =
      (await readMails(tenant, email)).findLast((mail) => mail.text.includes('token='))?.text ?? '';
    return /#token=([A-Za-z0-9_-]{43})/.exec(text)?.[1] ?? '';
  };
  const register = async (email: string, isVerified = true) => {
    const body = { orgSubdomain: 'public', email, password, displayName: 'Ada' };
    expect((await post('/api/auth/register', body)).statusCode).toBe(201);
    if (isVerified) await post('/api/auth/verify-email', { token: await linkIn(email) });
  };
  const forgot = (email: string) => post('/api/auth/password/forgot', { email });
  const reset = (token: string, newPassword = next, on = tenant) =>
    post('/api/auth/password/reset', { token, newPassword }, undefined, on);
  const me = (token: string) =>
    tenant.app.inject({ method: 'GET', url: '/api/auth/me', headers: bearer(token) });

  it('a forgotten one is set by a link of a mail; sessions end, and the lock is lifted', async () => {
    await register('ada@example.org');
    const { access_token } = (await login('ada@example.org')).json();
    for (let count = 0; count < 5; count++) await login('ada@example.org', 'wrong', '203.0.113.9');
    expect((await forgot('ADA@example.org')).statusCode).toBe(202);
    const token = await linkIn('ada@example.org');
    expect((await reset(token, 'short')).json()).toMatchObject({ code: 'PASSWORD_REFUSED' });
    expect((await reset(token)).statusCode).toBe(204);
    expect((await reset(token)).json()).toMatchObject({ status: 400, code: 'TOKEN_USED' });
    await expect.poll(async () => (await me(access_token)).statusCode).toBe(401);
    await passTime(tenant, 61_000);
    expect((await login('ada@example.org', next, '203.0.113.9')).statusCode).toBe(200);
    expect((await login('ada@example.org', password)).statusCode).toBe(401);
    const rows = await tenant.db.read.selectFrom('inbox_entries').select('title').execute();
    expect(rows.map(({ title }) => title)).toContain('Your password was reset');
  });

  it('asking is alike for an address without an account: answer, statements, rows', async () => {
    const statements = recordStatements(tenant.db.pool);
    const ask = async (email: string) => {
      statements.take();
      const { statusCode, body } = await forgot(email);
      return { statusCode, body, sent: statements.take() };
    };
    expect(await ask('ada@example.org')).toEqual(await ask('nobody@example.org'));
    expect(await readMails(tenant, 'nobody@example.org')).toEqual([]);
  });

  it('no mailbox is flooded: ten mails an hour to one address, and the answer stays the same', async () => {
    await register('flooded@example.org');
    const before = (await readMails(tenant, 'flooded@example.org')).length;
    const answers = [];
    for (let count = 0; count < 12; count++) answers.push((await forgot('flooded@example.org')).statusCode);
    expect(new Set(answers)).toEqual(new Set([202]));
    expect((await readMails(tenant, 'flooded@example.org')).length - before).toBe(10);
  });

  it('of 50 parallel uses of a link on two replicas one sets the password', async () => {
    await register('race@example.org');
    await forgot('race@example.org');
    const token = await linkIn('race@example.org');
    const uses = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        reset(token, `${next} ${index}`, index % 2 === 0 ? tenant : other),
      ),
    );
    expect(uses.filter(({ statusCode }) => statusCode === 204)).toHaveLength(1);
    const won = uses.findIndex(({ statusCode }) => statusCode === 204);
    await passTime(tenant, 61_000);
    expect((await login('race@example.org', `${next} ${won}`)).statusCode).toBe(200);
  });

  it('a link holds for an hour, and a newer one that was used ends it', async () => {
    await register('late@example.org');
    await forgot('late@example.org');
    const first = await linkIn('late@example.org');
    await passTime(tenant, 1_000);
    await forgot('late@example.org');
    expect((await reset(await linkIn('late@example.org'))).statusCode).toBe(204);
    expect((await reset(first)).json()).toMatchObject({ code: 'TOKEN_USED' });
    await forgot('late@example.org');
    const late = await linkIn('late@example.org');
    await passTime(tenant, hourMs);
    expect((await reset(late)).json()).toMatchObject({ status: 410, code: 'TOKEN_EXPIRED' });
  });

  it('of an account that was not verified, a reset leaves nothing that was enrolled before', async () => {
    await register('squatted@example.org', false);
    const [account] = await tenant.db.read
      .selectFrom('platform_users')
      .select('id')
      .where('email', '=', 'squatted@example.org')
      .execute();
    await tenant.db.transact((tx) =>
      tx
        .insertInto('social_links')
        .values({
          id: crypto.randomUUID(),
          platform_user_id: account?.id ?? '',
          provider: 'github',
          subject: '17',
          email: null,
          display_name: null,
          linked_at: new Date(),
          last_used_at: null,
        })
        .execute(),
    );
    await forgot('squatted@example.org');
    expect((await reset(await linkIn('squatted@example.org'))).statusCode).toBe(204);
    expect(await tenant.db.read.selectFrom('social_links').selectAll().execute()).toEqual([]);
  });

  it('is changed with a proof of the last 300 seconds; the other sessions end, this one stays', async () => {
    await register('change@example.org');
    const [here, there] = [
      (await login('change@example.org')).json(),
      (await login('change@example.org')).json(),
    ];
    const change = (token: string, secret = next) =>
      post('/api/auth/password/change', { password: secret }, token);
    expect((await change(here.access_token, 'short')).json()).toMatchObject({ code: 'PASSWORD_REFUSED' });
    expect((await change(here.access_token)).statusCode).toBe(204);
    await expect.poll(async () => (await me(there.access_token)).statusCode).toBe(401);
    expect((await me(here.access_token)).statusCode).toBe(200);
    expect((await post('/api/auth/token/refresh', { refreshToken: there.refresh_token })).statusCode).toBe(
      401,
    );
    expect((await post('/api/auth/token/refresh', { refreshToken: here.refresh_token })).statusCode).toBe(
      200,
    );
    await passTime(tenant, 301_000);
    expect((await change(here.access_token)).json()).toMatchObject({
      code: 'insufficient_user_authentication',
    });
  });

  it('is set once, and is not removed while it is the only way in', async () => {
    await register('only@example.org');
    const { access_token } = (await login('only@example.org')).json();
    const act = (name: string, body: object = {}) => post(`/api/auth/password/${name}`, body, access_token);
    expect((await act('set', { password: next })).json()).toMatchObject({
      status: 409,
      code: 'PASSWORD_ALREADY_SET',
    });
    expect((await act('remove')).json()).toMatchObject({ status: 409, code: 'LAST_AUTH_METHOD' });
    const [account] = await tenant.db.read
      .selectFrom('platform_users')
      .select('id')
      .where('email', '=', 'only@example.org')
      .execute();
    await tenant.db.transact((tx) =>
      tx
        .insertInto('social_links')
        .values({
          id: crypto.randomUUID(),
          platform_user_id: account?.id ?? '',
          provider: 'github',
          subject: '42',
          email: null,
          display_name: null,
          linked_at: new Date(),
          last_used_at: null,
        })
        .execute(),
    );
    expect((await act('remove')).statusCode).toBe(204);
    expect((await act('change', { password: next })).json()).toMatchObject({ code: 'PASSWORD_NOT_SET' });
    expect((await act('set', { password: next })).statusCode).toBe(204);
    await passTime(tenant, 61_000);
    expect((await login('only@example.org', next)).statusCode).toBe(200);
  });

  it('no readable column holds a token or a password', async () => {
    await forgot('ada@example.org');
    const token = await linkIn('ada@example.org');
    const tables = [
      'one_time_secrets',
      'messages',
      'audit_events',
      'platform_users',
      'inbox_entries',
    ] as const;
    for (const table of tables) {
      const rows: readonly object[] = await tenant.db.read.selectFrom(table).selectAll().execute();
      const text = JSON.stringify(
        rows.map((row) =>
          Object.values(row).map((value) => (Buffer.isBuffer(value) ? value.toString('latin1') : value)),
        ),
      );
      for (const secret of [token, password, next]) expect(text.includes(secret), table).toBe(false);
    }
  });
});
