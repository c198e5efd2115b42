import { decodeJwt } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { bearer, grant, passTime } from '../../../tenant.fixture.ts';
import { addTotp, Browser, codeOf, register, startWorld, type World } from '../people.fixture.ts';
import { clientId, clientSecret, type Person } from '../stand-in.fixture.ts';

let count = 0;

describe('sign-in by the identity provider of an organisation', () => {
  let world: World;
  let root = '';

  beforeAll(async () => {
    world = await startWorld('tenant_org_sign_in');
    root = (await grant(world.tenant)).access_token;
  });
  afterAll(() => world.close());
  afterEach(async () => {
    world.standIn.faults = {};
    root = (await grant(world.tenant)).access_token;
  });

  const colleague = (more: object = {}): Person => {
    const sub = `colleague-${count++}`;
    return { sub, email: `${sub}@corp.example`, email_verified: true, name: 'Grace Hopper', ...more };
  };

  const settings = (more: object = {}) => ({
    providerPreset: 'GenericOidc',
    issuerUrl: world.standIn.origin,
    clientId,
    clientSecret,
    ...more,
  });

  /** An organisation whose provider is the stand-in, switched on. */
  const organization = async () => {
    const subdomain = `corp-${count++}`;
    const { tenant } = world;
    const owner = await register(tenant);
    const browser = new Browser(tenant);
    const made = await browser.post('/api/organizations', { name: `Corp ${count}`, subdomain }, root);
    if (made.statusCode !== 201) throw new Error(made.body);
    const { id } = made.json();
    const idp = `/api/organizations/${id}/idp`;
    const put = await browser.send('PUT', idp, { payload: settings(), token: root });
    if (put.statusCode !== 200) throw new Error(put.body);
    await browser.post(`${idp}/toggle`, { enabled: true }, root);
    return { id, subdomain, idp, owner };
  };

  const begin = async (browser: Browser, orgSubdomain: string, person: Person, redirectUrl?: string) => {
    const begun = await browser.post('/api/auth/oidc/initiate', { orgSubdomain, redirectUrl });
    if (begun.statusCode !== 200) throw new Error(begun.body);
    return world.standIn.agree(begun.json().authorizationUrl, person);
  };
  const finish = (
    browser: Browser,
    subdomain: string,
    sent: { readonly code: string; readonly state: string },
    headers: object = {},
  ) => browser.send('GET', `/api/auth/callback/${subdomain}?${new URLSearchParams(sent)}`, { headers });
  const enter = async (subdomain: string, person: Person, browser = new Browser(world.tenant)) =>
    finish(browser, subdomain, await begin(browser, subdomain, person));

  it('a colleague gets an account once, known by issuer and subject alone', async () => {
    const { subdomain, id, idp } = await organization();
    const person = colleague();
    const first = await enter(subdomain, person);
    expect(first.json()).toMatchObject({
      success: true,
      outcome: 'Authenticated',
      isFirstLogin: true,
      requiresProfileCompletion: false,
      requires2FA: false,
    });
    const claims = decodeJwt(first.json().accessToken);
    expect(claims).toMatchObject({ org_id: id, email: person['email'], email_verified: false, amr: ['fed'] });
    const renamed = { ...person, email: 'another@corp.example', name: 'Another Name' };
    const second = await enter(subdomain, renamed);
    expect(second.json()).toMatchObject({ isFirstLogin: false, userId: first.json().userId });
    const shown = await new Browser(world.tenant).send('GET', idp, { token: root });
    expect(shown.json()).toMatchObject({ isEnabled: true, hasClientSecret: true });
    expect(shown.body).not.toContain(clientSecret);
  });

  it('an address makes no colleague of one organisation a person of another one', async () => {
    const { tenant } = world;
    const [a, b] = [await organization(), await organization()];
    // the provider of A asserts the address of a verified person, of an administrator and of a colleague of B
    const known = await register(tenant);
    for (const email of [known.email, 'admin@example.org']) {
      const answer = (await enter(a.subdomain, colleague({ email }))).json();
      expect(answer).toMatchObject({ outcome: 'LinkRequired', linkPendingToken: expect.any(String) });
      expect(answer.accessToken).toBeUndefined();
    }
    const colleagueOfB = colleague();
    const ofB = decodeJwt((await enter(b.subdomain, colleagueOfB)).json().accessToken);
    const ofA = decodeJwt((await enter(a.subdomain, { ...colleagueOfB })).json().accessToken);
    expect(ofA['platform_user_id']).not.toBe(ofB['platform_user_id']);
    expect(ofA['org_id']).toBe(a.id);
    // an address that the provider has not verified is no reason to ask for a link
    const unverified = (
      await enter(a.subdomain, colleague({ email: known.email, email_verified: false }))
    ).json();
    expect(unverified.outcome).toBe('Authenticated');
    const claims = decodeJwt(unverified.accessToken);
    expect(claims).toMatchObject({ email_verified: false, org_id: a.id });
    expect(claims['platform_user_id']).not.toBe(decodeJwt(known.token)['platform_user_id']);
    // the account opens this organisation alone
    const browser = new Browser(tenant);
    const list = await browser.send('GET', '/api/auth/me/organizations', { token: unverified.accessToken });
    expect(JSON.stringify(list.json())).not.toContain('public');
  });

  it('the owner of the address connects it by a strong proof', async () => {
    const { tenant } = world;
    const { subdomain, id } = await organization();
    const known = await register(tenant);
    const secret = await addTotp(tenant, known.token);
    await passTime(tenant, 31_000);
    const person = colleague({ email: known.email });
    const { linkPendingToken } = (await enter(subdomain, person)).json();
    const browser = new Browser(tenant);
    const verify = { linkPendingToken, method: 'Totp', proof: { code: codeOf(tenant, secret) } };
    const { token } = (await browser.post('/api/auth/social/link/challenge/verify', verify)).json();
    const headers = { 'x-auth-challenge': token };
    const confirmed = await browser.post(
      '/api/auth/social/link/confirm',
      { linkPendingToken },
      undefined,
      headers,
    );
    const claims = decodeJwt(confirmed.json().accessToken);
    expect(claims).toMatchObject({ org_id: id, acr: 'strong' });
    expect(claims['platform_user_id']).toBe(decodeJwt(known.token)['platform_user_id']);
    // from now on the provider signs the account in, behind its second factor
    const again = (await enter(subdomain, person)).json();
    expect(again).toMatchObject({
      outcome: 'SecondFactorRequired',
      requires2FA: true,
      availableMethods: ['totp'],
    });
    await passTime(tenant, 31_000);
    const step = { login_token: again.partialToken, method: 'totp', code: codeOf(tenant, secret) };
    const done = await browser.post('/api/auth/verify-2fa', step);
    expect(decodeJwt(done.json().access_token)).toMatchObject({ org_id: id });
  });

  it('an account of the organisation that waits for its verification is not joined', async () => {
    const { id, subdomain } = await organization();
    const email = `waiting-${count++}@corp.example`;
    const user = { email, displayName: 'Ada', password: 'marble orchard seldom rains', roles: ['User'] };
    const made = await new Browser(world.tenant).post(`/api/organizations/${id}/users`, user, root);
    expect(made.statusCode, made.body).toBe(201);
    const refused = await enter(subdomain, colleague({ email }));
    expect(refused.json()).toMatchObject({ status: 400, code: 'ExistingUnverified' });
  });

  it('a state is of one organisation and one browser, and acts once', async () => {
    const { tenant } = world;
    const [a, b] = [await organization(), await organization()];
    const browser = new Browser(tenant);
    const sent = await begin(browser, a.subdomain, colleague());
    const code = async (act: Promise<{ json(): { code: string } }>) => (await act).json().code;
    expect(await code(finish(browser, b.subdomain, sent))).toBe('INVALID_STATE');
    expect(await code(finish(new Browser(tenant), a.subdomain, sent))).toBe('INVALID_STATE');
    const social = `/auth/social/callback?${new URLSearchParams(sent)}`;
    expect(await code(browser.send('GET', social))).toBe('INVALID_STATE');
    expect(
      await code(browser.post('/api/auth/public/social/callback', { provider: 'google', ...sent })),
    ).toBe('INVALID_STATE');
    expect((await finish(browser, a.subdomain, sent)).statusCode).toBe(200);
    expect(await code(finish(browser, a.subdomain, sent))).toBe('INVALID_STATE');
    const head = await tenant.app.inject({
      method: 'HEAD',
      url: `/api/auth/callback/${a.subdomain}?state=x`,
    });
    expect(head.statusCode).toBe(405);
  });

  it('the browser is sent to an allowed destination, or gets JSON when it asks for it', async () => {
    const { subdomain } = await organization();
    const browser = new Browser(world.tenant);
    const person = colleague();
    const sent = await begin(browser, subdomain, person, '/app/x');
    const answer = await finish(browser, subdomain, sent);
    expect([answer.statusCode, answer.headers.location]).toEqual([
      302,
      expect.stringMatching(/^\/app\/x#token=.+&refresh=rt_.+&expires_in=\d+$/),
    ]);
    expect(answer.headers).toMatchObject({ 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' });
    const again = await begin(browser, subdomain, person, '/app/x');
    expect((await finish(browser, subdomain, again, { accept: 'application/json' })).statusCode).toBe(200);
    const evil = { orgSubdomain: subdomain, redirectUrl: '//evil.example' };
    expect((await browser.post('/api/auth/oidc/initiate', evil)).json().code).toBe('RETURN_ADDRESS_REFUSED');
  });

  it('unknown organisations, and those without a provider in use, are not told apart', async () => {
    const { subdomain, idp } = await organization();
    const browser = new Browser(world.tenant);
    const code = async (orgSubdomain: string) =>
      (await browser.post('/api/auth/oidc/initiate', { orgSubdomain })).json().code;
    expect([await code('unknown'), await code('public')]).toEqual(
      Array(2).fill('ORGANIZATION_SIGN_IN_UNAVAILABLE'),
    );
    const sent = await begin(browser, subdomain, colleague());
    await browser.post(`${idp}/toggle`, { enabled: false }, root);
    expect(await code(subdomain)).toBe('ORGANIZATION_SIGN_IN_UNAVAILABLE');
    expect((await finish(browser, subdomain, sent)).json().code).toBe('ORGANIZATION_SIGN_IN_UNAVAILABLE');
  });

  it('a colleague whom an administrator has removed or suspended is not signed in', async () => {
    const { id, subdomain } = await organization();
    const { tenant } = world;
    const person = colleague();
    const { userId } = (await enter(subdomain, person)).json();
    const browser = new Browser(tenant);
    await browser.post(`/api/organizations/${id}/users/${userId}/suspend`, {}, root);
    expect((await enter(subdomain, person)).json()).toMatchObject({ status: 403, code: 'NOT_A_MEMBER' });
    await browser.send('DELETE', `/api/organizations/${id}/users/${userId}`, { token: root });
    expect((await enter(subdomain, person)).json().code).toBe('NOT_A_MEMBER');
  });

  it('a squatted address that its owner verifies keeps no identity of the squatter', async () => {
    const { tenant } = world;
    const { subdomain } = await organization();
    const owner = await register(tenant, false);
    // somebody's provider asserts the address before the owner has verified it
    const squatter = colleague({ email: owner.email });
    expect((await enter(subdomain, squatter)).json().outcome).toBe('Authenticated');
    const { readMails } = await import('../../../people/messages/messages.fixture.ts');
    const [mail] = await readMails(tenant, owner.email);
    const token = /#token=([\w-]{43})/.exec(mail?.text ?? '')?.[1];
    expect((await new Browser(tenant).post('/api/auth/verify-email', { token })).statusCode).toBe(200);
    const after = (await enter(subdomain, squatter)).json();
    expect(after.outcome).toBe('LinkRequired');
    expect(after.accessToken).toBeUndefined();
  });

  it('who is told too little about completes the profile, and does nothing else before', async () => {
    const { tenant } = world;
    const { subdomain, id } = await organization();
    const { email: _, name: __, ...person } = colleague();
    const entered = (await enter(subdomain, person as Person)).json();
    expect(entered).toMatchObject({ outcome: 'Authenticated', requiresProfileCompletion: true });
    const browser = new Browser(tenant);
    const asked = await Promise.all([
      tenant.app.inject({ url: '/api/me/auth-methods', headers: bearer(entered.accessToken) }),
      browser.post('/api/auth/switch-org', { organizationId: id }, entered.accessToken),
      browser.post('/api/totp/setup', {}, entered.accessToken),
    ]);
    expect(asked.map((answer) => answer.json().code)).toEqual(Array(3).fill('PROFILE_INCOMPLETE'));
    const me = await tenant.app.inject({ url: '/api/auth/me', headers: bearer(entered.accessToken) });
    expect(me.statusCode).toBe(200);
    const email = `late-${count++}@corp.example`;
    const path = '/api/auth/oidc/complete-profile';
    const body = { displayName: 'Grace Hopper', email };
    const done = await browser.post(path, body, entered.accessToken);
    expect(done.json()).toMatchObject({
      success: true,
      user: { id: entered.userId, displayName: 'Grace Hopper', email, emailVerified: false },
    });
    expect(decodeJwt(done.json().accessToken)).toMatchObject({ email, name: 'Grace Hopper', org_id: id });
    expect((await browser.post(path, body, done.json().accessToken)).json().code).toBe(
      'PROFILE_ALREADY_COMPLETE',
    );
    expect((await browser.post(path, body, entered.accessToken)).statusCode).toBe(401);
  });

  it('of 50 parallel callbacks on two replicas one signs in', async () => {
    const { tenant, other } = world;
    const { subdomain } = await organization();
    const browser = new Browser(tenant);
    const sent = await begin(browser, subdomain, colleague());
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => {
        const one = new Browser(index % 2 === 0 ? tenant : other);
        one.cookie = browser.cookie;
        return finish(one, subdomain, sent);
      }),
    );
    expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
    expect(answers.filter(({ statusCode }) => statusCode === 400)).toHaveLength(49);
  });
});
