import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { createOrganization, createPerson } from '../harness/governance.ts';
import { createWallet, signIn } from '../harness/journey.ts';
import { askToken, fetchSvid, mintWithSvid, refusedWithWrongSvid } from '../harness/service-token.ts';
import { installation } from '../harness/shared-system.ts';
import { verifyAccessToken } from '../harness/token.ts';
import { until } from '../harness/wait.ts';

const here = installation();

describe('identity', () => {
  test('password grant, claims, published keys', async () => {
    const tokens = await signIn(here.api, here.state);
    expect(tokens.expires_in).toBe(3600);
    const { claims } = await verifyAccessToken(here.api, tokens.access_token, here.state.installation);
    expect(claims).toMatchObject({
      token_type: 'user',
      token_use: 'access',
      tier: 'platform',
      client_id: 'first-party',
    });
    const wrong = await here.api.send('POST', '/api/service-auth/token', {
      form: { grant_type: 'password', username: here.state.adminEmail, password: 'not the password' },
    });
    expect([wrong.status, wrong.body]).toMatchObject([401, { error: 'invalid_grant' }]);
    const client = await here.api.send('POST', '/api/service-auth/token', {
      form: { grant_type: 'client_credentials', client_id: 'service-register', client_secret: 'x' },
    });
    expect([client.status, client.body]).toMatchObject([400, { error: 'unsupported_grant_type' }]);
  });

  test('internal paths do not exist at the gateway, in any spelling', async () => {
    const paths = [
      '/api/internal/service-auth/token',
      '/API/Internal/service-auth/token',
      '/api//internal/service-auth/token',
      '/api/%69nternal/service-auth/token',
      '/api%2Finternal/service-auth/token',
      '/api/x/../internal/service-auth/token',
      '/api/internal/service-auth/token/',
      '/api/internal/audit/refusals',
      '/api/internal/organizations',
      '/api/internal/organizations/by-uid/00000000-0000-4000-8000-000000000000',
      '/api/organizations/../internal/organizations',
    ];
    for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
      for (const path of paths) {
        expect((await here.api.send(method, path)).status, `${method} ${path}`).toBe(404);
      }
    }
  });

  test('a SPIFFE certificate mints its own token and no other', async () => {
    const { token } = await mintWithSvid(here.state, 'service-register');
    expect(token.split('.')).toHaveLength(3);
    expect(await refusedWithWrongSvid(here.state, 'service-wallet', 'service-register')).toBe(
      '401 invalid_client',
    );
    const { ca } = await fetchSvid(here.state, 'service-wallet');
    await expect(askToken(here.state, { ca }, 'service-wallet')).rejects.toThrow();
  });

  test('a suspended organisation is refused within a second, and admitted again after it is reopened', async () => {
    const { access_token: root } = await signIn(here.api, here.state);
    const organization = await createOrganization(here.api, root, 'pausing');
    const person = await createPerson(here.api, root, organization, { name: 'boss', role: 'Administrator' });
    const setStatus = (id: string, status: string) =>
      here.api.send('PUT', `/api/platform/organizations/${id}/status`, { token: root, json: { status } });
    const login = () =>
      here.api.send('POST', '/api/auth/login', {
        json: {
          email: person.email,
          password: person.password,
          organizationSubdomain: organization.subdomain,
        },
      });
    const uses = ['/api/auth/me', '/api/wallets', '/api/registers', '/api/admin/validation/status'];
    const { token } = person;
    const before = await Promise.all(uses.map((path) => here.api.send('GET', path, { token })));
    expect(before.map(({ status }) => status)).not.toContain(401);
    expect((await setStatus(organization.id, 'Suspended')).status).toBe(204);
    for (const path of uses) {
      await until(`${path} refuses`, 1_000, async () =>
        (await here.api.send('GET', path, { token })).status === 401 ? true : undefined,
      );
    }
    expect((await login()).status).toBe(401);
    expect((await setStatus(organization.id, 'Active')).status).toBe(204);
    expect((await login()).status).toBe(200);
    expect((await here.api.send('GET', '/api/auth/me', { token })).status).toBe(401);
    const protectedOne = await setStatus('00000000-0000-0000-0000-000000000001', 'Suspended');
    expect([protectedOne.status, protectedOne.body]).toMatchObject([409, { code: 'PLATFORM_ORG_PROTECTED' }]);
  });

  test('a person switches organisations, and every service follows', async () => {
    const { access_token: root } = await signIn(here.api, here.state);
    const home = await createOrganization(here.api, root, 'switch-home');
    const away = await createOrganization(here.api, root, 'switch-away');
    const foreign = await createOrganization(here.api, root, 'switch-foreign');
    const users = (organizationId: string) => `/api/organizations/${organizationId}/users`;
    // The seeded administrator, whose address is verified, creates all three.
    const founderOf = async (of: { readonly id: string; readonly subdomain: string }) => {
      const boss = await createPerson(here.api, root, of, { name: 'boss', role: 'Administrator' });
      const { body } = await here.api.expect(200, 'GET', users(of.id), { token: boss.token });
      const { items } = body as { items: { id: string; email: string; emailVerified: boolean }[] };
      const founder = items.find(({ email }) => email === here.state.adminEmail);
      expect(founder).toMatchObject({ emailVerified: true });
      return { path: `${users(of.id)}/${founder?.id}`, token: boss.token };
    };
    const { path, token: boss } = await founderOf(away);
    await here.api.expect(200, 'PUT', `${path}/role`, { token: boss, json: { role: 'Auditor' } });
    const left = await founderOf(foreign);
    await here.api.expect(204, 'DELETE', left.path, { token: left.token });
    const signInTo = async (organizationSubdomain: string) => {
      const password = readFileSync(here.state.adminPasswordFile, 'utf8').trim();
      const json = { email: here.state.adminEmail, password, organizationSubdomain };
      const { body } = await here.api.expect(200, 'POST', '/api/auth/login', { json });
      return (body as { access_token: string }).access_token;
    };
    const token = await signInTo(home.subdomain);
    const { body: open } = await here.api.expect(200, 'GET', '/api/auth/me/organizations', { token });
    const { items: mine } = open as { items: { organizationId: string }[] };
    expect(mine).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ organizationId: away.id, role: 'Auditor', isCurrent: false }),
        expect.objectContaining({ organizationId: home.id, role: 'Administrator', isCurrent: true }),
      ]),
    );
    expect(mine.map(({ organizationId }) => organizationId)).not.toContain(foreign.id);
    const switchTo = (organizationId: string) =>
      here.api.send('POST', '/api/auth/switch-org', { token, json: { organizationId } });
    const switched = await switchTo(away.id);
    expect(switched.status).toBe(200);
    const tokens = switched.body as { access_token: string; refresh_token: string };
    const { claims } = await verifyAccessToken(here.api, tokens.access_token, here.state.installation);
    expect(claims).toMatchObject({ org_id: away.id, roles: ['Auditor'], tier: 'platform' });
    const status = async (url: string, bearer: string) =>
      (await here.api.send('GET', url, { token: bearer })).status;
    expect(await status(users(away.id), tokens.access_token)).toBe(200);
    expect(await status(users(home.id), tokens.access_token)).toBe(403);
    expect(await status('/api/wallets', tokens.access_token)).toBe(200);
    expect(await status('/api/registers', tokens.access_token)).toBe(200);
    expect(await status(users(home.id), token)).toBe(200);
    const refused = await switchTo(foreign.id);
    expect([refused.status, refused.body]).toMatchObject([403, { code: 'NOT_A_MEMBER' }]);
    const { body: all } = await here.api.expect(200, 'GET', '/api/platform/organizations?pageSize=100', {
      token: root,
    });
    const { items } = all as { items: { id: string; userCount: number }[] };
    const countOf = (id: string) => items.find((one) => one.id === id)?.userCount;
    expect([home, away, foreign].map(({ id }) => countOf(id))).toEqual([1, 2, 1]);
    // The next sign-in without an organisation selects the one that was entered last.
    await signInTo('system');
  });

  test('auditors read the audit log, with refusals of other services', async () => {
    const { access_token: root } = await signIn(here.api, here.state);
    const organization = await createOrganization(here.api, root, 'audited');
    const boss = await createPerson(here.api, root, organization, { name: 'boss', role: 'Administrator' });
    const ben = await createPerson(here.api, root, organization, { name: 'ben', role: 'User' });
    const auditor = await createPerson(here.api, root, organization, { name: 'mia', role: 'Auditor' });
    const log = (query: string, token = auditor.token) =>
      here.api.send('GET', `/api/organizations/${organization.id}/audit${query}`, { token });
    const sign = { data: 'AAAA', algorithm: 'ED25519' };
    for (let n = 0; n < 3; n += 1) {
      const refused = await here.api.send('POST', `/api/wallets/${boss.wallet.id}/sign`, {
        token: ben.token,
        json: sign,
      });
      expect([refused.status, refused.body]).toMatchObject([403, { code: 'WALLET_ACCESS_DENIED' }]);
    }
    const events = await until('the refusals are in the audit log', 10_000, async () => {
      const { body } = await log('?eventType=PermissionDenied');
      const found = (body as { events: { details: { occurrences: number } }[] }).events;
      return found.reduce((sum, { details }) => sum + details.occurrences, 0) === 3 ? found : undefined;
    });
    expect(events[0]).toMatchObject({
      eventType: 'PermissionDenied',
      success: false,
      details: {
        source: 'service-refusal',
        service: 'service-wallet',
        action: 'wallet.sign',
        resourceType: 'wallet',
        resourceId: boss.wallet.walletAddress,
      },
    });
    const { body: logins } = await here.api.expect(
      200,
      'GET',
      `/api/organizations/${organization.id}/audit?eventType=Login&pageSize=500`,
      { token: boss.token },
    );
    expect(logins).toMatchObject({ totalCount: 3, pageSize: 200 });
    expect((await log('', ben.token)).status).toBe(403);
    const outside = await here.api.send('POST', '/api/internal/audit/refusals', { token: root, json: {} });
    expect(outside.status).toBe(404);
  });

  test('a person receives notices of changes that concern them, and no other person does', async () => {
    const { access_token: root } = await signIn(here.api, here.state);
    const organization = await createOrganization(here.api, root, 'telling');
    const anna = await createPerson(here.api, root, organization, { name: 'anna', role: 'User' });
    const ben = await createPerson(here.api, root, organization, { name: 'ben', role: 'User' });
    const unread = async () => {
      const answer = await here.api.expect(200, 'GET', '/api/me/inbox/unread-count', { token: anna.token });
      return (answer.body as { unread: number }).unread;
    };
    expect(await unread()).toBe(1);
    const { body } = await here.api.expect(200, 'GET', '/api/me/inbox', { token: anna.token });
    const { entries, total } = body as { entries: { id: string; detailHref: string }[]; total: number };
    expect(total).toBe(1);
    const [entry] = entries;
    expect(entry).toMatchObject({ category: 'Membership', iconKey: 'membership.added', readAt: null });
    await here.api.expect(200, 'GET', entry?.detailHref ?? '', { token: anna.token });
    const read = `/api/me/inbox/${entry?.id}/read`;
    expect((await here.api.send('POST', read, { token: ben.token })).status).toBe(404);
    expect((await here.api.send('POST', read, { token: anna.token })).status).toBe(204);
    expect(await unread()).toBe(0);
    const outside = await here.api.send('POST', '/api/internal/inbox', { token: root, json: {} });
    expect(outside.status).toBe(404);
  });

  test('a token is refused by every service within a second after logout', async () => {
    const { access_token: token } = await signIn(here.api, here.state);
    const uses = ['/api/auth/me', '/api/wallets', '/api/registers'];
    for (const path of uses) {
      await here.api.expect(200, 'GET', path, { token });
    }
    await here.api.expect(200, 'POST', '/api/auth/logout', { token, json: {} });
    for (const path of uses) {
      await until(`${path} refuses`, 1_000, async () =>
        (await here.api.send('GET', path, { token })).status === 401 ? true : undefined,
      );
    }
  });

  test('a refresh token works once; its reuse revokes the family', async () => {
    const tokens = await signIn(here.api, here.state);
    const refresh = (refreshToken: string) =>
      here.api.send('POST', '/api/auth/token/refresh', { json: { refreshToken } });
    const first = await refresh(tokens.refresh_token);
    expect(first.status).toBe(200);
    const successor = (first.body as { refresh_token: string }).refresh_token;
    expect((await refresh(successor)).status).toBe(200);
    expect((await refresh(tokens.refresh_token)).status).toBe(401);
    expect((await refresh(successor)).status).toBe(401);
  });

  test('no token, a broken token and a foreign token are refused with a challenge', async () => {
    for (const token of [undefined, 'x.y.z', 'eyJhbGciOiJub25lIn0.e30.']) {
      const answer = await here.api.send('GET', '/api/wallets', { token });
      expect(answer.status).toBe(401);
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer realm="platform"/);
    }
  });

  test('the aggregated API description lists the public routes and no internal one', async () => {
    const answer = await here.api.expect(200, 'GET', '/openapi.json');
    const { openapi, paths } = answer.body as { openapi: string; paths: Record<string, unknown> };
    expect(openapi).toMatch(/^3\.1/);
    for (const path of [
      '/api/service-auth/token',
      '/api/wallets',
      '/api/registers/initiate',
      '/api/v1/transactions/validate',
    ]) {
      expect(Object.keys(paths)).toContain(path);
    }
    expect(Object.keys(paths).filter((path) => path.includes('/internal/'))).toEqual([]);
    const page = await here.api.send('GET', '/docs/');
    expect(page.status).toBe(200);
  });

  test('security headers are on every answer', async () => {
    const { headers } = await here.api.send('GET', '/api/health');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
  });

  test('wallets of all three kinds sign what the interface verifies', async () => {
    for (const keyType of ['ED25519', 'NISTP256', 'RSA']) {
      const wallet = await createWallet(here.api, here.token(), keyType);
      const data = Buffer.from('a text').toString('base64');
      const signed = await here.api.expect(200, 'POST', `/api/wallets/${wallet.id}/sign`, {
        token: here.token(),
        json: { data, algorithm: wallet.algorithm },
      });
      const { signature } = signed.body as { signature: string };
      const json = { publicKey: wallet.publicKey, data, signature, algorithm: wallet.algorithm };
      const verified = await here.api.expect(200, 'POST', '/api/wallets/verify', {
        token: here.token(),
        json,
      });
      expect(verified.body).toMatchObject({ isValid: true });
    }
  });
});
