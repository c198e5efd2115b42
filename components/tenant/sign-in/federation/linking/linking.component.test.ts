import { decodeJwt } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { passTime } from '../../../tenant.fixture.ts';
import { origin as baseUrl, SoftAuthenticator } from '../../passkeys/authenticator.fixture.ts';
import { addTotp, Browser, codeOf, password, register, startWorld, type World } from '../people.fixture.ts';
import type { Person } from '../stand-in.fixture.ts';

const link = '/api/auth/public/social/link';
const pending = '/api/auth/social/link';
let count = 0;

describe('connections with social providers', () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld('tenant_linking');
  });
  afterAll(() => world.close());
  afterEach(() => {
    world.standIn.faults = {};
  });

  const identity = (email?: string): Person => ({
    sub: `identity-${count++}`,
    email: email ?? `identity-${count}@example.net`,
    email_verified: true,
    name: 'Grace Hopper',
  });
  const confirm = (linkPendingToken: string, challenge?: string) =>
    new Browser(world.tenant).post(
      `${pending}/confirm`,
      { linkPendingToken },
      undefined,
      challenge === undefined ? {} : { 'x-auth-challenge': challenge },
    );
  const initiate = (linkPendingToken: string, preferredMethod?: string) =>
    new Browser(world.tenant).post(`${pending}/challenge/initiate`, { linkPendingToken, preferredMethod });
  const verify = (linkPendingToken: string, method: string, proof: object) =>
    new Browser(world.tenant).post(`${pending}/challenge/verify`, { linkPendingToken, method, proof });

  /** A person with an app, whose address a provider knows too. */
  const meet = async () => {
    const { tenant, standIn } = world;
    const person = await register(tenant);
    const secret = await addTotp(tenant, person.token);
    await passTime(tenant, 31_000);
    const known = identity(person.email);
    const answer = await new Browser(tenant).enter(standIn, 'google', known);
    return {
      ...person,
      secret,
      known,
      token: answer.json().linkPendingToken as string,
      bearer: person.token,
    };
  };

  it('an app code connects, signs in, and both tokens act once', async () => {
    const { tenant, standIn } = world;
    const { token, secret, known, bearer } = await meet();
    expect((await initiate(token)).json()).toEqual({ method: 'Totp', payload: null });
    const proved = (await verify(token, 'totp', { code: codeOf(tenant, secret) })).json();
    expect(proved).toMatchObject({ token: expect.stringMatching(/^ch_/), expiresInSeconds: 300 });
    const answer = await confirm(token, proved.token);
    expect(answer.json()).toEqual({
      accessToken: expect.any(String),
      refreshToken: expect.stringMatching(/^rt_/),
      expiresIn: expect.any(Number),
    });
    const claims = decodeJwt(answer.json().accessToken);
    expect(claims).toMatchObject({ acr: 'strong', amr: ['fed'] });
    expect(claims['platform_user_id']).toBe(decodeJwt(bearer)['platform_user_id']);
    expect((await confirm(token, proved.token)).json().code).toBe('INVALID_LINK_TOKEN');
    const again = (await new Browser(tenant).enter(standIn, 'google', known)).json();
    expect(decodeJwt(again.access_token)['platform_user_id']).toBe(claims['platform_user_id']);
    const events = await tenant.db.read
      .selectFrom('audit_events')
      .select('event_type')
      .where('event_type', '=', 'SocialLinked')
      .where('platform_user_id', '=', String(claims['platform_user_id']))
      .execute();
    expect(events).toHaveLength(1);
    const { token: own } = { token: answer.json().accessToken };
    const inbox = await new Browser(tenant).send('GET', '/api/me/inbox', { token: own });
    expect(JSON.stringify(inbox.json())).toContain('google signs you in from now on');
  });

  it('a password is refused without being evaluated, and a password-only account cannot start', async () => {
    const { tenant, standIn } = world;
    const { token } = await meet();
    const refused = await verify(token, 'Password', { password });
    expect(refused.json()).toMatchObject({ status: 403, code: 'proof_tier_insufficient' });
    const weak = await register(tenant);
    const met = await new Browser(tenant).enter(standIn, 'google', identity(weak.email));
    const begun = await initiate(met.json().linkPendingToken);
    expect(begun.json()).toMatchObject({ status: 400, code: 'NoMethodAvailable' });
  });

  it('a proof holds for one link-pending token', async () => {
    const { tenant, standIn } = world;
    const { token, secret, email, bearer } = await meet();
    // the same account, another identity, by a person who has the mail address alone
    const other = (await new Browser(tenant).enter(standIn, 'apple', identity(email))).json()
      .linkPendingToken;
    const proved = (await verify(token, 'Totp', { code: codeOf(tenant, secret) })).json().token;
    expect((await confirm(other, proved)).json()).toMatchObject({ status: 403, code: 'WRONG_OPERATION' });
    expect((await confirm(token)).json()).toMatchObject({ status: 401, code: 'INVALID_CHALLENGE' });
    expect((await confirm(token, 'ch_unknown')).json()).toMatchObject({
      status: 401,
      code: 'INVALID_CHALLENGE',
    });
    expect((await confirm('unknown', proved)).json()).toMatchObject({
      status: 401,
      code: 'INVALID_LINK_TOKEN',
    });
    // a challenge of the bearer routes is for no link, nor the reverse
    await passTime(tenant, 30_000);
    const asked = { scopedOperation: 'LinkSocial', method: 'Totp', proof: { code: codeOf(tenant, secret) } };
    const own = (await new Browser(tenant).post('/api/auth/challenge/verify', asked, bearer)).json().token;
    expect((await confirm(token, own)).json().code).toBe('WRONG_OPERATION');
    await passTime(tenant, 240_000);
    const begun = await new Browser(tenant).post(link, { provider: 'github' }, bearer, {
      'x-auth-challenge': proved,
    });
    expect(begun.json().code).toBe('insufficient_user_authentication');
  });

  it('five wrong codes end the token; it lives 300 s', async () => {
    const { tenant } = world;
    const { token, secret } = await meet();
    const wrong = String((Number(codeOf(tenant, secret)) + 1) % 1_000_000).padStart(6, '0');
    for (let tries = 0; tries < 4; tries++) {
      expect((await verify(token, 'Totp', { code: wrong })).json().code).toBe('WRONG_PROOF');
    }
    await verify(token, 'Totp', { code: wrong });
    expect((await verify(token, 'Totp', { code: codeOf(tenant, secret) })).json()).toMatchObject({
      status: 401,
      code: 'INVALID_LINK_TOKEN',
    });
    const late = await meet();
    await passTime(tenant, 300_001);
    expect((await initiate(late.token)).json().code).toBe('INVALID_LINK_TOKEN');
  });

  it('a passkey proves it too', async () => {
    const { tenant, standIn } = world;
    const person = await register(tenant);
    const key = new SoftAuthenticator();
    const path = '/api/auth/public/passkey/add';
    const browser = new Browser(tenant);
    const { transaction_id, options } = (
      await browser.post(`${path}/options`, { display_name: 'Key' }, person.token)
    ).json();
    await browser.post(
      `${path}/verify`,
      { transaction_id, attestation_response: key.create(options) },
      person.token,
    );
    const { linkPendingToken } = (await browser.enter(standIn, 'google', identity(person.email))).json();
    const { method, payload } = (await initiate(linkPendingToken, 'Passkey')).json();
    expect(method).toBe('Passkey');
    const { transactionId, assertionOptions } = payload;
    const proof = { transactionId, assertionResponse: key.get(assertionOptions) };
    const { token } = (await verify(linkPendingToken, 'Passkey', proof)).json();
    expect((await confirm(linkPendingToken, token)).statusCode).toBe(200);
    expect(baseUrl).toMatch(/^https/);
  });

  it('of 50 parallel confirmations on two replicas one connects', async () => {
    const { tenant, other } = world;
    const { token, secret } = await meet();
    const proved = (await verify(token, 'Totp', { code: codeOf(tenant, secret) })).json().token;
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        new Browser(index % 2 === 0 ? tenant : other).post(
          `${pending}/confirm`,
          { linkPendingToken: token },
          undefined,
          { 'x-auth-challenge': proved },
        ),
      ),
    );
    expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
    expect(answers.filter(({ statusCode }) => statusCode === 401)).toHaveLength(49);
  });

  /** Connects an identity with the account of a bearer. */
  const connect = async (token: string, provider: string, person: Person, headers: object = {}) => {
    const browser = new Browser(world.tenant);
    const begun = await browser.post(link, { provider }, token, headers);
    if (begun.statusCode !== 200) return begun;
    const sent = world.standIn.agree(begun.json().authorizationUrl, person);
    return browser.post(link, { provider, ...sent }, token);
  };

  it('a bearer connects an identity, once, and no identity of another account', async () => {
    const { tenant } = world;
    const [one, two] = [await register(tenant), await register(tenant)];
    const person = identity();
    expect((await connect(one.token, 'google', person)).statusCode).toBe(204);
    expect((await connect(one.token, 'google', person)).statusCode).toBe(204);
    expect((await connect(two.token, 'google', person)).json()).toMatchObject({
      status: 409,
      code: 'IDENTITY_LINKED',
    });
    // an account that another person began with: the bearer changed meanwhile
    const browser = new Browser(tenant);
    const begun = await browser.post(link, { provider: 'google' }, one.token);
    const sent = world.standIn.agree(begun.json().authorizationUrl, identity());
    const swapped = await browser.post(link, { provider: 'google', ...sent }, two.token);
    expect(swapped.json()).toMatchObject({ status: 401, code: 'SESSION_CHANGED' });
    const anonymous = await browser.post('/api/auth/public/social/callback', { provider: 'google', ...sent });
    expect(anonymous.json().code).toBe('INVALID_STATE');
  });

  it('the page gets what the provider sends back, and ends the connection with its bearer token', async () => {
    const { tenant, standIn } = world;
    const person = await register(tenant);
    const browser = new Browser(tenant);
    const begun = await browser.post(link, { provider: 'google' }, person.token);
    const sent = standIn.agree(begun.json().authorizationUrl, identity());
    const { location = '' } = (await browser.follow(sent, { iss: standIn.origin })).headers;
    const [page, fragment] = location.split('#');
    expect(page).toBe('/app/');
    const members = Object.fromEntries(new URLSearchParams(fragment));
    expect(members).toEqual({ outcome: 'Link', provider: 'google', ...sent, iss: standIn.origin });
    const { outcome: _, ...body } = members;
    expect((await browser.post(link, body, person.token)).statusCode).toBe(204);
  });

  it('a stolen token alone connects nothing, and an account with an app wants its code', async () => {
    const { tenant } = world;
    const person = await register(tenant);
    await passTime(tenant, 301_000);
    const late = await connect(person.token, 'google', identity());
    expect(late.json()).toMatchObject({ status: 401, code: 'insufficient_user_authentication' });
    const strong = await register(tenant);
    const secret = await addTotp(tenant, strong.token);
    await passTime(tenant, 301_000);
    const asked = { scopedOperation: 'LinkSocial', method: 'Totp', proof: { code: codeOf(tenant, secret) } };
    const { token: challenge } = (
      await new Browser(tenant).post('/api/auth/challenge/verify', asked, strong.token)
    ).json();
    await passTime(tenant, 299_000);
    const done = await connect(strong.token, 'google', identity(), { 'x-auth-challenge': challenge });
    expect(done.statusCode).toBe(204);
  });

  it('is removed, but not as the last means of signing in', async () => {
    const { tenant, standIn } = world;
    const browser = new Browser(tenant);
    const { access_token: token } = (await browser.enter(standIn, 'google', identity())).json();
    const list = async () => {
      const answer = await browser.send('GET', '/api/auth/public/methods', { token });
      return answer.json().socialLinks as { linkId: string; provider: string }[];
    };
    const [first] = await list();
    const remove = (linkId: string, bearer = token) =>
      browser.send('DELETE', `/api/auth/public/social/${linkId}`, { token: bearer });
    expect((await remove(first?.linkId ?? '')).json()).toMatchObject({
      status: 409,
      code: 'LAST_AUTH_METHOD',
    });
    expect((await connect(token, 'apple', identity())).statusCode).toBe(204);
    expect(await list()).toHaveLength(2);
    const foreign = await register(tenant);
    expect((await remove(first?.linkId ?? '', foreign.token)).json()).toMatchObject({
      status: 404,
      code: 'LINK_NOT_FOUND',
    });
    expect((await remove(first?.linkId ?? '')).statusCode).toBe(204);
    expect((await list()).map(({ provider }) => provider)).toEqual(['apple']);
    const both = await list();
    expect((await remove(both[0]?.linkId ?? '')).json().code).toBe('LAST_AUTH_METHOD');
  });

  it('of parallel removals of the last two one fails', async () => {
    const { tenant, standIn } = world;
    const browser = new Browser(tenant);
    const { access_token: token } = (await browser.enter(standIn, 'google', identity())).json();
    await connect(token, 'apple', identity());
    const { socialLinks } = (await browser.send('GET', '/api/auth/public/methods', { token })).json();
    const answers = await Promise.all(
      socialLinks.map(({ linkId }: { linkId: string }) =>
        new Browser(tenant).send('DELETE', `/api/auth/public/social/${linkId}`, {
          token,
        }),
      ),
    );
    expect(answers.map(({ statusCode }) => statusCode).toSorted()).toEqual([204, 409]);
  });

  describe('a visit at a connected provider', () => {
    const reauthenticate = async (token: string, person: Person, scopedOperation = 'Disable2Fa') => {
      const browser = new Browser(world.tenant);
      const asked = { scopedOperation, preferredMethod: 'ReOAuth' };
      const begun = (await browser.post('/api/auth/challenge/initiate', asked, token)).json();
      const { provider, authorizationUrl } = begun.payload;
      const sent = world.standIn.agree(authorizationUrl, person);
      return { begun, proof: { provider, ...sent } };
    };
    const judge = (token: string, proof: object, scopedOperation = 'Disable2Fa') =>
      new Browser(world.tenant).post(
        '/api/auth/challenge/verify',
        { scopedOperation, method: 'ReOAuth', proof },
        token,
      );

    it('is a strong proof of an identity that is connected already, asked with max_age 0', async () => {
      const { tenant } = world;
      const person = await register(tenant);
      const known = identity();
      await connect(person.token, 'google', known);
      const { begun, proof } = await reauthenticate(person.token, known);
      expect(begun.method).toBe('ReOAuth');
      expect(new URL(begun.payload.authorizationUrl).searchParams.get('max_age')).toBe('0');
      const done = await judge(person.token, proof);
      expect(done.json().token).toMatch(/^ch_/);
      expect((await judge(person.token, proof)).json().code).toBe('WRONG_PROOF');
    });

    it('another identity, another account and an old sign-in prove nothing', async () => {
      const { tenant } = world;
      const [one, two] = [await register(tenant), await register(tenant)];
      const [known, foreign] = [identity(), identity()];
      await connect(one.token, 'google', known);
      await connect(two.token, 'google', foreign);
      const other = await reauthenticate(one.token, foreign);
      expect((await judge(one.token, other.proof)).json().code).toBe('WRONG_PROOF');
      const unknown = await reauthenticate(one.token, identity());
      expect((await judge(one.token, unknown.proof)).json().code).toBe('WRONG_PROOF');
      const mine = await reauthenticate(one.token, known);
      expect((await judge(two.token, mine.proof)).json().code).toBe('WRONG_PROOF');
      const auth_time = Math.floor(tenant.clock.nowMs() / 1_000) - 301;
      const old = await reauthenticate(one.token, { ...known, auth_time });
      expect((await judge(one.token, old.proof)).json().code).toBe('WRONG_PROOF');
    });

    it('the identity that waits to be connected does not prove the account', async () => {
      const { tenant, standIn } = world;
      const person = await register(tenant);
      await connect(person.token, 'apple', identity());
      const waiting = identity(person.email);
      const { linkPendingToken } = (await new Browser(tenant).enter(standIn, 'google', waiting)).json();
      const begun = (await initiate(linkPendingToken)).json();
      expect(begun.method).toBe('ReOAuth');
      const sent = standIn.agree(begun.payload.authorizationUrl, waiting);
      const refused = await verify(linkPendingToken, 'ReOAuth', { provider: 'apple', ...sent });
      expect(refused.json().code).toBe('WRONG_PROOF');
    });
  });
});
