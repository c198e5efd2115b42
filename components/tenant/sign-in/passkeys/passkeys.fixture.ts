import { liftCap } from '#kit/rate-limit/security-cap.ts';
import { readMails } from '../../people/messages/messages.fixture.ts';
import { bearer, type TestTenant } from '../../tenant.fixture.ts';
import type { SoftAuthenticator } from './authenticator.fixture.ts';

export const register = '/api/auth/public/passkey/register';
export const assertion = '/api/auth/passkey/assertion';
const ownPath = '/api/auth/public/passkey/add';
const password = 'marble orchard seldom rains';

/** The claims of an access token, not verified. */
export function claimsOf(jwt: string) {
  return JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
}

/** Requests of the routes of passkeys. @param find gives the tenant, which may start later */
export function passkeyClient(find: () => TestTenant) {
  let count = 0;
  const post = (url: string, payload: object = {}, token?: string, on = find()) =>
    on.app.inject({ method: 'POST', url, payload, ...(token && { headers: bearer(token) }) });
  const call = (method: 'GET' | 'DELETE', url: string, token: string) =>
    find().app.inject({ method, url, headers: bearer(token) });
  const login = async (email: string) => {
    await liftCap(find().db, { name: 'login-email', key: email });
    return post('/api/auth/login', { email, password });
  };
  return {
    post,
    call,
    login,
    signUp: async (key: SoftAuthenticator, body: object = { display_name: 'Ada' }, change = {}) => {
      const { transaction_id, options } = (await post(`${register}/options`, body)).json();
      return post(`${register}/verify`, {
        transaction_id,
        attestation_response: key.create(options, change),
      });
    },
    signIn: async (key: SoftAuthenticator, change = {}, extra = {}) => {
      const { transaction_id, options } = (await post(`${assertion}/options`)).json();
      return post(`${assertion}/verify`, {
        transaction_id,
        assertion_response: key.get(options, change),
        ...extra,
      });
    },
    add: async (key: SoftAuthenticator, token: string, path = ownPath) => {
      const { transaction_id, options } = (
        await post(`${path}/options`, { display_name: 'Laptop' }, token)
      ).json();
      return post(`${path}/verify`, { transaction_id, attestation_response: key.create(options) }, token);
    },
    /** A verified person with a password. */
    person: async () => {
      const email = `person-${count++}@example.org`;
      await post('/api/auth/register', { orgSubdomain: 'public', email, password, displayName: 'Ada' });
      const mail = (await readMails(find(), email))[0]?.text ?? '';
      await post('/api/auth/verify-email', { token: /#token=([\w-]{43})/.exec(mail)?.[1] });
      return { email, token: (await login(email)).json().access_token as string };
    },
  };
}
