import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freePorts } from '../../components/standalone/state/ports.ts';
import { type Api, createApi } from '../harness/api.ts';
import { type Keycloak, startKeycloak } from '../harness/keycloak.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';

/** Folder of an unpacked Keycloak; without it nothing here runs. */
const home = process.env['CHANCERY_TEST_KEYCLOAK'];
const client = { clientId: 'chancery', secret: 'a secret of the realm' };
const password = 'lantern';

const user = (username: string, more: object = {}) => ({
  username,
  enabled: true,
  emailVerified: true,
  credentials: [{ type: 'password', value: password, temporary: false }],
  ...more,
});

function realmOf(redirectUri: string) {
  return {
    realm: 'corp',
    enabled: true,
    sslRequired: 'none',
    clients: [
      {
        ...client,
        protocol: 'openid-connect',
        publicClient: false,
        standardFlowEnabled: true,
        serviceAccountsEnabled: true,
        redirectUris: [redirectUri],
        attributes: { 'pkce.code.challenge.method': 'S256' },
      },
    ],
    users: [
      user('grace', { email: 'grace@corp.example', firstName: 'Grace', lastName: 'Hopper' }),
      user('ada', { email: 'admin@chancery.local', firstName: 'Ada', lastName: 'Lovelace' }),
    ],
  };
}

describe.skipIf(home === undefined)('an organisation whose identity provider is Keycloak', () => {
  let dataDir = '';
  let keycloak: Keycloak | undefined;
  let system: LocalSystem;
  let browser: Browser;
  let page: Page;
  let base = '';
  let issuer = '';
  let api: Api;
  let token = '';
  let idp = '';

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-keycloak-'));
    const [port = 0] = await freePorts(1);
    issuer = `http://127.0.0.1:${port}/realms/corp`;
    const env = { CHANCERY_OUTBOUND_ALLOWED: `http://127.0.0.1:${port}` };
    system = await startSystem({ dataDir: join(dataDir, 'state'), args: [], env, deadlineMs: 90_000 });
    base = system.state.gatewayUrl.replace('127.0.0.1', 'localhost');
    const realm = realmOf(`${base}/api/auth/callback/corp`);
    keycloak = await startKeycloak({ home: home ?? '', realm, port });
    api = createApi(system.state.gatewayUrl);
    const { adminEmail: email, adminPasswordFile } = system.state;
    const secret = readFileSync(adminPasswordFile, 'utf8').trim();
    const signedIn = await api.expect(200, 'POST', '/api/auth/login', { json: { email, password: secret } });
    token = (signedIn.body as { access_token: string }).access_token;
    const json = { name: 'Corp', subdomain: 'corp' };
    const made = await api.expect(201, 'POST', '/api/organizations', { token, json });
    idp = `/api/organizations/${(made.body as { id: string }).id}/idp`;
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  }, 300_000);
  afterAll(async () => {
    await browser?.close();
    await system?.stop();
    keycloak?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  beforeEach(async () => {
    page = await (await browser.newContext()).newPage();
  });

  const signInAs = async (username: string) => {
    await page.goto(`${base}/auth/login?organization=corp`);
    await page.click('#organization-sign-in');
    await page.fill('#username', username);
    await page.fill('#password', password);
    await page.press('#password', 'Enter');
  };

  test('is discovered, tested and switched on; an issuer inside the network is not asked', async () => {
    const discovered = await api.expect(200, 'POST', `${idp}/discover`, {
      token,
      json: { issuerUrl: issuer },
    });
    expect(discovered.body).toMatchObject({
      issuer,
      tokenEndpoint: `${issuer}/protocol/openid-connect/token`,
    });
    const metadata = { issuerUrl: 'http://169.254.169.254/latest/meta-data' };
    const refused = await api.expect(400, 'POST', `${idp}/discover`, { token, json: metadata });
    expect(refused.body).toMatchObject({
      code: 'DISCOVERY_FAILED',
      errors: { issuerUrl: [expect.any(String)] },
    });
    const settings = {
      providerPreset: 'GenericOidc',
      issuerUrl: issuer,
      clientId: client.clientId,
      clientSecret: 'wrong',
      displayName: 'Corp',
    };
    await api.expect(200, 'PUT', idp, { token, json: settings });
    const failed = await api.expect(200, 'POST', `${idp}/test`, { token, json: {} });
    expect(failed.body).toMatchObject({ success: false, method: 'client_credentials' });
    await api.expect(200, 'PUT', idp, { token, json: { ...settings, clientSecret: client.secret } });
    const tested = await api.expect(200, 'POST', `${idp}/test`, { token, json: {} });
    expect(tested.body).toMatchObject({ success: true, method: 'client_credentials' });
    const on = await api.expect(200, 'POST', `${idp}/toggle`, { token, json: { enabled: true } });
    expect(on.body).toMatchObject({ isEnabled: true, hasClientSecret: true });
  });

  test('signs a colleague in by its own page, and again without it', async () => {
    await signInAs('grace');
    await page.waitForURL(`${base}/app/`);
    await page.locator('#who', { hasText: 'grace@corp.example' }).waitFor();
    await page.click('#sign-out');
    await page.waitForURL('**/auth/login**');
    await page.goto(`${base}/auth/login?organization=corp`);
    await page.click('#organization-sign-in');
    await page.waitForURL(`${base}/app/`);
  });

  test('an answer that was used is refused, and so is one in another browser', async () => {
    const begun = await api.expect(200, 'POST', '/api/auth/oidc/initiate', {
      json: { orgSubdomain: 'corp' },
    });
    const { authorizationUrl } = begun.body as { authorizationUrl: string };
    const answered = page.waitForResponse((response) => response.url().includes('/api/auth/callback/corp'));
    await page.goto(authorizationUrl);
    await page.fill('#username', 'grace');
    await page.fill('#password', password);
    await page.press('#password', 'Enter');
    const answer = await answered;
    // this browser did not begin it
    expect([answer.status(), await answer.json()]).toMatchObject([400, { code: 'INVALID_STATE' }]);

    const own = page.waitForRequest((request) => request.url().includes('/api/auth/callback/corp'));
    await page.goto(`${base}/auth/login?organization=corp`);
    await page.click('#organization-sign-in');
    const used = (await own).url();
    await page.waitForURL(`${base}/app/`);
    const again = await page.goto(used);
    expect([again?.status(), await again?.json()]).toMatchObject([400, { code: 'INVALID_STATE' }]);
  });

  test('an address of an administrator makes no colleague an administrator', async () => {
    await signInAs('ada');
    await page.locator('#link').waitFor();
    await page.locator('#link', { hasText: 'An account with the same address exists' }).waitFor();
    expect(await page.evaluate(() => sessionStorage.getItem('chancery.session'))).toBeNull();
  });
});
