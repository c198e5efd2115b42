import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Provider from 'oidc-provider';
import { generateSync } from 'otplib';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createApi } from '../harness/api.ts';
import { linkTo } from '../harness/mails.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';

const client = { client_id: 'chancery', client_secret: 'a secret of the provider' };

/** A provider with a page of its own, where the person says who they are and agrees. */
class Company {
  readonly server: Server = createServer();
  issuer = '';
  people: Record<string, Record<string, unknown>> = {};
  #provider: Provider | undefined;

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.issuer = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  serve(redirectUris: string[]): void {
    const provider = new Provider(this.issuer, {
      clients: [{ ...client, redirect_uris: redirectUris, grant_types: ['authorization_code'] }],
      claims: { email: ['email', 'email_verified'], profile: ['name'] },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_, { uid }) => `/interaction/${uid}` },
      findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub, ...this.people[sub] }) }),
    });
    this.#provider = provider;
    const callback = provider.callback();
    this.server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const url = new URL(request.url ?? '/', this.issuer);
      if (!url.pathname.startsWith('/interaction/')) void callback(request, response);
      else if (url.searchParams.has('sub'))
        void this.#agree(request, response, url.searchParams.get('sub') ?? '');
      else {
        const form = '<form><label>Who? <input name="sub" autofocus></label><button>Agree</button></form>';
        response.writeHead(200, { 'content-type': 'text/html' }).end(form);
      }
    });
  }

  async #agree(request: IncomingMessage, response: ServerResponse, accountId: string): Promise<void> {
    const provider = this.#provider as Provider;
    const grant = new provider.Grant({ accountId, clientId: client.client_id });
    grant.addOIDCScope('openid email profile');
    const result = { login: { accountId }, consent: { grantId: await grant.save() } };
    await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
  }
}

