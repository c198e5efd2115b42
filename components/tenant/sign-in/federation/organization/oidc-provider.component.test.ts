import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeJwt } from 'jose';
import Provider, { type Configuration } from 'oidc-provider';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { grant, startTestTenant, type TestTenant } from '../../../tenant.fixture.ts';
import { origin } from '../../passkeys/authenticator.fixture.ts';
import { Browser } from '../people.fixture.ts';

const clientId = 'chancery';
const clientSecret = 'a secret of the provider';
const person = { sub: 'grace', email: 'grace@corp.example', email_verified: true, name: 'Grace Hopper' };

/** A provider that was not written here, in this process; everyone is Grace and agrees. */
async function startProvider(redirectUri: string): Promise<{ issuer: string; server: Server }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const configuration: Configuration = {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'client_credentials'],
      },
    ],
    claims: { email: ['email', 'email_verified'], profile: ['name'] },
    features: { devInteractions: { enabled: false }, clientCredentials: { enabled: true } },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    findAccount: () => ({ accountId: person.sub, claims: () => person }),
    pkce: { required: () => true },
  };
  const provider = new Provider(issuer, configuration);
  const agree = async (request: IncomingMessage, response: ServerResponse) => {
    const { params } = await provider.interactionDetails(request, response);
    const given = new provider.Grant({ accountId: person.sub, clientId: String(params['client_id']) });
    given.addOIDCScope('openid email profile');
    const result = { login: { accountId: person.sub }, consent: { grantId: await given.save() } };
    await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
  };
  const serve = provider.callback();
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (request.url?.startsWith('/interaction/') === true) void agree(request, response);
    else void serve(request, response);
  });
  return { issuer, server };
}

/** Follows redirects with a jar of cookies, as a browser does, until one leaves the provider. */
async function walk(url: string, issuer: string): Promise<string> {
  const jar = new Map<string, string>();
  let next = url;
  for (let steps = 0; next.startsWith(issuer) && steps < 10; steps++) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await fetch(next, { redirect: 'manual', headers: { cookie } });
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') jar.delete(name);
      else jar.set(name, value);
    }
    next = new URL(answer.headers.get('location') ?? '', next).href;
  }
  return next;
}

describe('an OpenID provider that was not written here', () => {
  let tenant: TestTenant;
  let issuer = '';
  let server: Server;

  beforeAll(async () => {
    const started = await startProvider(`${origin}/api/auth/callback/corp`);
    ({ issuer, server } = started);
    tenant = await startTestTenant('tenant_oidc_provider', {
      CHANCERY_BASE_URL: origin,
      CHANCERY_OUTBOUND_ALLOWED: issuer,
    });
  });
  afterAll(async () => {
    await tenant.stop();
    await new Promise((resolve) => server.close(resolve));
  });

  it('is discovered, tested, switched on, and signs a colleague in twice', async () => {
    const { access_token: token } = await grant(tenant);
    const browser = new Browser(tenant);
    const made = await browser.post('/api/organizations', { name: 'Corp', subdomain: 'corp' }, token);
    const idp = `/api/organizations/${made.json().id}/idp`;
    const discovered = await browser.post(`${idp}/discover`, { issuerUrl: issuer }, token);
    expect(discovered.json()).toMatchObject({ issuer, tokenEndpoint: `${issuer}/token` });
    const payload = { providerPreset: 'genericoidc', issuerUrl: issuer, clientId, clientSecret };
    expect((await browser.send('PUT', idp, { payload, token })).statusCode).toBe(200);
    expect((await browser.post(`${idp}/test`, {}, token)).json()).toMatchObject({
      success: true,
      method: 'client_credentials',
    });
    await browser.post(`${idp}/toggle`, { enabled: true }, token);

    const people = [];
    for (const isFirstLogin of [true, false]) {
      const begun = await browser.post('/api/auth/oidc/initiate', { orgSubdomain: 'corp' });
      const back = await walk(begun.json().authorizationUrl, issuer);
      expect(back).toMatch(new RegExp(`^${origin}/api/auth/callback/corp\\?code=`));
      // it sends its issuer (RFC 9207), which is judged
      expect(new URL(back).searchParams.get('iss')).toBe(issuer);
      const answer = await browser.send('GET', back.slice(origin.length));
      expect(answer.json()).toMatchObject({ outcome: 'Authenticated', isFirstLogin });
      people.push(decodeJwt(answer.json().accessToken)['platform_user_id']);
      expect(decodeJwt(answer.json().accessToken)).toMatchObject({ email: person.email, name: person.name });
    }
    expect(new Set(people).size).toBe(1);
  });

  it('a wrong secret signs in no colleague, and its answer from another issuer neither', async () => {
    const { access_token: token } = await grant(tenant);
    const browser = new Browser(tenant);
    const found = await browser.send('GET', '/api/organizations/by-subdomain/corp');
    const idp = `/api/organizations/${found.json().id}/idp`;
    const visit = async (change: (url: URL) => void) => {
      const begun = await browser.post('/api/auth/oidc/initiate', { orgSubdomain: 'corp' });
      const back = new URL(await walk(begun.json().authorizationUrl, issuer));
      change(back);
      return (await browser.send('GET', back.href.slice(origin.length))).json().code;
    };
    expect(await visit((url) => url.searchParams.set('iss', 'https://other.example'))).toBe(
      'PROVIDER_REFUSED',
    );
    expect(await visit((url) => url.searchParams.delete('iss'))).toBe('PROVIDER_REFUSED');
    const payload = { providerPreset: 'GenericOidc', issuerUrl: issuer, clientId, clientSecret: 'wrong' };
    await browser.send('PUT', idp, { payload, token });
    expect((await browser.post(`${idp}/test`, {}, token)).json()).toMatchObject({ success: false });
    expect(await visit(() => undefined)).toBe('PROVIDER_REFUSED');
  });
});
