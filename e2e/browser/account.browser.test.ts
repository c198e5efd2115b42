import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateSync } from 'otplib';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { linkTo } from '../harness/mails.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { until } from '../harness/wait.ts';

const password = 'marble orchard seldom rains';
const next = 'seven quiet lanterns drift';

/** Pages of sign-in and account in Chromium, with the authenticator that its DevTools protocol offers. */
describe('a person in a browser', () => {
  let dataDir = '';
  let system: LocalSystem;
  let browser: Browser;
  let page: Page;
  let base = '';
  const complaints: string[] = [];

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-browser-'));
    system = await startSystem({ dataDir, args: [], deadlineMs: 90_000 });
    // Passkeys want a domain, and an address is none.
    base = system.state.gatewayUrl.replace('127.0.0.1', 'localhost');
    browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await system?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  beforeEach(async () => {
    page = await browser.newPage();
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('request', (request) => {
      if (!request.url().startsWith(base)) complaints.push(`a request to ${request.url()}`);
    });
    const devTools = await page.context().newCDPSession(page);
    await devTools.send('WebAuthn.enable');
    await devTools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
  });

  const says = (text: string) => page.locator('#status', { hasText: text }).waitFor();
  const isSignedIn = () => page.waitForURL('**/app/').then(() => page.locator('#account').waitFor());
  const linkIn = (address: string, target: string) => linkTo(dataDir, address, target);
  const register = async (address: string) => {
    await page.goto(`${base}/auth/login`);
    await page.click('#to-register');
    await page.fill('#register-name', 'Ada');
    await page.fill('#register-email', address);
    await page.fill('#register-password', password);
    await page.press('#register-password', 'Enter');
    await says('Open the mail');
    await page.goto(await linkIn(address, 'verify-email'));
    await page.click('#confirm');
    await says('confirmed');
  };
  const signIn = async (address: string, secret = password) => {
    await page.goto(`${base}/auth/login`);
    await page.fill('#email', address);
    await page.fill('#password', secret);
    await page.press('#password', 'Enter');
  };

  test('registers, verifies, adds an app and a passkey, and signs in with each', async () => {
    await register('ada@example.org');
    // The token is neither in the address nor in the history.
    expect(page.url()).toBe(`${base}/auth/verify-email`);
    await signIn('ada@example.org');
    await isSignedIn();
    await page.click('#totp-start');
    await page.locator('#totp-setup').waitFor();
    expect(await page.locator('#totp-codes li').count()).toBe(10);
    expect(await page.locator('#totp-picture svg').getAttribute('aria-label')).toContain('QR');
    const secret = (await page.locator('#totp-secret').textContent()) ?? '';
    await page.fill('#totp-code', generateSync({ secret }));
    await page.press('#totp-code', 'Enter');
    await page.locator('#totp-state', { hasText: 'On since' }).waitFor();
    await page.click('#add-passkey');
    await page.locator('#methods strong', { hasText: 'Passkey' }).waitFor();

    await page.click('#sign-out');
    await page.waitForURL('**/auth/login');
    await page.click('#passkey');
    await isSignedIn();

    await page.click('#sign-out');
    await page.waitForURL('**/auth/login');
    await signIn('ada@example.org');
    await page.selectOption('#method', 'totp');
    await page.fill('#code', generateSync({ secret, epoch: Math.floor(Date.now() / 1000) + 30 }));
    await page.press('#code', 'Enter');
    await isSignedIn();
    await page.click('#totp-end');
    await page.locator('#totp-state', { hasText: 'Off.' }).waitFor();
    await page.getByRole('button', { name: /^Remove Passkey/ }).click();
    await page.locator('#methods strong', { hasText: 'Passkey' }).waitFor({ state: 'detached' });
  }, 120_000);

  test('forgets the password, comes back, and the other session has ended', async () => {
    await register('ben@example.org');
    await signIn('ben@example.org');
    await isSignedIn();
    const other = await browser.newPage();
    await other.goto(`${base}/auth/login`);
    await other.click('#forgot');
    await other.fill('#forgot-email', 'ben@example.org');
    await other.press('#forgot-email', 'Enter');
    await other.locator('#status', { hasText: 'on its way' }).waitFor();
    await other.goto(await linkIn('ben@example.org', 'reset-password'));
    await other.fill('#password', next);
    await other.fill('#again', next);
    await other.press('#again', 'Enter');
    await other.locator('#status', { hasText: 'password is set' }).waitFor();
    await until('the session ends', 5_000, async () => {
      await page.reload();
      await page.waitForTimeout(300);
      return page.url().includes('/auth/login') ? true : undefined;
    });
    await signIn('ben@example.org', next);
    await isSignedIn();
  }, 120_000);

  test('a wrong password and a weak new one say so', async () => {
    await register('cat@example.org');
    await signIn('cat@example.org', 'not the password');
    await says('wrong');
    await signIn('cat@example.org');
    await isSignedIn();
    await page.fill('#new-password', 'short');
    await page.press('#new-password', 'Enter');
    await says('too short');
    await page.fill('#new-password', next);
    await page.press('#new-password', 'Enter');
    await says('The password is set');
  }, 120_000);

  test('the pages threw nothing and asked no other origin for anything', () => {
    expect(complaints).toEqual([]);
  });
});
