import { z } from 'zod';
import type { Api } from '../harness/api.ts';
import { codeAt } from '../harness/authenticator-app.ts';
import { linkTo } from '../harness/mails.ts';
import type { Steps } from './steps.ts';

const email = 'ada@example.org';
const password = 'marble orchard seldom rains';
const next = 'seven quiet lanterns drift';

const session = z.object({ access_token: z.string(), refresh_token: z.string() });
const secondStep = z.object({ login_token: z.string(), available_methods: z.array(z.string()) });
const setup = z.object({ secret: z.string(), backupCodes: z.array(z.string()) });

/** A person registers, adds an authenticator app, and comes back after the password is forgotten. */
export async function waysIn(steps: Steps, api: Api, dataDir: string): Promise<void> {
  const post = async (path: string, json: object, token?: string, status = 200) =>
    (await api.expect(status, 'POST', path, { token, json })).body;
  const tokenOf = async (page: string) =>
    new URL(await linkTo(dataDir, email, page)).hash.slice('#token='.length);
  const login = (secret: string) => post('/api/auth/login', { email, password: secret });

  const token = await steps.run('register, and confirm the address by the link of its mail', async () => {
    await post(
      '/api/auth/register',
      { orgSubdomain: 'public', email, password, displayName: 'Ada' },
      undefined,
      201,
    );
    await post('/api/auth/verify-email', { token: await tokenOf('verify-email') });
    return [email, session.parse(await login(password)).access_token];
  });
  const own = await steps.run('add an authenticator app, and sign in with its code', async () => {
    const { secret, backupCodes } = setup.parse(await post('/api/totp/setup', {}, token));
    const seconds = Math.floor(Date.now() / 1000);
    await post('/api/totp/verify', { code: codeAt(secret, seconds) }, token);
    const begun = secondStep.parse(await login(password));
    // The code of the set-up counts as used, so the next one is needed.
    const used = { login_token: begun.login_token, code: codeAt(secret, seconds) };
    await post('/api/auth/verify-2fa', used, undefined, 401);
    const fresh = { ...used, code: codeAt(secret, seconds + 30) };
    const tokens = session.parse(await post('/api/auth/verify-2fa', fresh));
    return [`${begun.available_methods.join()}, ${backupCodes.length} backup codes`, tokens];
  });
  await steps.run('forget the password and set a new one by mail: the session ends', async () => {
    await post('/api/auth/password/forgot', { email }, undefined, 202);
    const reset = { token: await tokenOf('reset-password'), newPassword: next };
    await post('/api/auth/password/reset', reset, undefined, 204);
    await post('/api/auth/token/refresh', { refreshToken: own.refresh_token }, undefined, 401);
    await post('/api/auth/password/reset', reset, undefined, 400);
    const { available_methods: methods } = secondStep.parse(await login(next));
    return [`the link worked once; the second factor stays (${methods.join()})`, undefined];
  });
}
