import { decodeJwt } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_ADMIN_ID, SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import {
  bearer,
  grant,
  startTestTenant,
  type TestTenant,
  type TokenBody,
  verifyAddress,
} from '../../tenant.fixture.ts';

const password = 'paper lantern on the river';

describe('administration of the users of an organisation', () => {
  let tenant: TestTenant;
  let root: string;
  let count = 0;
  let acme: string;
  let boss: { readonly id: string; readonly token: string };

  type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';
  const send = (method: Method, url: string, token: string, payload?: object) =>
    tenant.app.inject({ method, url, headers: bearer(token), ...(payload === undefined ? {} : { payload }) });
  const urlOf = (userId: string, organizationId = acme) =>
    `/api/organizations/${organizationId}/users/${userId}`;
  const login = (email: string, organizationSubdomain?: string) =>
    tenant.app.inject({
      method: 'POST',
      url: '/api/auth/login',
      payload: { email, password, organizationSubdomain },
    });
  const emailOf = (name: string) => `${name}@org${count}.example`;
  const add = (name: string, roles: string[], token = root, organizationId = acme) =>
    send('POST', `/api/organizations/${organizationId}/users`, token, {
      email: emailOf(name),
      displayName: name,
      password,
      roles,
    });
  const person = async (name: string, roles: string[]) => {
    const { id } = (await add(name, roles)).json();
    const tokens = (await login(emailOf(name))).json<TokenBody>();
    return { id, token: tokens.access_token, refreshToken: tokens.refresh_token };
  };
  const suspend = (userId: string, token = boss.token) => send('POST', `${urlOf(userId)}/suspend`, token);
  const reactivate = (userId: string, token = boss.token) =>
    send('POST', `${urlOf(userId)}/reactivate`, token);
  const setRole = (userId: string, payload: object, token = boss.token) =>
    send('PUT', `${urlOf(userId)}/role`, token, payload);
  const remove = (userId: string, token = boss.token) => send('DELETE', urlOf(userId), token);
  const me = async (token: string) => (await send('GET', '/api/auth/me', token)).statusCode;
  const expectDead = async (one: { readonly token: string; readonly refreshToken: string }) => {
    await expect.poll(() => me(one.token), { interval: 20 }).toBe(401);
    const payload = { refreshToken: one.refreshToken };
    const refreshed = await tenant.app.inject({ method: 'POST', url: '/api/auth/token/refresh', payload });
    expect(refreshed.statusCode).toBe(401);
  };
  const codeOf = (answer: { readonly statusCode: number; json(): { readonly code: string } }) => [
    answer.statusCode,
    answer.json().code,
  ];

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_administer');
    root = (await grant(tenant)).access_token;
  });
  afterAll(() => tenant.stop());

  beforeEach(async () => {
    count += 1;
    const made = await send('POST', '/api/organizations', root, {
      name: 'Acme',
      subdomain: `acme-${count}`,
    });
    acme = made.json().id;
    boss = await person('boss', ['Administrator']);
    // the creator of the organisation is an administrator too
    const [maker] = (await send('GET', `/api/organizations/${acme}/users`, root)).json().users;
    expect((await remove(maker.id, root)).statusCode).toBe(204);
  });

  it('a suspended user loses all tokens and can sign in again after reactivation', async () => {
    const anna = await person('anna', ['Auditor']);
    const suspended = await suspend(anna.id);
    expect([suspended.statusCode, suspended.json()]).toMatchObject([
      200,
      { id: anna.id, status: 'Suspended' },
    ]);
    await expectDead(anna);
    expect((await login(emailOf('anna'))).statusCode).toBe(401);
    expect((await suspend(anna.id)).json().status).toBe('Suspended');
    expect((await reactivate(anna.id)).json()).toMatchObject({ status: 'Active', roles: ['Auditor'] });
    expect((await login(emailOf('anna'))).statusCode).toBe(200);
    expect(await me(anna.token)).toBe(401);
    const events = await tenant.db.read
      .selectFrom('audit_events')
      .select(['event_type', 'details'])
      .where('organization_id', '=', acme)
      .where('identity_id', '=', anna.id)
      .where('event_type', '=', 'UserUpdatedInOrganization')
      .orderBy('id')
      .execute();
    expect(events.map(({ details }) => details['status'])).toEqual(['Suspended', 'Active']);
  });

  it('a suspension applies to one organisation only', async () => {
    const made = await send('POST', '/api/organizations', root, {
      name: 'Other',
      subdomain: `other-${count}`,
    });
    const anna = await person('anna', ['User']);
    await verifyAddress(tenant, emailOf('anna'));
    await add('anna', ['User'], root, made.json().id);
    await suspend(anna.id);
    const there = await login(emailOf('anna'), `other-${count}`);
    expect(decodeJwt(there.json<TokenBody>().access_token)).toMatchObject({ org_id: made.json().id });
    expect((await login(emailOf('anna'), `acme-${count}`)).statusCode).toBe(401);
  });

  it('roles are replaced, and tokens with the old roles end', async () => {
    const anna = await person('anna', ['Administrator']);
    const demoted = await setRole(anna.id, { role: 'member' });
    expect([demoted.statusCode, demoted.json().roles]).toEqual([200, ['User']]);
    await expectDead(anna);
    const tokens = (await login(emailOf('anna'))).json<TokenBody>();
    expect(decodeJwt(tokens.access_token)['roles']).toEqual(['User']);
    const both = await setRole(anna.id, { roles: ['auditor', 'Designer', 'Auditor'] });
    expect(both.json().roles).toEqual(['Auditor', 'Designer']);
    expect((await send('GET', urlOf(anna.id), boss.token)).json().roles).toEqual(['Auditor', 'Designer']);
    for (const body of [{}, { role: 'User', roles: ['User'] }, { roles: [] }, { role: 7 }]) {
      expect(codeOf(await setRole(anna.id, body)), JSON.stringify(body)).toEqual([400, 'INVALID_REQUEST']);
    }
    expect(codeOf(await setRole(anna.id, { role: 'Emperor' }))).toEqual([400, 'UNKNOWN_ROLE']);
    expect(codeOf(await setRole(anna.id, { role: 'SystemAdmin' }))).toEqual([403, 'ROLE_NOT_GRANTABLE']);
  });

  it('a removed user is not listed, and keeps the same id when added again', async () => {
    const anna = await person('anna', ['Designer']);
    const removed = await remove(anna.id);
    expect([removed.statusCode, removed.body]).toEqual([204, '']);
    await expectDead(anna);
    expect((await login(emailOf('anna'))).statusCode).toBe(401);
    for (const answer of [await send('GET', urlOf(anna.id), boss.token), await remove(anna.id)]) {
      expect(codeOf(answer)).toEqual([404, 'USER_NOT_FOUND']);
    }
    const { users } = (await send('GET', `/api/organizations/${acme}/users`, boss.token)).json();
    expect(users.map(({ id }: { id: string }) => id)).toEqual([boss.id]);
    const again = await add('anna', ['User'], boss.token);
    expect([again.statusCode, again.json()]).toMatchObject([
      201,
      { id: anna.id, roles: ['User'], lastLoginAt: null },
    ]);
    expect(codeOf(await add('anna', ['User'], boss.token))).toEqual([409, 'ALREADY_A_MEMBER']);
    const tokens = (await login(emailOf('anna'))).json<TokenBody>();
    expect(decodeJwt(tokens.access_token)).toMatchObject({ sub: anna.id, roles: ['User'] });
    expect(await me(tokens.access_token)).toBe(200);
    expect(await me(anna.token)).toBe(401);
  });

  it('the last administrator of an organisation cannot be removed', async () => {
    const last = [409, 'LAST_ADMINISTRATOR'];
    for (const token of [boss.token, root]) {
      expect(codeOf(await suspend(boss.id, token))).toEqual(last);
      expect(codeOf(await setRole(boss.id, { role: 'Auditor' }, token))).toEqual(last);
      expect(codeOf(await remove(boss.id, token))).toEqual(last);
    }
    const second = await person('second', ['Administrator']);
    await suspend(second.id);
    expect(codeOf(await remove(boss.id, root))).toEqual(last);
    await reactivate(second.id);
    expect((await remove(boss.id, root)).statusCode).toBe(204);
  });

  it('of two concurrent changes that would leave no administrator, one is refused', async () => {
    const second = await person('second', ['Administrator']);
    const answers = await Promise.all([remove(boss.id, root), remove(second.id, root)]);
    expect(answers.map(({ statusCode }) => statusCode).toSorted((a, b) => a - b)).toEqual([204, 409]);
  });

  it('the last system administrator cannot be removed', async () => {
    const url = urlOf(DEFAULT_ADMIN_ID, SYSTEM_ORGANIZATION_ID);
    const answer = await send('PUT', `${url}/role`, root, { roles: ['Administrator'] });
    expect(codeOf(answer)).toEqual([409, 'LAST_ADMINISTRATOR']);
    expect(codeOf(await send('DELETE', url, root))).toEqual([409, 'LAST_ADMINISTRATOR']);
  });

  it('a lower-ranking caller and another organisation may not change a user', async () => {
    const url = urlOf('x', SYSTEM_ORGANIZATION_ID).replace('/x', '');
    const email = `helper${count}@system.example`;
    const helper = { email, displayName: 'Helper', password, roles: ['Administrator'] };
    expect((await send('POST', url, root, helper)).statusCode).toBe(201);
    const helping = (await login(email)).json<TokenBody>().access_token;
    const admin = urlOf(DEFAULT_ADMIN_ID, SYSTEM_ORGANIZATION_ID);
    expect(codeOf(await send('POST', `${admin}/suspend`, helping))).toEqual([403, 'USER_OUTRANKS']);
    expect(codeOf(await send('DELETE', admin, helping))).toEqual([403, 'USER_OUTRANKS']);
    expect(codeOf(await send('POST', `${admin}/suspend`, boss.token))).toEqual([403, 'FOREIGN_ORGANIZATION']);
    expect(codeOf(await send('GET', admin, boss.token))).toEqual([403, 'FOREIGN_ORGANIZATION']);
    const anna = await person('anna', ['Auditor']);
    for (const answer of [
      await suspend(boss.id, anna.token),
      await setRole(anna.id, { role: 'Administrator' }, anna.token),
      await remove(boss.id, anna.token),
    ]) {
      expect(answer.statusCode).toBe(403);
    }
    expect((await send('GET', urlOf(boss.id), anna.token)).json()).toMatchObject({ id: boss.id });
    const unknownId = '00000000-0000-4000-8000-000000000000';
    expect(codeOf(await suspend(unknownId))).toEqual([404, 'USER_NOT_FOUND']);
    expect(codeOf(await send('POST', `${urlOf(unknownId, unknownId)}/suspend`, root))).toEqual([
      404,
      'ORGANIZATION_NOT_FOUND',
    ]);
  });

  it('a sign-in concurrent with a suspension leaves no session', async () => {
    const anna = await person('anna', ['User']);
    for (let round = 0; round < 5; round += 1) {
      const [entered, suspended] = await Promise.all([login(emailOf('anna')), suspend(anna.id)]);
      expect(suspended.statusCode).toBe(200);
      if (entered.statusCode === 200) {
        const tokens = entered.json<TokenBody>();
        await expectDead({ token: tokens.access_token, refreshToken: tokens.refresh_token });
      } else {
        expect(entered.statusCode).toBe(401);
      }
      await reactivate(anna.id);
    }
  });

  it('concurrent changes, sign-ins, switches and refreshes of one person complete without a deadlock', async () => {
    const anna = await person('anna', ['User']);
    const second = await send('POST', '/api/organizations', root, {
      name: 'Second',
      subdomain: `second-${count}`,
    });
    await verifyAddress(tenant, emailOf('anna'));
    await add('anna', ['User'], root, second.json().id);
    for (let round = 0; round < 6; round += 1) {
      const session = (await login(emailOf('anna'), `acme-${count}`)).json<TokenBody>();
      const switchTo = (organizationId: string) =>
        send('POST', '/api/auth/switch-org', session.access_token, { organizationId });
      const answers = await Promise.all([
        setRole(anna.id, { role: round % 2 === 0 ? 'Auditor' : 'Designer' }),
        login(emailOf('anna'), `acme-${count}`),
        switchTo(acme),
        switchTo(second.json().id),
        tenant.app.inject({
          method: 'POST',
          url: '/api/auth/token/refresh',
          payload: { refreshToken: session.refresh_token },
        }),
      ]);
      expect(answers[0]?.statusCode).toBe(200);
      expect(answers.filter(({ statusCode }) => statusCode >= 500)).toEqual([]);
    }
  });
});
