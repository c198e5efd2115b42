import { decodeJwt } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { passTime } from '../../../tenant.fixture.ts';
import { Browser, microsoftTenant, register, startWorld, type World } from '../people.fixture.ts';
import type { Person } from '../stand-in.fixture.ts';

const callback = '/api/auth/public/social/callback';
let count = 0;

describe('sign-in by social providers', () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld('tenant_social');
  });
  afterAll(() => world.close());
  afterEach(() => {
    world.standIn.faults = {};
    world.standIn.emails = [];
  });

  /** A person whom the provider knows, with a verified address, as the provider writes it. */
  const someone = (provider = 'google'): Person & { email: string } => {
    const sub = String(1_000 + count++);
    const email = `social-${sub}@example.net`;
    if (provider === 'github') world.standIn.emails = [{ email, primary: true, verified: true }];
    const microsoft = {
      iss: `${world.standIn.origin}/${microsoftTenant}/v2.0`,
      tid: microsoftTenant,
      xms_edov: true,
    };
    const verified = provider === 'apple' ? 'true' : true;
    return {
      sub,
      email,
      email_verified: verified,
      name: 'Grace Hopper',
      ...(provider === 'microsoft' && microsoft),
    };
  };

  it('lists what is configured', async () => {
    const browser = new Browser(world.tenant);
    const answer = await browser.send('GET', '/api/auth/social/providers');
    expect(answer.json()).toEqual({ providers: ['google', 'microsoft', 'github', 'apple'] });
    const unknown = await browser.post('/api/auth/public/social/initiate', { provider: 'facebook' });
    expect(unknown.json()).toMatchObject({ status: 400, code: 'UNKNOWN_PROVIDER' });
  });

  it.each(['google', 'microsoft', 'github', 'apple'])(
    '%s makes an account once, and signs it in',
    async (provider) => {
      const { tenant, standIn } = world;
      const person = someone(provider);
      const browser = new Browser(tenant);
      const first = (await browser.enter(standIn, provider, person)).json();
      expect(first).toMatchObject({ outcome: 'Authenticated', is_new_user: true, token_type: 'Bearer' });
      const claims = decodeJwt(first.access_token);
      expect(claims).toMatchObject({ tier: 'consumer', amr: ['fed'], acr: 'basic', email: person.email });
      expect(claims).toMatchObject({ email_verified: true, name: 'Grace Hopper' });
      const second = (await browser.enter(standIn, provider, person)).json();
      expect(second).toMatchObject({ outcome: 'Authenticated', is_new_user: false });
      expect(decodeJwt(second.access_token)['platform_user_id']).toBe(claims['platform_user_id']);
      const methods = await browser.send('GET', '/api/auth/public/methods', { token: second.access_token });
      expect(methods.json()).toMatchObject({
        passkeys: [],
        socialLinks: [{ provider, email: person.email }],
      });
    },
  );

  it('asks with PKCE by S256, a nonce and a state, and in a form where the name comes only so', async () => {
    const browser = new Browser(world.tenant);
    for (const [provider, isOpenId] of [
      ['google', true],
      ['github', false],
      ['apple', true],
    ] as const) {
      const begun = await browser.post('/api/auth/public/social/initiate', { provider });
      const { searchParams } = new URL(begun.json().authorization_url);
      expect(searchParams.get('code_challenge_method')).toBe('S256');
      expect(searchParams.get('code_challenge')).toMatch(/^[\w-]{43}$/);
      expect(searchParams.get('state')).toBe(begun.json().state);
      expect(searchParams.has('nonce')).toBe(isOpenId);
      expect(searchParams.get('response_mode')).toBe(provider === 'apple' ? 'form_post' : null);
      expect(begun.headers['set-cookie']).toMatch(
        /^__Host-chancery-oauth=[\w-]{43}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/,
      );
    }
  });

  it('refuses addresses that the provider has not verified', async () => {
    const { tenant, standIn } = world;
    const browser = new Browser(tenant);
    const refused = [
      ['google', { ...someone(), email_verified: false }],
      ['google', { sub: 'without-address' }],
      ['microsoft', { ...someone('microsoft'), xms_edov: false }],
      ['microsoft', { ...someone('microsoft'), xms_edov: undefined }],
    ] as const;
    for (const [provider, person] of refused) {
      const answer = await browser.enter(standIn, provider, person as Person);
      expect(answer.json(), JSON.stringify(person)).toMatchObject({
        status: 400,
        code: 'ProviderUnverified',
      });
    }
    standIn.emails = [
      { email: 'a@example.net', primary: true, verified: false },
      { email: 'b@example.net', primary: false, verified: true },
    ];
    const answer = await browser.enter(standIn, 'github', { sub: '77' });
    expect(answer.json().code).toBe('ProviderUnverified');
  });

  it('takes an issuer of Microsoft only with the tenant that the token names', async () => {
    const { tenant, standIn } = world;
    const browser = new Browser(tenant);
    const person = someone('microsoft');
    const other = 'b2c4a9a0-0b0f-4d8f-8c6e-0a8b1a9f1a11';
    for (const wrong of [
      { ...person, tid: other },
      { ...person, tid: undefined },
      { ...person, tid: 'common', iss: `${standIn.origin}/common/v2.0` },
      { ...person, iss: `${standIn.origin}/{tenantid}/v2.0`, tid: '{tenantid}' },
    ]) {
      const answer = await browser.enter(standIn, 'microsoft', wrong as Person);
      expect(answer.json().code).toBe('PROVIDER_REFUSED');
    }
    const personal = '9188040d-6c67-4b5b-b112-36a304b66dad';
    const owner = {
      ...someone('microsoft'),
      tid: personal,
      iss: `${standIn.origin}/${personal}/v2.0`,
      xms_edov: undefined,
    };
    expect((await browser.enter(standIn, 'microsoft', owner)).json().outcome).toBe('Authenticated');
  });

  it('gives no session for an address that has an account, and joins none that is not verified', async () => {
    const { tenant, standIn } = world;
    const known = await register(tenant);
    const browser = new Browser(tenant);
    const person = { ...someone(), email: known.email.toUpperCase() };
    const answer = (await browser.enter(standIn, 'google', person)).json();
    expect(answer).toEqual({
      outcome: 'LinkRequired',
      linkPendingToken: expect.stringMatching(/^[\w-]{43}$/),
    });
    // squatted before its owner signs in
    const squatted = await register(tenant, false);
    const refused = await browser.enter(standIn, 'google', { ...someone(), email: squatted.email });
    expect(refused.json()).toMatchObject({ status: 400, code: 'ExistingUnverified' });
  });

  it('signs in to the wallet pages known identities alone', async () => {
    const { tenant, standIn } = world;
    const person = someone();
    const browser = new Browser(tenant);
    const unknown = await browser.enter(standIn, 'google', person, { surface: 'wallet' });
    expect(unknown.json()).toMatchObject({ status: 400, code: 'NoExistingAccount' });
    const unseen = await browser.follow(
      await browser.visit(standIn, 'google', person, { surface: 'wallet' }),
    );
    expect([unseen.statusCode, unseen.headers.location]).toEqual([302, '/wallet/?authError=no_account']);
    await browser.enter(standIn, 'google', person);
    const seen = await browser.follow(await browser.visit(standIn, 'google', person, { surface: 'wallet' }));
    expect(seen.headers.location).toMatch(/^\/wallet\/#token=[^&]+&refresh=rt_[^&]+&expires_in=\d+$/);
    expect(seen.headers).toMatchObject({ 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' });
  });

  it('the browser is sent to an allowed destination, with tokens in the fragment', async () => {
    const { tenant, standIn } = world;
    const browser = new Browser(tenant);
    const at = async (returnTo: string | undefined) =>
      (await browser.follow(await browser.visit(standIn, 'google', someone(), { returnTo }))).headers
        .location;
    expect(await at(undefined)).toMatch(/^\/app\/#token=/);
    expect(await at('/app/orders?x=1')).toMatch(/^\/app\/orders\?x=1#token=/);
    expect(await at('https://app.example.org/in')).toMatch(/^https:\/\/app\.example\.org\/in#token=/);
    const evil = { provider: 'google', returnTo: 'https://evil.example/' };
    const refused = await browser.post('/api/auth/public/social/initiate', evil);
    expect(refused.json().code).toBe('RETURN_ADDRESS_REFUSED');
    const uri = { provider: 'google', redirectUri: 'https://evil.example/cb' };
    expect((await browser.post('/api/auth/public/social/initiate', uri)).json().code).toBe(
      'RETURN_ADDRESS_REFUSED',
    );
  });

  it('a state is of one browser, one provider and ten minutes, and acts once', async () => {
    const { tenant, standIn } = world;
    const browser = new Browser(tenant);
    const code = async (act: Promise<{ json(): { code: string } }>) => (await act).json().code;
    // another browser: login of a victim with the account of an attacker
    const visit = await browser.visit(standIn, 'google', someone());
    expect(await code(new Browser(tenant).follow(visit))).toBe('INVALID_STATE');
    const second = new Browser(tenant);
    await second.visit(standIn, 'google', someone());
    expect(await code(second.follow(visit))).toBe('INVALID_STATE');
    // it was not used by them
    expect((await browser.follow(visit)).statusCode).toBe(302);
    expect(await code(browser.follow(visit))).toBe('INVALID_STATE');
    expect(await code(browser.post(callback, visit))).toBe('INVALID_STATE');
    const elsewhere = { ...(await browser.visit(standIn, 'google', someone())), provider: 'apple' };
    expect(await code(browser.post(callback, elsewhere))).toBe('INVALID_STATE');
    expect(await code(browser.post(callback, { ...visit, state: 'unknown' }))).toBe('INVALID_STATE');
    const late = await browser.visit(standIn, 'google', someone());
    await passTime(tenant, 600_001);
    expect(await code(browser.post(callback, late))).toBe('INVALID_STATE');
    // tabs beside each other
    const [one, two] = [
      await browser.visit(standIn, 'google', someone()),
      await browser.visit(standIn, 'google', someone()),
    ];
    expect((await browser.follow(one)).statusCode).toBe(302);
    expect((await browser.follow(two)).statusCode).toBe(302);
  });

  it('of 50 parallel callbacks on two replicas one signs in', async () => {
    const { tenant, standIn, other } = world;
    const visit = await new Browser(tenant).visit(standIn, 'google', someone());
    const before = standIn.asked.filter((path) => path === '/token').length;
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        new Browser(index % 2 === 0 ? tenant : other).post(callback, visit),
      ),
    );
    const codes = answers.map((answer) => answer.statusCode);
    expect([
      codes.filter((code) => code === 200).length,
      codes.filter((code) => code === 400).length,
    ]).toEqual([1, 49]);
    expect(standIn.asked.filter((path) => path === '/token').length - before).toBe(1);
  });

  it('of parallel first sign-ins of one person one makes the account', async () => {
    const { tenant, standIn, other } = world;
    const person = someone();
    const visits = await Promise.all(
      Array.from({ length: 8 }, () => new Browser(tenant).visit(standIn, 'google', person)),
    );
    const answers = await Promise.all(
      visits.map((visit, index) => new Browser(index % 2 === 0 ? tenant : other).post(callback, visit)),
    );
    const people = answers.map((answer) => {
      expect(answer.statusCode, answer.body).toBe(200);
      const { outcome, access_token, is_new_user } = answer.json();
      expect(outcome).toBe('Authenticated');
      return [decodeJwt(access_token)['platform_user_id'], is_new_user] as const;
    });
    expect(new Set(people.map(([id]) => id)).size).toBe(1);
    expect(people.filter(([, isNew]) => isNew)).toHaveLength(1);
  });

  it('a person who declines, and a provider that fails, are told on the page', async () => {
    const { tenant, standIn } = world;
    const browser = new Browser(tenant);
    const { state } = await browser.visit(standIn, 'google', someone());
    const declined = await browser.send('GET', `/auth/social/callback?state=${state}&error=access_denied`);
    expect(declined.headers.location).toBe('/app/#outcome=Error&code=access_denied');
    expect((await browser.follow({ code: 'x', state })).json().code).toBe('INVALID_STATE');
    const visit = await browser.visit(standIn, 'google', someone());
    standIn.faults = { claims: (claims) => ({ ...claims, nonce: 'another' }) };
    expect((await browser.follow(visit)).headers.location).toBe('/app/#outcome=Error&code=PROVIDER_REFUSED');
    const events = await tenant.db.read
      .selectFrom('audit_events')
      .selectAll()
      .where('event_type', '=', 'LoginFailed')
      .execute();
    expect(events.at(-1)?.details).toMatchObject({ reason: 'provider', provider: 'google' });
  });

  it('a form that another site posts is sent on, and its name is taken', async () => {
    const { tenant, standIn } = world;
    const browser = new Browser(tenant);
    const { name: _, ...person } = someone('apple');
    const { code, state } = await browser.visit(standIn, 'apple', person);
    const user = JSON.stringify({ name: { firstName: 'Grace', lastName: 'Hopper' }, email: 'x@example.org' });
    const form = (members: Record<string, string>) =>
      tenant.app.inject({
        method: 'POST',
        url: '/auth/social/callback',
        headers: { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://appleid.apple.com' },
        payload: new URLSearchParams(members).toString(),
      });
    expect((await form({ code, state: 'unknown' })).json().code).toBe('INVALID_STATE');
    expect((await form({ code })).json().code).toBe('INVALID_STATE');
    const posted = await form({ code, state, user, id_token: 'ignored' });
    expect(posted.statusCode).toBe(303);
    const followed = await browser.send('GET', posted.headers.location ?? '');
    const token = new URLSearchParams(followed.headers.location?.split('#')[1]).get('token') ?? '';
    expect(decodeJwt(token)['name']).toBe('Grace Hopper');
  });

  it('HEAD uses no state', async () => {
    const { tenant, standIn } = world;
    const browser = new Browser(tenant);
    const { code, state } = await browser.visit(standIn, 'google', someone());
    const url = `/auth/social/callback?${new URLSearchParams({ code, state })}`;
    const head = await tenant.app.inject({ method: 'HEAD', url, headers: { cookie: browser.cookie } });
    expect(head.statusCode).toBe(405);
    expect((await browser.follow({ code, state })).statusCode).toBe(302);
  });

  it('a closed Public organisation takes no new people, and signs in the others', async () => {
    const { tenant, standIn } = world;
    const browser = new Browser(tenant);
    const person = someone();
    await browser.enter(standIn, 'google', person);
    const set = (values: object) =>
      tenant.db.transact((tx) =>
        tx.updateTable('organizations').set(values).where('subdomain', '=', 'public').execute(),
      );
    await set({ self_registration_enabled: false });
    expect((await browser.enter(standIn, 'google', someone())).json().code).toBe('REGISTRATION_CLOSED');
    expect((await browser.enter(standIn, 'google', person)).json().outcome).toBe('Authenticated');
    await set({ status: 'Suspended' });
    expect((await browser.enter(standIn, 'google', someone())).json()).toMatchObject({
      status: 403,
      code: 'PUBLIC_ORG_DISABLED',
    });
    await set({ status: 'Active', self_registration_enabled: true });
  });

  it('no readable column holds a code, state, verifier or token', async () => {
    const { tenant, standIn } = world;
    const browser = new Browser(tenant);
    const visit = await browser.visit(standIn, 'google', someone());
    const { access_token } = (await browser.post(callback, visit)).json();
    for (const table of ['one_time_secrets', 'audit_events', 'social_links', 'refresh_families'] as const) {
      const dump = JSON.stringify(await tenant.db.read.selectFrom(table).selectAll().execute());
      for (const secret of [visit.code, visit.state, access_token]) expect(dump).not.toContain(secret);
    }
  });
});
