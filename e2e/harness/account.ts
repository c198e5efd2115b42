import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Api } from './api.ts';
import { codeAt } from './authenticator-app.ts';
import { linkTo, readMails } from './mails.ts';
import { until } from './wait.ts';

const session = z.object({ access_token: z.string(), refresh_token: z.string() });
const secondStep = z.object({ login_token: z.string() });
const setup = z.object({ secret: z.string(), backupCodes: z.array(z.string()) });

/** An authenticator app whose present code is used up. */
export interface App {
  readonly secret: string;
  readonly usedCode: string;
  /** The next one, which the service accepts already. */
  readonly code: string;
  readonly backupCodes: readonly string[];
}

/** What a person does with an account of the Public organisation, from outside. */
export interface Accounts {
  post(path: string, json: object, token?: string, status?: number): Promise<unknown>;
  register(email: string, password: string): Promise<void>;
  /** The token of the last link to a page in the mails to an address. */
  tokenOf(email: string, page: 'verify-email' | 'reset-password'): Promise<string>;
  /** Registers, and confirms the address. */
  create(email: string, password: string): Promise<void>;
  signIn(email: string, password: string): Promise<z.output<typeof session>>;
  /** The login token of a sign-in that wants a second factor. */
  loginToken(email: string, password: string): Promise<string>;
  addApp(accessToken: string): Promise<App>;
  /** The last code of six digits that was sent to an address or a number. */
  codeTo(recipient: string): Promise<string>;
}

/** @param dataDir of a running local mode, which writes mails and text messages to it */
export function createAccounts(api: Api, dataDir: string): Accounts {
  const post = async (path: string, json: object, token?: string, status = 200) =>
    (await api.expect(status, 'POST', path, { token, json })).body;
  const login = (email: string, password: string) => post('/api/auth/login', { email, password });
  const register = async (email: string, password: string) => {
    const applicant = { orgSubdomain: 'public', email, password, displayName: 'Ada' };
    await post('/api/auth/register', applicant, undefined, 201);
  };
  const tokenOf = async (email: string, page: string) =>
    new URL(await linkTo(dataDir, email, page)).hash.slice('#token='.length);
  return {
    post,
    register,
    tokenOf,
    create: async (email, password) => {
      await register(email, password);
      await post('/api/auth/verify-email', { token: await tokenOf(email, 'verify-email') });
    },
    signIn: async (email, password) => session.parse(await login(email, password)),
    loginToken: async (email, password) => secondStep.parse(await login(email, password)).login_token,
    addApp: async (token) => {
      const { secret, backupCodes } = setup.parse(await post('/api/totp/setup', {}, token));
      const seconds = Math.floor(Date.now() / 1000);
      const usedCode = codeAt(secret, seconds);
      await post('/api/totp/verify', { code: usedCode }, token);
      return { secret, usedCode, code: codeAt(secret, seconds + 30), backupCodes };
    },
    codeTo: (recipient) =>
      until(`a code to ${recipient}`, 15_000, async () =>
        [...readMails(dataDir, recipient), ...readTexts(dataDir, recipient)]
          .flatMap((text) => text.match(/(?<![\d+])\d{6}(?!\d)/g) ?? [])
          .at(-1),
      ),
  };
}

/** Text messages of local mode to a number. Their names give no order. */
function readTexts(dataDir: string, number: string): readonly string[] {
  const folder = join(dataDir, 'sms');
  const texts = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'));
  return texts.filter((text) => text.startsWith(`${number}\n`));
}
