import { generateSync } from 'otplib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { liftCap } from '#kit/rate-limit/security-cap.ts';
import { readMails, readTexts } from '../../people/messages/messages.fixture.ts';
import {
  bearer,
  formOf,
  passTime,
  startReplica,
  startTestTenant,
  type TestTenant,
} from '../../tenant.fixture.ts';
import { reportLocks } from '../lockout/report-locks.ts';

const password = 'marble orchard seldom rains';
const remoteAddress = '198.51.100.7';

describe('second factors', () => {
  let tenant: TestTenant;
  let other: TestTenant;
  let folder: string;
  let count = 0;
  let email = '';
  let token = '';

  beforeAll(async () => {
    folder = '/tmp/unused-messages';
    tenant = await startTestTenant('tenant_second_step', {
      CHANCERY_PUBLIC_ORG_ENABLED: 'true',
      CHANCERY_MESSAGES_DIR: folder,
    });
    other = await startReplica(tenant.files);
  });
  afterAll(async () => {
    await other.app.close();
    await other.db.close();
    await tenant.stop();
  });
  beforeEach(async () => {
    email = `person-${count++}@example.org`;
    const body = { orgSubdomain: 'public', email, password, displayName: 'Ada' };
    await post('/api/auth/register', body);
    const text = (await readMails(tenant, email))[0]?.text ?? '';
    await post('/api/auth/verify-email', { token: /#token=([\w-]{43})/.exec(text)?.[1] });
    token = (await login()).json().access_token;
  });

  const call = (method: 'GET' | 'DELETE', url: string, bearerToken: string) =>
    tenant.app.inject({ method, url, remoteAddress, headers: bearer(bearerToken) });
  const post = (url: string, payload: object = {}, bearerToken?: string, on = tenant) =>
    on.app.inject({
      method: 'POST',
      url,
      remoteAddress,
      payload,
      ...(bearerToken && { headers: bearer(bearerToken) }),
    });
  const login = async (secret = password) => {
    await liftCap(tenant.db, { name: 'login-email', key: email });
    return post('/api/auth/login', { email, password: secret });
  };
  const codeOf = (secret: string, afterSteps = 0) =>
    generateSync({ secret, epoch: Math.floor(tenant.clock.nowMs() / 1000) + 30 * afterSteps });
  const enrol = async () => {
    const setup = (await post('/api/totp/setup', {}, token)).json();
    const verified = await post('/api/totp/verify', { code: codeOf(setup.secret) }, token);
    expect(verified.json()).toMatchObject({ success: true });
    return setup as { secret: string; backupCodes: string[]; qrUri: string; qrCode: string[] };
  };
  const begin = async () => {
    const answer = await login();
    expect(answer.statusCode).toBe(200);
    return answer.json();
  };
  const verify = (login_token: string, code: string, extra: object = {}, on = tenant) =>
    post('/api/auth/verify-2fa', { login_token, code, ...extra }, undefined, on);
  const claimsOf = (jwt: string) => JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
  const codeIn = (text: string) => /\b(\d{6})\b/.exec(text)?.[1] ?? '';
  const wrongOf = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, '0');

  it('an authenticator app is added with its first code, and a sign-in then needs its next one', async () => {
    const setup = await enrol();
    expect(setup.qrUri).toMatch(
      /^otpauth:\/\/totp\/.+secret=[A-Z2-7]{32}.*&algorithm=SHA1&digits=6&period=30$/,
    );
    expect([setup.backupCodes.length, new Set(setup.qrCode.map((row) => row.length)).size]).toEqual([10, 1]);
    expect((await post('/api/totp/setup', {}, token)).json()).toMatchObject({ code: 'TOTP_ALREADY_ENABLED' });
    const status = await call('GET', '/api/totp/status', token);
    expect(status.json()).toMatchObject({ isEnabled: true, backupCodesRemaining: 10 });
    const begun = await begin();
    expect(begun).toMatchObject({
      requires_two_factor: true,
      availableMethods: ['totp'],
      loginToken: begun.login_token,
    });
    // The code of the set-up counts as used.
    expect((await verify(begun.login_token, codeOf(setup.secret))).statusCode).toBe(401);
    const done = await verify(begun.login_token, codeOf(setup.secret, 1));
    expect(done.statusCode).toBe(200);
    expect(claimsOf(done.json().access_token)).toMatchObject({ acr: 'strong', amr: ['pwd', 'otp', 'mfa'] });
    expect((await verify(begun.login_token, codeOf(setup.secret, 1))).json().code).toBe(
      'INVALID_LOGIN_TOKEN',
    );
    const again = await begin();
    expect((await verify(again.login_token, codeOf(setup.secret, 1))).json().code).toBe(
      'WRONG_SECOND_FACTOR',
    );
  });

  it('the password grant continues at the second factor', async () => {
    const setup = await enrol();
    const form = formOf({ grant_type: 'password', username: email, password });
    const granted = await tenant.app.inject({ ...form, url: '/api/service-auth/token' });
    expect([granted.statusCode, granted.json()]).toMatchObject([
      403,
      { error: 'mfa_required', available_methods: ['totp'] },
    ]);
    await passTime(tenant, 30_000);
    const body = { loginToken: granted.json().login_token, code: codeOf(setup.secret) };
    expect((await post('/api/totp/validate', body)).json()).toMatchObject({ success: true, expiresIn: 3600 });
  });

  it('five wrong codes end the login token, and the sixth says so', async () => {
    const setup = await enrol();
    await passTime(tenant, 60_000);
    const { login_token } = await begin();
    const right = codeOf(setup.secret);
    const statuses = [];
    for (let n = 0; n < 4; n++) statuses.push((await verify(login_token, wrongOf(right))).statusCode);
    expect(statuses).toEqual([401, 401, 401, 401]);
    expect((await verify(login_token, wrongOf(right))).statusCode).toBe(401);
    const sixth = await verify(login_token, right);
    expect([401, 429]).toContain(sixth.statusCode);
  });

  it('a lock ends the sign-ins that wait for their second factor', async () => {
    const setup = await enrol();
    await passTime(tenant, 60_000);
    const waiting = await begin();
    const guessed = await begin();
    const from = (address: string, login_token: string, code: string) =>
      tenant.app.inject({
        method: 'POST',
        url: '/api/auth/verify-2fa',
        payload: { login_token, code },
        remoteAddress: address,
      });
    // Networks of right sign-ins are slowed; others are locked.
    for (let n = 0; n < 5; n++) {
      await from('203.0.113.9', guessed.login_token, wrongOf(codeOf(setup.secret)));
    }
    await reportLocks({ db: tenant.db, clock: tenant.clock, notifyInboxes: () => undefined });
    const elsewhere = await from('203.0.113.50', waiting.login_token, codeOf(setup.secret));
    expect(elsewhere.json().code).toBe('INVALID_LOGIN_TOKEN');
  });

  it('of 50 parallel uses of one code on two replicas one signs in', async () => {
    const setup = await enrol();
    await passTime(tenant, 60_000);
    const tokens: string[] = [];
    for (let n = 0; n < 5; n++) tokens.push((await begin()).login_token);
    const code = codeOf(setup.secret);
    const uses = await Promise.all(
      Array.from({ length: 25 }, (_, index) =>
        verify(tokens[index % 5] ?? '', code, {}, index % 2 === 0 ? tenant : other),
      ),
    );
    expect(uses.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
  });

  it('a backup code works once, whatever its case, and is told', async () => {
    const setup = await enrol();
    const [code = '', next = ''] = setup.backupCodes;
    const first = await begin();
    const body = { loginToken: first.login_token, backupCode: code.toLowerCase().replace('-', ' ') };
    const used = await post('/api/totp/backup-validate', body);
    expect(used.json()).toMatchObject({ success: true, remainingCodes: 9 });
    const second = await begin();
    expect((await verify(second.login_token, code, { is_backup_code: true })).statusCode).toBe(401);
    const uses = await Promise.all(
      [1, 2, 3, 4].map(() => verify(second.login_token, next, { method: 'backup' })),
    );
    expect(uses.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
    expect((await readMails(tenant, email)).map(({ subject }) => subject)).toContain(
      'A backup code was used',
    );
  });

  it('is removed with a strong proof of the last 300 seconds', async () => {
    const { secret } = await enrol();
    await passTime(tenant, 301_000);
    const late = await call('DELETE', '/api/totp', token);
    expect([late.statusCode, late.json().code]).toEqual([401, 'insufficient_user_authentication']);
    // A new sign-in with the app's code is one.
    const { login_token } = await begin();
    const { access_token } = (await verify(login_token, codeOf(secret))).json();
    const removed = await call('DELETE', '/api/totp', access_token);
    expect([removed.statusCode, removed.json().isEnabled]).toEqual([200, false]);
    expect((await login()).json()).toHaveProperty('access_token');
    expect(await tenant.db.read.selectFrom('backup_codes').selectAll().execute()).not.toContainEqual(
      expect.objectContaining({ is_pending: true }),
    );
  });

  it('a set-up holds for 15 minutes, and a wrong code does not end it', async () => {
    const setup = (await post('/api/totp/setup', {}, token)).json();
    const wrong = await post('/api/totp/verify', { code: wrongOf(codeOf(setup.secret)) }, token);
    expect([wrong.statusCode, wrong.json().code]).toEqual([400, 'WRONG_CODE']);
    await passTime(tenant, 15 * 60_000 + 1);
    const late = await post('/api/totp/verify', { code: codeOf(setup.secret) }, token);
    expect(late.json().code).toBe('TOTP_NOT_SET_UP');
    expect((await login()).json()).toHaveProperty('access_token');
  });

  it('codes by e-mail: enabled by a code, and used for a sign-in, which stays basic', async () => {
    expect((await post('/api/me/2fa/email/enable', {}, token)).statusCode).toBe(202);
    const again = await post('/api/me/2fa/email/enable', {}, token);
    expect([again.statusCode, again.headers['retry-after']]).toEqual([429, '30']);
    const code = codeIn((await readMails(tenant, email)).at(-1)?.text ?? '');
    expect((await post('/api/me/2fa/email/verify', { code: wrongOf(code) }, token)).statusCode).toBe(400);
    expect((await post('/api/me/2fa/email/verify', { code }, token)).statusCode).toBe(204);
    expect((await post('/api/me/2fa/email/verify', { code }, token)).statusCode).toBe(410);
    const begun = await begin();
    expect(begun.available_methods).toEqual(['email']);
    expect((await post('/api/auth/login/2fa/send-sms', { login_token: begun.login_token })).statusCode).toBe(
      400,
    );
    expect((await post('/api/auth/login/2fa/send-email', { login_token: 'x' })).statusCode).toBe(401);
    expect(
      (await post('/api/auth/login/2fa/send-email', { login_token: begun.login_token })).statusCode,
    ).toBe(202);
    const sent = codeIn(
      (await readMails(tenant, email)).findLast(({ subject }) => subject === 'Your code')?.text ?? '',
    );
    const done = await verify(begun.login_token, sent, { method: 'EMAIL' });
    expect(claimsOf(done.json().access_token)).toMatchObject({ acr: 'basic', amr: ['pwd', 'otp'] });
    const off = await call('DELETE', '/api/me/2fa/email', done.json().access_token);
    expect(off.statusCode).toBe(204);
    expect((await login()).json()).toHaveProperty('access_token');
  });

  it('codes by text message: a number is verified before it counts, and a new one does not remove the old', async () => {
    expect((await post('/api/me/2fa/sms/enable', {}, token)).json().code).toBe('PHONE_NOT_VERIFIED');
    expect((await post('/api/me/2fa/sms/phone', { phone: '0170 1234' }, token)).statusCode).toBe(400);
    const phone = `+49170${String(10_000_000 + count)}`;
    expect((await post('/api/me/2fa/sms/phone', { phone }, token)).statusCode).toBe(202);
    const code = codeIn((await readTexts(tenant, phone)).at(-1)?.text ?? '');
    expect((await post('/api/me/2fa/sms/phone/verify', { code }, token)).statusCode).toBe(204);
    expect((await post('/api/me/2fa/sms/enable', {}, token)).statusCode).toBe(204);
    await passTime(tenant, 30_000);
    expect((await post('/api/me/2fa/sms/phone', { phone: '+4917099999999' }, token)).statusCode).toBe(202);
    const begun = await begin();
    expect(begun.available_methods).toEqual(['sms']);
    await post('/api/auth/login/2fa/send-sms', { login_token: begun.login_token });
    const sent = codeIn((await readTexts(tenant, phone)).at(-1)?.text ?? '');
    const done = await verify(begun.login_token, sent, { method: 'sms' });
    expect(claimsOf(done.json().access_token)).toMatchObject({ amr: ['pwd', 'sms'] });
    const rows = await tenant.db.read.selectFrom('second_factors').select('phone').execute();
    expect(rows.some((row) => row.phone?.includes(phone))).toBe(false);
  });

  it('a passkey has routes of its own, and an unknown method is refused', async () => {
    expect((await verify('x', '123456', { method: 'passkey' })).json().code).toBe('PASSKEY_ROUTE');
    expect((await verify('x', '123456', { method: 'pigeon' })).statusCode).toBe(400);
    expect((await verify('x', '123456')).json().code).toBe('INVALID_LOGIN_TOKEN');
  });

  it('a reset ends the sign-ins that wait', async () => {
    const setup = await enrol();
    await passTime(tenant, 60_000);
    const { login_token } = await begin();
    await post('/api/auth/password/forgot', { email });
    const mail =
      (await readMails(tenant, email)).findLast(({ subject }) => subject === 'A new password')?.text ?? '';
    const reset = { token: /#token=([\w-]{43})/.exec(mail)?.[1], newPassword: 'seven quiet lanterns drift' };
    expect((await post('/api/auth/password/reset', reset)).statusCode).toBe(204);
    expect((await verify(login_token, codeOf(setup.secret))).json().code).toBe('INVALID_LOGIN_TOKEN');
    expect((await login('seven quiet lanterns drift')).json()).toMatchObject({ requires_two_factor: true });
  });
});
