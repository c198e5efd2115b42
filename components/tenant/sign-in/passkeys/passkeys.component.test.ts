import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readMails } from '../../people/messages/messages.fixture.ts';
import { passTime, startReplica, startTestTenant, type TestTenant } from '../../tenant.fixture.ts';
import { origin, SoftAuthenticator } from './authenticator.fixture.ts';
import { assertion, claimsOf, passkeyClient, register } from './passkeys.fixture.ts';

describe('passkeys', () => {
  let tenant: TestTenant;
  let other: TestTenant;

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_passkeys', {
      CHANCERY_PUBLIC_ORG_ENABLED: 'true',
      CHANCERY_BASE_URL: origin,
    });
    other = await startReplica(tenant.files);
  });
  afterAll(async () => {
    await other.app.close();
    await other.db.close();
    await tenant.stop();
  });

  const { post, call, login, signUp, signIn, add, person } = passkeyClient(() => tenant);

  it('a person signs up with a passkey alone, without an address, and signs in with it', async () => {
    const key = new SoftAuthenticator();
    const signedUp = await signUp(key);
    expect([signedUp.statusCode, signedUp.json().is_new_user]).toEqual([200, true]);
    const claims = claimsOf(signedUp.json().access_token);
    expect(claims).toMatchObject({
      acr: 'strong',
      amr: ['hwk', 'user', 'mfa'],
      tier: 'consumer',
      name: 'Ada',
    });
    expect(claims.aud).toContain('platform:citizen-wallet');
    expect(claims).not.toHaveProperty('email');
    const signedIn = await signIn(key, {}, { tier: 'consumer' });
    expect(claimsOf(signedIn.json().access_token).platform_user_id).toBe(claims.platform_user_id);
    expect(Buffer.from(key.userHandle, 'base64url').toString('hex')).toBe(
      claims.platform_user_id.replaceAll('-', ''),
    );
    const refreshed = await post('/api/auth/token/refresh', { refreshToken: signedIn.json().refresh_token });
    expect(claimsOf(refreshed.json().access_token)).toMatchObject({ acr: 'strong' });
  });

  it.each([
    ['of another origin', { origin: 'https://evil.example' }],
    ['of another domain', { rpId: 'evil.example' }],
    ['without verification of the person', { withoutVerification: true }],
    ['of another challenge', { challenge: 'AAAA' }],
  ])('an answer %s is refused: 400 when it is made, 401 when it is used', async (_name, change) => {
    expect((await signUp(new SoftAuthenticator(), undefined, change)).json()).toMatchObject({
      status: 400,
      code: 'INVALID_ATTESTATION',
    });
    const key = new SoftAuthenticator();
    await signUp(key);
    expect((await signIn(key, change)).json()).toMatchObject({ status: 401, code: 'INVALID_ASSERTION' });
    expect((await signIn(key)).statusCode).toBe(200);
  });

  it('a wrong signature, a foreign handle and an unknown passkey are refused', async () => {
    const key = new SoftAuthenticator();
    await signUp(key);
    expect((await signIn(key, { spoilsSignature: true })).json().code).toBe('INVALID_ASSERTION');
    expect((await signIn(key, { userHandle: Buffer.alloc(16).toString('base64url') })).json().code).toBe(
      'INVALID_ASSERTION',
    );
    expect((await signIn(key, { userHandle: '' })).json().code).toBe('INVALID_ASSERTION');
    expect((await signIn(new SoftAuthenticator())).json().code).toBe('UNKNOWN_CREDENTIAL');
  });

  it('of 50 parallel uses of one answer on two replicas one signs in', async () => {
    const key = new SoftAuthenticator();
    await signUp(key);
    const { transaction_id, options } = (await post(`${assertion}/options`)).json();
    const body = { transaction_id, assertion_response: key.get(options) };
    const uses = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        post(`${assertion}/verify`, body, undefined, index % 2 === 0 ? tenant : other),
      ),
    );
    expect(uses.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
    expect(new Set(uses.map(({ statusCode }) => statusCode))).toEqual(new Set([200, 401]));
  });

  it('a challenge holds for 300 seconds and for its purpose', async () => {
    const key = new SoftAuthenticator();
    await signUp(key);
    const { transaction_id, options } = (await post(`${assertion}/options`)).json();
    const early = { transaction_id, assertion_response: key.get(options) };
    await passTime(tenant, 300_001);
    expect((await post(`${assertion}/verify`, early)).statusCode).toBe(401);
    const creation = (await post(`${register}/options`, { display_name: 'Ben' })).json();
    const crossed = {
      transaction_id: creation.transaction_id,
      assertion_response: key.get(creation.options),
    };
    expect((await post(`${assertion}/verify`, crossed)).statusCode).toBe(401);
  });

  it('a counter that goes back disables the passkey, and the person is told', async () => {
    const key = new SoftAuthenticator(5);
    const { access_token } = (await signUp(key)).json();
    key.counter = 9;
    expect((await signIn(key)).statusCode).toBe(200);
    key.counter = 7;
    expect((await signIn(key)).statusCode).toBe(401);
    key.counter = 20;
    expect((await signIn(key)).statusCode).toBe(401);
    const list = (await call('GET', '/api/passkey/credentials', access_token)).json();
    expect(list.credentials).toMatchObject([{ status: 'Disabled', disabled_reason: 'counter-regression' }]);
    expect(list.all_accepted_credential_ids).toEqual([]);
    const inbox = (await call('GET', '/api/me/inbox', access_token)).json();
    expect(inbox.entries.map(({ title }: { title: string }) => title)).toContain('A passkey was disabled');
  });

  it('options tell nothing about an address, and a taken one is refused behind a valid answer', async () => {
    const { email } = await person();
    const ask = async (address: string) =>
      (await post(`${register}/options`, { display_name: 'Eve', email: address })).json();
    const [known, unknown] = [await ask(email), await ask('fresh@example.org')];
    expect(Object.keys(known.options)).toEqual(Object.keys(unknown.options));
    expect(known.options.excludeCredentials).toEqual([]);
    const taken = await signUp(new SoftAuthenticator(), { display_name: 'Eve', email });
    expect([taken.statusCode, taken.json().code]).toEqual([409, 'ADDRESS_TAKEN']);
    const signedIn = (await post(`${assertion}/options`, { email })).json();
    expect(signedIn.options.allowCredentials ?? []).toEqual([]);
    const fresh = await signUp(new SoftAuthenticator(), { display_name: 'Eve', email: 'fresh@example.org' });
    expect(claimsOf(fresh.json().access_token)).toMatchObject({
      email: 'fresh@example.org',
      email_verified: false,
    });
    expect((await readMails(tenant, 'fresh@example.org')).map(({ subject }) => subject)).toEqual([
      'Confirm your e-mail address',
    ]);
  });

  it('is added to an account, is its second factor, and is removed but for the last way in', async () => {
    const { email, token } = await person();
    const [first, second] = [new SoftAuthenticator(), new SoftAuthenticator()];
    expect((await add(first, token)).json()).toMatchObject({ display_name: 'Laptop', status: 'Active' });
    expect((await add(first, token)).json().code).toBe('KNOWN_CREDENTIAL');
    expect((await add(second, token, '/api/passkey/register')).statusCode).toBe(201);
    const begun = (await login(email)).json();
    expect(begun).toMatchObject({ requires_two_factor: true, available_methods: ['passkey'] });
    const options = (
      await post('/api/auth/verify-passkey/options', { login_token: begun.login_token })
    ).json();
    expect(options.options.allowCredentials.map(({ id }: { id: string }) => id).toSorted()).toEqual(
      [first.id, second.id].toSorted(),
    );
    const answer = { transaction_id: options.transaction_id, assertion_response: first.get(options.options) };
    const foreign = new SoftAuthenticator();
    await signUp(foreign);
    const theft = { ...answer, assertion_response: foreign.get(options.options) };
    expect(
      (await post('/api/auth/verify-passkey', { login_token: begun.login_token, ...theft })).statusCode,
    ).toBe(401);
    const done = await post('/api/auth/verify-passkey', { login_token: begun.login_token, ...answer });
    expect(claimsOf(done.json().access_token)).toMatchObject({ acr: 'strong' });
    const own = done.json().access_token;
    const list = (await call('GET', '/api/passkey/credentials', own)).json();
    expect([list.credentials.length, list.max_credentials, list.rp_id]).toEqual([
      2,
      10,
      'ledger.example.org',
    ]);
    const remove = (id: string) => call('DELETE', `/api/passkey/credentials/${id}`, own);
    expect((await remove(list.credentials[0].id)).statusCode).toBe(204);
    expect((await remove(list.credentials[0].id)).statusCode).toBe(404);
    expect((await post('/api/auth/password/remove', {}, own)).statusCode).toBe(204);
    expect((await remove(list.credentials[1].id)).json()).toMatchObject({
      status: 409,
      code: 'LAST_AUTH_METHOD',
    });
    await passTime(tenant, 301_000);
    expect((await remove(list.credentials[1].id)).json().code).toBe('insufficient_user_authentication');
  });

  it('ten are the most, also of parallel additions', async () => {
    const { token } = await person();
    const added = await Promise.all(Array.from({ length: 12 }, () => add(new SoftAuthenticator(), token)));
    expect(added.filter(({ statusCode }) => statusCode === 201)).toHaveLength(10);
    expect((await post('/api/passkey/register/options', { display_name: 'More' }, token)).json().code).toBe(
      'TOO_MANY_PASSKEYS',
    );
  });

  it('a closed Public organisation takes no sign-ups, and an IP address has no passkeys', async () => {
    const closed = await startTestTenant('tenant_passkeys_closed');
    const answer = await post(`${register}/options`, { display_name: 'Ada' }, undefined, closed);
    expect([answer.statusCode, answer.json().code]).toEqual([403, 'PUBLIC_ORG_DISABLED']);
    expect((await post(`${assertion}/options`, {}, undefined, closed)).json().code).toBe(
      'PASSKEYS_UNAVAILABLE',
    );
    await closed.stop();
  });
});
