import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Browser, register, startWorld, type World } from '../../sign-in/federation/people.fixture.ts';
import { clientId, clientSecret, type Faults } from '../../sign-in/federation/stand-in.fixture.ts';
import { grant, passTime } from '../../tenant.fixture.ts';

let count = 0;

describe('the identity provider of an organisation', () => {
  let world: World;
  let root = '';

  beforeAll(async () => {
    world = await startWorld('tenant_idp');
  });
  afterAll(() => world.close());
  afterEach(() => {
    world.standIn.faults = {};
  });

  const call = async (
    method: 'GET' | 'PUT' | 'POST' | 'DELETE',
    url: string,
    payload?: object,
    token = root,
  ) => new Browser(world.tenant).send(method, url, { token, ...(payload !== undefined && { payload }) });
  const make = async () => {
    root = (await grant(world.tenant)).access_token;
    const subdomain = `idp-${count++}`;
    const made = await call('POST', '/api/organizations', { name: `Corp ${count}`, subdomain });
    return { idp: `/api/organizations/${made.json().id}/idp`, subdomain };
  };
  const settings = (more: object = {}) => ({
    providerPreset: 'GenericOidc',
    issuerUrl: world.standIn.origin,
    clientId,
    clientSecret,
    ...more,
  });

  it('is discovered, saved, tested, switched on and removed', async () => {
    const { idp } = await make();
    const { origin } = world.standIn;
    expect((await call('GET', idp)).json()).toMatchObject({ status: 404, code: 'IDP_NOT_FOUND' });
    expect((await call('POST', `${idp}/discover`, { issuerUrl: `${origin}/` })).json()).toEqual({
      issuer: origin,
      authorizationEndpoint: `${origin}/authorize`,
      tokenEndpoint: `${origin}/token`,
      userInfoEndpoint: `${origin}/userinfo`,
      jwksUri: `${origin}/jwks`,
      supportedScopes: ['openid', 'email', 'profile'],
    });
    const put = await call('PUT', idp, settings());
    expect(put.json()).toMatchObject({
      isEnabled: false,
      hasClientSecret: true,
      scopes: ['openid', 'profile', 'email'],
      tokenEndpoint: `${origin}/token`,
      discoveryError: null,
    });
    expect((await call('POST', `${idp}/test`)).json()).toEqual({
      success: true,
      message: 'The provider was read and accepts the client.',
      method: 'client_credentials',
      discoveredScopes: ['openid', 'email', 'profile'],
    });
    expect((await call('POST', `${idp}/toggle`, { enabled: true })).json().isEnabled).toBe(true);
    // an update without the secret keeps it, and keeps it on
    const { clientSecret: _, ...rest } = settings({ displayName: 'Corp' });
    expect((await call('PUT', idp, rest)).json()).toMatchObject({
      isEnabled: true,
      hasClientSecret: true,
      displayName: 'Corp',
    });
    expect((await call('DELETE', idp)).statusCode).toBe(204);
    expect((await call('DELETE', idp)).json().code).toBe('IDP_NOT_FOUND');
    const events = await world.tenant.db.read
      .selectFrom('audit_events')
      .select('details')
      .where('event_type', '=', 'IdpConfigurationUpdated')
      .execute();
    expect(events.map(({ details }) => (details as { action: string }).action)).toEqual([
      'created',
      'enabled',
      'updated',
      'deleted',
    ]);
  });

  it('a wrong secret is said, and what cannot be tested too', async () => {
    const { idp } = await make();
    await call('PUT', idp, settings({ clientSecret: 'wrong' }));
    expect((await call('POST', `${idp}/test`)).json()).toMatchObject({
      success: false,
      message: 'The provider refuses the client id or its secret.',
    });
    await call('PUT', idp, settings({ providerPreset: 'google', clientSecret: 'wrong' }));
    expect((await call('POST', `${idp}/test`)).json()).toMatchObject({ success: true, method: 'discovery' });
  });

  it('a new issuer does not get the secret of the old one', async () => {
    const { idp } = await make();
    await call('PUT', idp, settings());
    const { clientSecret: _, ...rest } = settings({ issuerUrl: `${world.standIn.origin}/other` });
    expect((await call('PUT', idp, rest)).json()).toMatchObject({
      status: 400,
      code: 'CLIENT_SECRET_REQUIRED',
      errors: { clientSecret: ['is required with a new issuer'] },
    });
  });

  it.each([
    'http://id.example.org',
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://[::ffff:10.0.0.1]/',
    'https://169.254.169.254/latest',
    'https://0.0.0.0/',
    'https://id.example.org/?x=1',
    'https://login.microsoftonline.com/common/v2.0',
    'https://login.microsoftonline.com/organizations/v2.0',
    'ftp://id.example.org',
    'id.example.org',
  ])('%s is refused with the field, and nothing is asked', async (issuerUrl) => {
    const { idp } = await make();
    const before = world.standIn.asked.length;
    for (const answer of [
      await call('POST', `${idp}/discover`, { issuerUrl }),
      await call('PUT', idp, settings({ issuerUrl })),
    ]) {
      expect(answer.json()).toMatchObject({
        status: 400,
        code: 'DISCOVERY_FAILED',
        errors: { issuerUrl: [expect.any(String)] },
      });
    }
    expect(world.standIn.asked).toHaveLength(before);
    expect((await call('GET', idp)).statusCode).toBe(404);
  });

  const broken: readonly (readonly [string, Faults, RegExp])[] = [
    [
      'names another issuer',
      { metadata: (all) => ({ ...all, issuer: 'https://other.example' }) },
      /another issuer/,
    ],
    ['has no keys', { metadata: ({ jwks_uri: _, ...all }) => all }, /jwks_uri/],
    [
      'names a private token endpoint',
      { metadata: (all) => ({ ...all, token_endpoint: 'https://10.0.0.1/t' }) },
      /token_endpoint/,
    ],
    [
      'names a private key set',
      { metadata: (all) => ({ ...all, jwks_uri: 'https://169.254.169.254/k' }) },
      /jwks_uri/,
    ],
    [
      'names a private userinfo',
      { metadata: (all) => ({ ...all, userinfo_endpoint: 'https://[::1]/u' }) },
      /userinfo/,
    ],
    [
      'names a script to open',
      { metadata: (all) => ({ ...all, authorization_endpoint: 'javascript:alert(1)' }) },
      /authorization_endpoint/,
    ],
    ['is malformed', { metadata: () => ({ issuer: 1 }) }, /malformed/],
    [
      'redirects',
      { answer: (_, response) => Boolean(response.writeHead(302, { location: '/x' }).end()) },
      /redirect/,
    ],
    ['is no JSON', { answer: (_, response) => Boolean(response.end('<html>')) }, /not JSON/],
    ['is large', { answer: (_, response) => Boolean(response.end('x'.repeat(300_000))) }, /too large/],
    ['fails', { answer: (_, response) => Boolean(response.writeHead(500).end()) }, /status 500/],
    ['is cut', { answer: (_, response) => Boolean(response.destroy()) }, /cannot be reached/],
  ];
  it.each(broken)(
    'a provider whose configuration %s is kept, switched off, with the reason',
    async (_, faults, reason) => {
      const { idp } = await make();
      await call('PUT', idp, settings());
      await call('POST', `${idp}/toggle`, { enabled: true });
      world.standIn.faults = faults;
      const discovered = await call('POST', `${idp}/discover`, { issuerUrl: world.standIn.origin });
      expect(discovered.json()).toMatchObject({ status: 400, code: 'DISCOVERY_FAILED' });
      const put = (await call('PUT', idp, settings())).json();
      expect(put).toMatchObject({
        isEnabled: false,
        tokenEndpoint: null,
        discoveryError: expect.stringMatching(reason),
      });
      const toggled = await call('POST', `${idp}/toggle`, { enabled: true });
      expect(toggled.json()).toMatchObject({ status: 409, code: 'DISCOVERY_REQUIRED' });
      expect((await call('POST', `${idp}/test`)).json().success).toBe(false);
    },
  );

  it('is read again after a day; the earlier copy serves while it cannot be read', async () => {
    const { idp, subdomain } = await make();
    await call('PUT', idp, settings());
    await call('POST', `${idp}/toggle`, { enabled: true });
    const initiate = () => call('POST', '/api/auth/oidc/initiate', { orgSubdomain: subdomain });
    const reads = () => world.standIn.asked.filter((path) => path.includes('openid-configuration')).length;
    const before = reads();
    expect((await initiate()).statusCode).toBe(200);
    expect(reads()).toBe(before);
    await passTime(world.tenant, 86_400_001);
    root = (await grant(world.tenant)).access_token;
    world.standIn.faults = { answer: (_, response) => Boolean(response.writeHead(500).end()) };
    expect((await initiate()).statusCode).toBe(200);
    expect((await call('GET', idp)).json().discoveryError).toMatch(/status 500/);
    world.standIn.faults = {};
    expect((await initiate()).statusCode).toBe(200);
    expect((await call('GET', idp)).json().discoveryError).toBeNull();
  });

  it('is for administrators of the organisation alone', async () => {
    const { idp } = await make();
    const citizen = await register(world.tenant);
    for (const [method, url, body] of [
      ['GET', idp, undefined],
      ['PUT', idp, settings()],
      ['DELETE', idp, undefined],
      ['POST', `${idp}/discover`, { issuerUrl: world.standIn.origin }],
      ['POST', `${idp}/test`, {}],
      ['POST', `${idp}/toggle`, { enabled: true }],
    ] as const) {
      expect((await call(method, url, body, citizen.token)).statusCode, `${method} ${url}`).toBe(403);
    }
  });

  it('the secret is sealed', async () => {
    const { idp } = await make();
    await call('PUT', idp, settings());
    const rows = await world.tenant.db.read.selectFrom('idp_configurations').selectAll().execute();
    const dump = rows.map(({ client_secret }) => client_secret?.toString('latin1')).join();
    expect(dump).not.toContain('stand-in');
  });
});
