import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type GivenParts, startGivenParts } from '../fault/given-parts.ts';
import { type Accounts, createAccounts } from '../harness/account.ts';
import { createApi } from '../harness/api.ts';
import { signIn } from '../harness/journey.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';

const email = 'ada@example.org';
const password = 'marble orchard seldom rains';
const newPassword = 'seven quiet lanterns drift';
const phone = '+4915112345678';
const challengeToken = z.object({ token: z.string() });

/**
 * A person uses every way in that a browser is not needed for. What was secret in it is neither in the database nor in
 * what the processes log.
 */
describe('secrets at rest', () => {
  let dataDir = '';
  let parts: GivenParts;
  let system: LocalSystem;
  /** By what they are. */
  const secrets = new Map<string, string>();
  const codes = new Map<string, string>();

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-at-rest-'));
    parts = await startGivenParts();
    system = await startSystem({ dataDir, args: [], env: parts.env, deadlineMs: 90_000 });
    const api = createApi(system.state.gatewayUrl);
    const administrator = await signIn(api, system.state);
    keep('access token of the administrator', administrator.access_token);
    await walk(createAccounts(api, dataDir));
  }, 300_000);
  afterAll(async () => {
    await system?.stop();
    await parts?.remove();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const keep = (name: string, secret: string) => {
    secrets.set(name, secret);
    return secret;
  };

  async function walk(accounts: Accounts): Promise<void> {
    const { post } = accounts;
    keep('password', password);
    await accounts.register(email, password);
    const verification = keep('token of the verification', await accounts.tokenOf(email, 'verify-email'));
    await post('/api/auth/verify-email', { token: verification });
    const first = await accounts.signIn(email, password);
    const token = keep('access token', first.access_token);
    keep('refresh token', first.refresh_token);
    const app = await accounts.addApp(token);
    keep('secret of the app', app.secret);
    for (const [n, code] of app.backupCodes.entries()) keep(`backup code ${n}`, code);
    codes.set('code of the app', app.usedCode);
    await addChannels(accounts, token);
    await comeBack(accounts, app.backupCodes[0] ?? '');
    await prove(accounts, app.code);
  }

  async function addChannels(accounts: Accounts, token: string): Promise<void> {
    const { post } = accounts;
    await post('/api/me/2fa/email/enable', {}, token, 202);
    const mailed = await accounts.codeTo(email);
    codes.set('code by mail', mailed);
    await post('/api/me/2fa/email/verify', { code: mailed }, token, 204);
    await post('/api/me/2fa/sms/phone', { phone }, token, 202);
    const texted = await accounts.codeTo(phone);
    codes.set('code by text message', texted);
    await post('/api/me/2fa/sms/phone/verify', { code: texted }, token, 204);
    keep('telephone number', phone);
  }

  async function comeBack(accounts: Accounts, backupCode: string): Promise<void> {
    const loginToken = keep('login token', await accounts.loginToken(email, password));
    const step = { login_token: loginToken, code: backupCode, is_backup_code: true };
    await accounts.post('/api/auth/verify-2fa', step);
    // refusals are logged
    await accounts.post('/api/auth/verify-2fa', step, undefined, 401);
    keep('login token that is not used', await accounts.loginToken(email, password));
    await accounts.post('/api/auth/password/forgot', { email }, undefined, 202);
    const reset = keep('token of the reset', await accounts.tokenOf(email, 'reset-password'));
    await accounts.post('/api/auth/password/reset', { token: reset, newPassword }, undefined, 204);
    keep('new password', newPassword);
  }

  /** So that a challenge token is among the secrets. */
  async function prove(accounts: Accounts, code: string): Promise<void> {
    const loginToken = await accounts.loginToken(email, newPassword);
    const tokens = z
      .object({ access_token: z.string() })
      .parse(await accounts.post('/api/auth/verify-2fa', { login_token: loginToken, code }));
    codes.set('second code of the app', code);
    const wanted = { scopedOperation: 'ChangePassword' };
    await accounts.post('/api/auth/challenge/initiate', wanted, tokens.access_token);
    const proof = { ...wanted, method: 'Password', proof: { password: newPassword } };
    const proved = challengeToken.parse(
      await accounts.post('/api/auth/challenge/verify', proof, tokens.access_token),
    );
    keep('challenge token', proved.token);
  }

  /** Every row of every table, as text; binary columns are hexadecimal digits. */
  async function readRows(): Promise<readonly string[]> {
    const client = new pg.Client({ connectionString: parts.env.DATABASE_URL });
    await client.connect();
    try {
      const tables = await client.query<{ name: string }>(
        `select format('%I.%I', schemaname, tablename) as name from pg_tables
          where schemaname not in ('pg_catalog', 'information_schema')`,
      );
      const rows: string[] = [];
      for (const { name } of tables.rows) {
        const found = await client.query<{ row: string }>(`select one::text as row from ${name} one`);
        rows.push(...found.rows.map(({ row }) => `${name} ${row}`));
      }
      return rows;
    } finally {
      await client.end();
    }
  }

  /** What the processes said, and every file that they wrote but mails and text messages. */
  function readLogs(): readonly string[] {
    const files = globSync('**/*', { cwd: dataDir, exclude: ['mail', 'sms', 'secrets'] })
      .map((file) => join(dataDir, file))
      .filter((file) => statSync(file).isFile());
    return [system.output(), ...files.map((file) => readFileSync(file, 'latin1'))];
  }

  const spellings = (secret: string) =>
    [secret, encodeURIComponent(secret)].flatMap((text) => {
      const bytes = Buffer.from(text);
      return [text, bytes.toString('hex'), bytes.toString('base64'), bytes.toString('base64url')];
    });
  const found = (texts: readonly string[], isIn: (text: string, secret: string) => boolean) =>
    [...secrets].filter(([, secret]) => texts.some((text) => isIn(text, secret))).map(([name]) => name);
  const holds = (text: string, secret: string) => spellings(secret).some((one) => text.includes(one));

  test('no readable column holds one', async () => {
    const rows = await readRows();
    // the search would find them
    expect(rows.some((row) => row.includes(email))).toBe(true);
    expect(found([...rows, Buffer.from(password).toString('hex')], holds)).toEqual(['password']);
    expect(found(rows, holds)).toEqual([]);
    const own = rows.filter((row) => row.startsWith('tenant.'));
    const shown = [...codes].filter(([, code]) =>
      own.some((row) => new RegExp(`(?<![\\d.])${code}(?!\\d)`).test(row)),
    );
    expect(shown).toEqual([]);
  });

  test('nothing that is logged or written beside mails and text messages holds one', () => {
    const texts = readLogs();
    expect(texts.some((text) => text.includes('"path":"/api/auth/verify-2fa"'))).toBe(true);
    expect(found(texts, holds)).toEqual([]);
  });
});
