import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateSync } from 'otplib';
import { liftCap } from '#kit/rate-limit/security-cap.ts';
import { readMails } from '../../people/messages/messages.fixture.ts';
import { bearer, startReplica, startTestTenant, type TestTenant } from '../../tenant.fixture.ts';
import { origin } from '../passkeys/authenticator.fixture.ts';
import { clientId, clientSecret, type Person, StandIn } from './stand-in.fixture.ts';

export const password = 'marble orchard seldom rains';

/** A tenant whose four social providers are one stand-in. */
export interface World {
  readonly tenant: TestTenant;
  readonly standIn: StandIn;
  readonly other: TestTenant;
  close(): Promise<void>;
}

export async function startWorld(name: string): Promise<World> {
  let nowMs = () => Date.now();
  const standIn = await new StandIn(() => nowMs()).start();
  const directory = await mkdtemp(join(tmpdir(), 'chy-fed-'));
  const file = join(directory, 'providers.json');
  await writeFile(file, JSON.stringify(providersOf(standIn.origin)), { mode: 0o600 });
  const tenant = await startTestTenant(name, {
    CHANCERY_PUBLIC_ORG_ENABLED: 'true',
    CHANCERY_BASE_URL: origin,
    CHANCERY_SOCIAL_PROVIDERS_FILE: file,
    CHANCERY_OUTBOUND_ALLOWED: standIn.origin,
    Auth__ReturnToAllowlist__Hosts: 'app.example.org',
  });
  nowMs = () => tenant.clock.nowMs();
  const other = await startReplica(tenant.files);
  const close = async () => {
    await other.db.close();
    await tenant.stop();
    await standIn.close();
    await rm(directory, { recursive: true });
  };
  return { tenant, standIn, other, close };
}

export const microsoftTenant = '1f9a4e1c-92f0-4c77-9a2e-3f0c8a7d5b11';

function providersOf(at: string) {
  const endpoints = {
    authorizationEndpoint: `${at}/authorize`,
    tokenEndpoint: `${at}/token`,
    userInfoEndpoint: `${at}/userinfo`,
    jwksUri: `${at}/jwks`,
  };
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = privateKey.export({ format: 'pem', type: 'pkcs8' });
  const known = { clientId, clientSecret };
  return [
    { name: 'google', ...known, ...endpoints, issuer: at },
    { name: 'microsoft', ...known, ...endpoints, issuer: `${at}/{tenantid}/v2.0` },
    {
      name: 'github',
      ...known,
      ...endpoints,
      userInfoEndpoint: `${at}/user`,
      emailsEndpoint: `${at}/user/emails`,
    },
    { name: 'apple', clientId, teamId: 'TEAM', keyId: 'KEY', privateKey: key, ...endpoints, issuer: at },
  ];
}

/** Requests of a browser with one jar of cookies. */
export class Browser {
  readonly tenant: TestTenant;
  cookie = '';

  constructor(tenant: TestTenant) {
    this.tenant = tenant;
  }

  async send(
    method: 'GET' | 'POST' | 'DELETE' | 'PUT',
    url: string,
    options: { payload?: object; token?: string; headers?: object } = {},
  ) {
    const { payload, token, headers } = options;
    const answer = await this.tenant.app.inject({
      method,
      url,
      ...(payload !== undefined && { payload }),
      headers: {
        ...(this.cookie !== '' && { cookie: this.cookie }),
        ...(token !== undefined && bearer(token)),
        ...headers,
      },
    });
    const set = answer.headers['set-cookie'];
    if (typeof set === 'string') this.cookie = set.split(';')[0] ?? '';
    return answer;
  }

  post(url: string, payload: object = {}, token?: string, headers: object = {}) {
    return this.send('POST', url, { payload, headers, ...(token !== undefined && { token }) });
  }

  /** Begins a sign-in by a social provider; what the provider sends back when the person agrees. */
  async visit(standIn: StandIn, provider: string, person: Person, more: object = {}) {
    const begun = await this.post('/api/auth/public/social/initiate', { provider, ...more });
    if (begun.statusCode !== 200) throw new Error(`${begun.statusCode} ${begun.body}`);
    return { provider, ...standIn.agree(begun.json().authorizationUrl, person) };
  }

  /** Signs in by a social provider as a page does. */
  async enter(standIn: StandIn, provider: string, person: Person, more: object = {}) {
    return this.post('/api/auth/public/social/callback', await this.visit(standIn, provider, person, more));
  }

  /** Follows the provider's redirect as a browser does. */
  follow(
    { code, state }: { readonly code: string; readonly state: string },
    more: Record<string, string> = {},
  ) {
    return this.send('GET', `/auth/social/callback?${new URLSearchParams({ code, state, ...more })}`);
  }
}

let registered = 0;

/** Registers a person in the Public organisation, verified, and signs them in. */
export async function register(tenant: TestTenant, isVerified = true) {
  const email = `person-${registered++}-${process.pid}@example.org`;
  const browser = new Browser(tenant);
  await browser.post('/api/auth/register', { orgSubdomain: 'public', email, password, displayName: 'Ada' });
  const mail = (await readMails(tenant, email))[0]?.text ?? '';
  if (isVerified) {
    await browser.post('/api/auth/verify-email', { token: /#token=([\w-]{43})/.exec(mail)?.[1] });
  }
  await liftCap(tenant.db, { name: 'login-email', key: email });
  const { access_token } = (await browser.post('/api/auth/login', { email, password })).json();
  return { email, token: access_token as string, browser };
}

/** The code of an authenticator app now. */
export function codeOf({ clock }: Pick<TestTenant, 'clock'>, secret: string): string {
  return generateSync({ secret, epoch: Math.floor(clock.nowMs() / 1_000) });
}

/** Adds an authenticator app. @returns its secret */
export async function addTotp(tenant: TestTenant, token: string): Promise<string> {
  const browser = new Browser(tenant);
  const { secret } = (await browser.post('/api/totp/setup', {}, token)).json();
  await browser.post('/api/totp/verify', { code: codeOf(tenant, secret) }, token);
  return secret;
}