describe('a person with an identity elsewhere, in a browser', () => {
  let dataDir = '';
  let system: LocalSystem;
  let browser: Browser;
  let page: Page;
  let base = '';
  const company = new Company();

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-providers-'));
    await company.listen();
    const at = company.issuer;
    const google = {
      name: 'google',
      clientId: client.client_id,
      clientSecret: client.client_secret,
      issuer: at,
      authorizationEndpoint: `${at}/auth`,
      tokenEndpoint: `${at}/token`,
      userInfoEndpoint: `${at}/me`,
      jwksUri: `${at}/jwks`,
    };
    const file = join(dataDir, 'providers.json');
    writeFileSync(file, JSON.stringify([google]), { mode: 0o600 });
    const env = { CHANCERY_SOCIAL_PROVIDERS_FILE: file, CHANCERY_OUTBOUND_ALLOWED: at };
    system = await startSystem({ dataDir: join(dataDir, 'state'), args: [], env, deadlineMs: 90_000 });
    base = system.state.gatewayUrl.replace('127.0.0.1', 'localhost');
    company.serve([`${base}/auth/social/callback`, `${base}/api/auth/callback/corp`]);
    const api = createApi(system.state.gatewayUrl);
    const { adminEmail: email, adminPasswordFile } = system.state;
    const password = readFileSync(adminPasswordFile, 'utf8').trim();
    const signedIn = await api.expect(200, 'POST', '/api/auth/login', { json: { email, password } });
    const token = (signedIn.body as { access_token: string }).access_token;
    const made = await api.expect(201, 'POST', '/api/organizations', {
      token,
      json: { name: 'Corp', subdomain: 'corp' },
    });
    const idp = `/api/organizations/${(made.body as { id: string }).id}/idp`;
    const settings = {
      providerPreset: 'GenericOidc',
      issuerUrl: at,
      clientId: client.client_id,
      clientSecret: client.client_secret,
    };
    await api.expect(200, 'PUT', idp, { token, json: settings });
    await api.expect(200, 'POST', `${idp}/toggle`, { token, json: { enabled: true } });
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await system?.stop();
    company.server.closeAllConnections();
    company.server.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  beforeEach(async () => {
    page = await (await browser.newContext()).newPage();
  });

  const says = (text: string) => page.locator('#status', { hasText: text }).waitFor();
  const agreeAs = async (sub: string) => {
    await page.fill('input[name=sub]', sub);
    await page.click('button');
  };
  const isSignedIn = () => page.waitForURL(`${base}/app/`).then(() => page.locator('#account').waitFor());

  test('signs in through the organisation, whose provider tells everything', async () => {
    company.people = { grace: { email: 'grace@corp.example', email_verified: true, name: 'Grace Hopper' } };
    await page.goto(`${base}/auth/login`);
    await page.click('#organization-sign-in');
    await says('Enter the subdomain');
    await page.fill('#organization', 'corp');
    await page.click('#organization-sign-in');
    await agreeAs('grace');
    await isSignedIn();
    // no token stays in the address
    expect(page.url()).toBe(`${base}/app/`);
    await page.locator('#who', { hasText: 'grace@corp.example' }).waitFor();
  });

  test('completes the profile where the provider tells too little', async () => {
    company.people = { quiet: {} };
    await page.goto(`${base}/auth/login?organization=corp`);
    await page.click('#organization-sign-in');
    await agreeAs('quiet');
    await says('tells too little');
    await page.fill('#profile-name', 'Quiet Person');
    await page.fill('#profile-email', 'quiet@corp.example');
    await page.press('#profile-email', 'Enter');
    await page.locator('#who', { hasText: 'quiet@corp.example' }).waitFor();
  });

  test('signs up by a social provider, sees the connection, and is told of a refusal', async () => {
    company.people = {
      ada: { email: 'ada@example.net', email_verified: true, name: 'Ada' },
      eve: { email: 'eve@example.net', email_verified: false, name: 'Eve' },
    };
    await page.goto(`${base}/auth/login`);
    await page.click('#providers button');
    await agreeAs('ada');
    await isSignedIn();
    await page.locator('#methods li', { hasText: 'google' }).waitFor();

    page = await (await browser.newContext()).newPage();
    await page.goto(`${base}/auth/login`);
    await page.click('#providers button');
    await agreeAs('eve');
    await page.waitForURL(`${base}/auth/login**`);
    await says('has not verified your e-mail address');
  });

  test('connects a social identity with the account of its address by a code, and not by the password', async () => {
    company.people = { lin: { email: 'lin@example.net', email_verified: true, name: 'Lin' } };
    const [email, password] = ['lin@example.net', 'marble orchard seldom rains'];
    const api = createApi(system.state.gatewayUrl);
    const registered = { orgSubdomain: 'public', email, password, displayName: 'Lin' };
    await api.expect(201, 'POST', '/api/auth/register', { json: registered });
    const link = await linkTo(join(dataDir, 'state'), email, 'verify-email');
    const token = new URLSearchParams(new URL(link).hash.slice(1)).get('token');
    await api.expect(200, 'POST', '/api/auth/verify-email', { json: { token } });
    const signedIn = await api.expect(200, 'POST', '/api/auth/login', { json: { email, password } });
    const bearer = (signedIn.body as { access_token: string }).access_token;
    const setUp = await api.expect(200, 'POST', '/api/totp/setup', { token: bearer, json: {} });
    const { secret, backupCodes } = setUp.body as { secret: string; backupCodes: string[] };
    await api.expect(200, 'POST', '/api/totp/verify', {
      token: bearer,
      json: { code: generateSync({ secret }) },
    });

    await page.goto(`${base}/auth/login`);
    await page.click('#providers button');
    await agreeAs('lin');
    await page.click('#link-start');
    await page.locator('#proof-label', { hasText: 'authenticator app' }).waitFor();
    // the code of the set-up was used: the next time step has another one
    expect(backupCodes).toHaveLength(10);
    const next = generateSync({ secret, epoch: Math.floor(Date.now() / 1_000) + 30 });
    await page.fill('#proof-code', next);
    await page.press('#proof-code', 'Enter');
    await says('connected');
    await page.locator('#methods li', { hasText: 'google' }).waitFor();
  });
});
