import { generateSync } from 'otplib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { liftCap } from '#kit/rate-limit/security-cap.ts';
import { origin, SoftAuthenticator } from '../../sign-in/passkeys/authenticator.fixture.ts';
import { bearer, passTime, startTestTenant, type TestTenant } from '../../tenant.fixture.ts';
import { readMails } from '../messages/messages.fixture.ts';

const password = 'marble orchard seldom rains';
const next = 'seven quiet lanterns drift';
const admin = { email: 'admin@example.org', password: 'blue kettle winter parade' };

describe('security of the own account', () => {
  let tenant: TestTenant;
  let count = 0;

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_account', {
      CHANCERY_PUBLIC_ORG_ENABLED: 'true',
      CHANCERY_BASE_URL: origin,
    });
  });
  afterAll(() => tenant.stop());

  const post = (url: string, payload: object = {}, token?: string, headers: object = {}) =>
    tenant.app.inject({ method: 'POST', url, payload, headers: { ...(token && bearer(token)), ...headers } });
  const call = (method: 'GET' | 'DELETE', url: string, token: string, headers: object = {}) =>
    tenant.app.inject({ method, url, headers: { ...bearer(token), ...headers } });
  const login = async (email: string, secret = password) => {
    await liftCap(tenant.db, { name: 'login-email', key: email });
    return post('/api/auth/login', { email, password: secret });
  };
  const person = async () => {
    const email = `person-${count++}@example.org`;
    await post('/api/auth/register', { orgSubdomain: 'public', email, password, displayName: 'Ada' });
    const mail = (await readMails(tenant, email))[0]?.text ?? '';
    await post('/api/auth/verify-email', { token: /#token=([\w-]{43})/.exec(mail)?.[1] });
    return { email, token: (await login(email)).json().access_token as string };
  };
  const codeOf = (secret: string) => generateSync({ secret, epoch: Math.floor(tenant.clock.nowMs() / 1000) });
  const addTotp = async (token: string): Promise<string> => {
    const { secret } = (await post('/api/totp/setup', {}, token)).json();
    await post('/api/totp/verify', { code: codeOf(secret) }, token);
    return secret;
  };
  const addPasskey = async (token: string): Promise<SoftAuthenticator> => {
    const key = new SoftAuthenticator();
    const path = '/api/auth/public/passkey/add';
    const { transaction_id, options } = (
      await post(`${path}/options`, { display_name: 'Key' }, token)
    ).json();
    await post(`${path}/verify`, { transaction_id, attestation_response: key.create(options) }, token);
    return key;
  };
  const initiate = (token: string, scopedOperation: string, more: object = {}) =>
    post('/api/auth/challenge/initiate', { scopedOperation, ...more }, token);
  const verify = (token: string, body: object) => post('/api/auth/challenge/verify', body, token);
  const change = (token: string, challenge?: string) =>
    post(
      '/api/auth/password/change',
      { password: next },
      token,
      challenge ? { 'x-auth-challenge': challenge } : {},
    );

  it('a password proves a basic operation, once, and is refused for a strong one without being evaluated', async () => {
    const { token } = await person();
    await passTime(tenant, 301_000);
    expect((await change(token)).statusCode).toBe(401);
    expect((await initiate(token, 'ChangePassword')).json()).toEqual({ method: 'Password', payload: null });
    const asked = { scopedOperation: 'changepassword', method: 'password' };
    expect((await verify(token, { ...asked, proof: { password: 'wrong' } })).json().code).toBe('WRONG_PROOF');
    const strong = { scopedOperation: 'Disable2Fa', method: 'Password', proof: { password } };
    expect((await verify(token, strong)).json()).toMatchObject({
      status: 403,
      code: 'proof_tier_insufficient',
    });
    expect((await initiate(token, 'Disable2Fa')).json()).toMatchObject({
      status: 400,
      code: 'NoMethodAvailable',
    });
    const proved = (await verify(token, { ...asked, proof: { password } })).json();
    expect(proved).toMatchObject({
      token: expect.stringMatching(/^ch_/),
      expiresIn: 300,
      expiresInSeconds: 300,
    });
    await passTime(tenant, 299_000);
    expect((await change(token, proved.token)).statusCode).toBe(204);
    await passTime(tenant, 2_000);
    expect((await change(token, proved.token)).json().code).toBe('insufficient_user_authentication');
  });

  it('a token is for its operation and its person', async () => {
    const [one, two] = [await person(), await person()];
    await passTime(tenant, 301_000);
    const asked = { scopedOperation: 'ChangeEmail', method: 'Password', proof: { password } };
    const { token: forEmail } = (await verify(one.token, asked)).json();
    await passTime(tenant, 299_900);
    expect((await change(two.token, forEmail)).statusCode).toBe(401);
    const again = (await verify(one.token, asked)).json().token;
    expect((await change(two.token, again)).statusCode).toBe(401);
  });

  it('strong methods come first; an app code and a passkey each prove, once', async () => {
    const { token } = await person();
    const secret = await addTotp(token);
    const key = await addPasskey(token);
    await passTime(tenant, 301_000);
    expect((await initiate(token, 'Disable2Fa')).json()).toEqual({ method: 'Totp', payload: null });
    const code = codeOf(secret);
    const byCode = { scopedOperation: 'Disable2Fa', method: 'Totp', proof: { code } };
    const proofs = await Promise.all([1, 2, 3].map(() => verify(token, byCode)));
    expect(proofs.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
    const begun = (
      await initiate(token, 'RemoveAuthMethod', { preferredMethod: 'passkey', targetMethodKind: 'Passkey' })
    ).json();
    expect(begun.method).toBe('Passkey');
    const { transactionId, assertionOptions } = begun.payload;
    const proof = { transactionId, assertionResponse: key.get(assertionOptions) };
    const byKey = {
      scopedOperation: 'RemoveAuthMethod',
      targetMethodKind: 'Passkey',
      method: 'Passkey',
      proof,
    };
    expect((await verify(token, byKey)).statusCode).toBe(200);
    expect((await verify(token, byKey)).statusCode).toBe(401);
    const signIn = { transaction_id: transactionId, assertion_response: key.get(assertionOptions) };
    expect((await post('/api/auth/passkey/assertion/verify', signIn)).statusCode).toBe(401);
    // The proof is one of the session too.
    expect((await call('DELETE', '/api/totp', token)).statusCode).toBe(200);
  });

  it('wrong proofs count toward the lock of the account', async () => {
    const { email, token } = await person();
    const asked = { scopedOperation: 'ChangePassword', method: 'Password', proof: { password: 'wrong' } };
    for (let n = 0; n < 20; n++) await verify(token, asked);
    const blocked = await verify(token, { ...asked, proof: { password } });
    expect([401, 429]).toContain(blocked.statusCode);
    const [row] = await tenant.db.read
      .selectFrom('account_guesses as g')
      .innerJoin('platform_users as p', 'p.id', 'g.subject')
      .select('g.failures')
      .where('p.email', '=', email)
      .execute();
    expect(row?.failures).toBeGreaterThanOrEqual(5);
  });

  it('shows every method with what removing it takes, and the sessions', async () => {
    const { email, token } = await person();
    const before = (await call('GET', '/api/me/auth-methods', token)).json();
    expect(before).toMatchObject({
      email,
      emailVerified: true,
      password: { isSet: true, canRemove: false, assuranceTier: 'Basic', requiredProofTier: 'Basic' },
      passkeys: [],
      totp: { isEnabled: false },
      smsAvailable: false,
    });
    await addPasskey(token);
    const after = (await call('GET', '/api/me/auth-methods', token)).json();
    expect(after.password).toMatchObject({ canRemove: true, requiredProofTier: 'Strong' });
    expect(after.passkeys).toMatchObject([{ status: 'Active', assuranceTier: 'Strong', canRemove: true }]);
    const stranger = await person();
    const { sessions } = (await call('GET', '/api/me/sessions', token)).json();
    expect(sessions).toMatchObject([{ isCurrent: true, methods: ['pwd'] }]);
    expect((await call('DELETE', `/api/me/sessions/${sessions[0].id}`, stranger.token)).statusCode).toBe(404);
    expect((await call('DELETE', `/api/me/sessions/${sessions[0].id}`, token)).statusCode).toBe(204);
    await expect.poll(async () => (await call('GET', '/api/me/sessions', token)).statusCode).toBe(401);
  });

  it('a system administrator with a strong proof resets the factors of a person who has lost them', async () => {
    const lost = await person();
    await addTotp(lost.token);
    const [account] = await tenant.db.read
      .selectFrom('platform_users')
      .select('id')
      .where('email', '=', lost.email)
      .execute();
    const path = `/api/platform/users/${account?.id}/reset-factors`;
    const basic = (await login(admin.email, admin.password)).json().access_token;
    expect((await post(path, {}, basic)).json().code).toBe('insufficient_user_authentication');
    expect((await post(path, {}, lost.token)).statusCode).toBe(403);
    await addTotp(basic);
    expect((await post(path, {}, basic)).statusCode).toBe(204);
    await expect.poll(async () => (await call('GET', '/api/me/sessions', lost.token)).statusCode).toBe(401);
    expect((await login(lost.email)).json()).toHaveProperty('access_token');
    expect((await readMails(tenant, lost.email)).map(({ subject }) => subject)).toContain(
      'Your second factors were reset by an administrator',
    );
  });
});
