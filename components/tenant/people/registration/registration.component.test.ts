import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordStatements } from '../../sign-in/statements.fixture.ts';
import { bearer, passTime, startReplica, startTestTenant, type TestTenant } from '../../tenant.fixture.ts';
import { readMails } from '../messages/messages.fixture.ts';

const password = 'marble orchard seldom rains';
const hourMs = 3_600_000;

describe('registration', () => {
  let tenant: TestTenant;
  let other: TestTenant;

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_registration', { CHANCERY_PUBLIC_ORG_ENABLED: 'true' });
    other = await startReplica(tenant.files);
  });
  afterAll(async () => {
    await other.app.close();
    await other.db.close();
    await tenant.stop();
  });

  const post = (url: string, payload: object, token?: string, on = tenant) =>
    on.app.inject({ method: 'POST', url, payload, ...(token && { headers: bearer(token) }) });
  const register = (email: string, change: object = {}) =>
    post('/api/auth/register', { orgSubdomain: 'public', email, password, displayName: 'Ada', ...change });
  const login = (email: string, secret = password, organizationSubdomain?: string) =>
    post('/api/auth/login', { email, password: secret, organizationSubdomain });
  const tokenIn = async (email: string, name: 'token' | 'disown' = 'token') => {
    const mail = (await readMails(tenant, email)).at(-1);
    return new RegExp(`${name}=([A-Za-z0-9_-]{43})`).exec(mail?.text ?? '')?.[1] ?? '';
  };
  const accountOf = (email: string) =>
    tenant.db.read.selectFrom('platform_users').selectAll().where('email', '=', email).execute();
  /** The administrator of an organisation adds a person there. */
  const addElsewhere = async (email: string, secret: string) => {
    const admin = (
      await post('/api/auth/login', { email: 'admin@example.org', password: 'blue kettle winter parade' })
    ).json();
    const subdomain = `org-${Math.random().toString(36).slice(2, 8)}`;
    const organization = await post(
      '/api/organizations',
      { name: 'Elsewhere', subdomain },
      admin.access_token,
    );
    const own = (
      await post('/api/auth/switch-org', { organizationId: organization.json().id }, admin.access_token)
    ).json();
    const users = `/api/organizations/${organization.json().id}/users`;
    const added = await post(
      users,
      { email, displayName: 'Ada', password: secret, roles: ['User'] },
      own.access_token,
    );
    expect(added.statusCode).toBe(201);
    return subdomain;
  };

  it('makes an unverified account, and its mail verifies it', async () => {
    const registered = await register(' Ada@Example.org ');
    expect(registered.statusCode).toBe(201);
    expect(registered.json()).toMatchObject({
      success: true,
      userId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    const signedIn = (await login('ada@example.org')).json();
    const claims = JSON.parse(Buffer.from(signedIn.access_token.split('.')[1], 'base64url').toString());
    expect(claims).toMatchObject({ email_verified: false, tier: 'consumer', sub: registered.json().userId });
    const token = await tokenIn('ada@example.org');
    const verify = () => post('/api/auth/verify-email', { token });
    expect((await verify()).json()).toMatchObject({ success: true });
    expect([(await verify()).statusCode, (await verify()).json().code]).toEqual([400, 'TOKEN_USED']);
    expect(await accountOf('ada@example.org')).toMatchObject([{ email_verified: true }]);
    const again = await post('/api/auth/resend-verification', {}, signedIn.access_token);
    expect([again.statusCode, (await readMails(tenant, 'ada@example.org')).length]).toEqual([200, 1]);
  });

  it('refuses unknown and closed organisations, and passwords that anybody guesses', async () => {
    const answers = [
      await register('b@example.org', { orgSubdomain: 'nowhere' }),
      await register('b@example.org', { orgSubdomain: 'system' }),
      await register('b@example.org', { password: 'short' }),
      await register('b@example.org', { password: 'password1234' }),
      await register('not an address'),
    ];
    expect(answers.map((answer) => [answer.statusCode, answer.json().code])).toEqual([
      [400, 'UNKNOWN_SUBDOMAIN'],
      [expect.toSatisfy((status) => status === 403 || status === 400), expect.any(String)],
      [400, 'PASSWORD_REFUSED'],
      [400, 'PASSWORD_REFUSED'],
      [400, 'INVALID_REQUEST'],
    ]);
    expect(answers[3]?.json().errors.password).toContain('breached');
    expect(await accountOf('b@example.org')).toEqual([]);
  });

  it('answers and works alike for a known address; its owner is told, and nothing is attached', async () => {
    await register('known@example.org');
    const statements = recordStatements(tenant.db.pool);
    const attempt = async (email: string) => {
      statements.take();
      const answer = await register(email, { password: 'other lantern under glass' });
      return { answer, sent: statements.take().map(({ text }) => text) };
    };
    const [known, unknown] = [await attempt('known@example.org'), await attempt('unknown@example.org')];
    expect(known.sent).toEqual(unknown.sent);
    expect([known.answer.statusCode, Object.keys(known.answer.json())]).toEqual([
      unknown.answer.statusCode,
      Object.keys(unknown.answer.json()),
    ]);
    expect(known.answer.json().message).toBe(unknown.answer.json().message);
    expect((await readMails(tenant, 'known@example.org')).map(({ subject }) => subject)).toEqual([
      'Confirm your e-mail address',
      'You already have an account',
    ]);
    expect((await login('known@example.org', 'other lantern under glass')).statusCode).toBe(401);
    expect((await readMails(tenant, 'known@example.org')).at(-1)?.text).not.toMatch(/token=/);
  });

  it('of 50 parallel registrations of one address one account comes', async () => {
    await Promise.all(Array.from({ length: 20 }, () => register('crowd@example.org')));
    expect(await accountOf('crowd@example.org')).toHaveLength(1);
  });

  it('of parallel uses of a token on two replicas one verifies', async () => {
    await register('race@example.org');
    const token = await tokenIn('race@example.org');
    const uses = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        post('/api/auth/verify-email', { token }, undefined, index % 2 === 0 ? tenant : other),
      ),
    );
    const statuses = uses.map(({ statusCode }) => statusCode);
    expect([statuses.filter((one) => one === 200).length, new Set(statuses)]).toEqual([
      1,
      new Set([200, 400]),
    ]);
  });

  it('tokens expire after a day; unknown, used and expired differ', async () => {
    await register('late@example.org');
    const token = await tokenIn('late@example.org');
    await passTime(tenant, 24 * hourMs);
    const late = await post('/api/auth/verify-email', { token });
    expect([late.statusCode, late.json().code]).toEqual([410, 'TOKEN_EXPIRED']);
    const unknown = await post('/api/auth/verify-email', { token: 'x'.repeat(43) });
    expect([unknown.statusCode, unknown.json().code]).toEqual([400, 'TOKEN_UNKNOWN']);
  });

  it('the mail is sent again three times an hour', async () => {
    await register('again@example.org');
    await passTime(tenant, 2_000);
    const { access_token } = (await login('again@example.org')).json();
    const resend = () => post('/api/auth/resend-verification', {}, access_token);
    expect([(await resend()).statusCode, (await resend()).statusCode, (await resend()).statusCode]).toEqual([
      200, 200, 200,
    ]);
    const fourth = await resend();
    expect([fourth.statusCode, Number(fourth.headers['retry-after']) > 3500]).toEqual([429, true]);
    expect(await readMails(tenant, 'again@example.org')).toHaveLength(4);
  });

  it('whoever owns the address ends an account that somebody else made with it', async () => {
    await register('victim@example.org');
    const { access_token } = (await login('victim@example.org')).json();
    const disown = await tokenIn('victim@example.org', 'disown');
    expect((await post('/api/auth/register/disown', { token: disown })).statusCode).toBe(200);
    expect((await login('victim@example.org')).statusCode).toBe(401);
    await tenant.revocations.assertFresh();
    const me = () =>
      tenant.app.inject({ method: 'GET', url: '/api/me/inbox', headers: bearer(access_token) });
    await expect.poll(async () => (await me()).statusCode).toBe(401);
    expect((await register('victim@example.org')).statusCode).toBe(201);
    expect(await accountOf('victim@example.org')).toHaveLength(1);
  });

  it('an account that was verified is not disowned', async () => {
    await register('owner@example.org');
    const disown = await tokenIn('owner@example.org', 'disown');
    await post('/api/auth/verify-email', { token: await tokenIn('owner@example.org') });
    expect((await post('/api/auth/register/disown', { token: disown })).json().code).toBe('TOKEN_UNKNOWN');
    expect((await login('owner@example.org')).statusCode).toBe(200);
  });

  it('verification joins the accounts of an address: memberships stay, foreign passwords do not', async () => {
    const squatted = await addElsewhere('joined@example.org', 'foreign password of elsewhere');
    await register('joined@example.org');
    expect((await login('joined@example.org', 'foreign password of elsewhere', squatted)).statusCode).toBe(
      200,
    );
    await post('/api/auth/verify-email', { token: await tokenIn('joined@example.org') });
    expect(await accountOf('joined@example.org')).toHaveLength(1);
    expect((await login('joined@example.org', 'foreign password of elsewhere', squatted)).statusCode).toBe(
      401,
    );
    const { access_token } = (await login('joined@example.org', password, squatted)).json();
    const mine = await tenant.app.inject({
      method: 'GET',
      url: '/api/auth/me/organizations',
      headers: bearer(access_token),
    });
    expect(
      mine
        .json()
        .items.map(({ subdomain }: { subdomain: string }) => subdomain)
        .toSorted(),
    ).toEqual([squatted, 'public'].toSorted());
  });

  it('another address holds once it is confirmed, and the old one is told', async () => {
    await register('old@example.org');
    await post('/api/auth/verify-email', { token: await tokenIn('old@example.org') });
    const { access_token } = (await login('old@example.org')).json();
    const change = (email: string) =>
      tenant.app.inject({
        method: 'PUT',
        url: '/api/me/email',
        payload: { email },
        headers: bearer(access_token),
      });
    const taken = await change('ada@example.org');
    const free = await change('new@example.org');
    expect([taken.statusCode, free.statusCode, taken.body, free.body]).toEqual([202, 202, '', '']);
    expect((await readMails(tenant, 'ada@example.org')).at(-1)?.text).not.toMatch(/token=/);
    expect((await login('new@example.org')).statusCode).toBe(401);
    expect(
      (await post('/api/auth/verify-email', { token: await tokenIn('new@example.org') })).statusCode,
    ).toBe(200);
    expect([
      (await login('new@example.org')).statusCode,
      (await login('old@example.org')).statusCode,
    ]).toEqual([200, 401]);
    expect((await readMails(tenant, 'old@example.org')).map(({ subject }) => subject)).toEqual([
      'Confirm your e-mail address',
      'The e-mail address of your account',
      'The e-mail address of your account',
      'The e-mail address of your account',
    ]);
    await passTime(tenant, 301_000);
    const stale = await change('third@example.org');
    expect([stale.statusCode, stale.json().code, stale.headers['www-authenticate']]).toEqual([
      401,
      'insufficient_user_authentication',
      'Bearer realm="platform", error="insufficient_user_authentication", max_age=300',
    ]);
  });
});
