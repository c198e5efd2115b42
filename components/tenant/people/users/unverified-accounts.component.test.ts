import { randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import { sql } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import {
  bearer,
  grant,
  startTestTenant,
  type TestTenant,
  type TokenBody,
  verifyAddress,
} from '../../tenant.fixture.ts';
import { createUser } from './create-user.ts';

const first = 'granite harbour lantern nine';
const second = 'violet meadow engine forty';
const bossPassword = 'paper orchard under glass';

describe('an unverified address does not identify a person across organisations', () => {
  let tenant: TestTenant;
  let root: string;
  let count = 0;
  let attack: Organization;
  let beta: Organization;
  let email: string;

  interface Organization {
    readonly id: string;
    readonly subdomain: string;
    /** Token of its administrator. */
    readonly boss: string;
  }

  const send = (method: 'GET' | 'POST' | 'DELETE', url: string, token: string, payload?: object) =>
    tenant.app.inject({ method, url, headers: bearer(token), ...(payload === undefined ? {} : { payload }) });
  const login = (address: string, password: string, organizationSubdomain?: string) =>
    tenant.app.inject({
      method: 'POST',
      url: '/api/auth/login',
      payload: { email: address, password, organizationSubdomain },
    });
  const signIn = async (address: string, password: string, subdomain?: string): Promise<TokenBody> => {
    const answer = await login(address, password, subdomain);
    expect(answer.statusCode, answer.body).toBe(200);
    return answer.json<TokenBody>();
  };
  const usersOf = ({ id }: Pick<Organization, 'id'>) => `/api/organizations/${id}/users`;
  const add = (to: Organization, password: string, roles = ['Administrator'], address = email) =>
    send('POST', usersOf(to), to.boss, { email: address, displayName: 'Chief', password, roles });
  const found = async (name: string): Promise<Organization> => {
    const subdomain = `${name}-${count}`;
    const made = (await send('POST', '/api/organizations', root, { name, subdomain })).json();
    const address = `boss@${subdomain}.test`;
    const user = { email: address, displayName: 'Boss', password: bossPassword, roles: ['Administrator'] };
    expect((await send('POST', usersOf(made), root, user)).statusCode).toBe(201);
    const { access_token } = await signIn(address, bossPassword, subdomain);
    return { id: made.id, subdomain, boss: access_token };
  };
  const listed = async (of: Organization) =>
    (await send('GET', usersOf(of), of.boss))
      .json()
      .users.find((user: { email: string }) => user.email === email);
  const codeOf = (answer: { readonly statusCode: number; json(): { readonly code: string } }) => [
    answer.statusCode,
    answer.json().code,
  ];

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_unverified', {
      CHANCERY_LOCKOUT_STEPS: '[{"failures":2,"seconds":"until-unlocked"}]',
    });
    root = (await grant(tenant)).access_token;
  });
  afterAll(() => tenant.stop());
  beforeEach(async () => {
    count += 1;
    email = `ceo@beta-${count}.test`;
    attack = await found('attack');
    beta = await found('beta');
  });

  it('a password that another organisation chose before does not sign in to this one', async () => {
    expect((await add(attack, first)).statusCode).toBe(201);
    const before = await signIn(email, first);
    expect((await add(beta, second)).statusCode).toBe(201);

    expect((await login(email, first, beta.subdomain)).statusCode).toBe(401);
    expect((await login(email, first)).statusCode).toBe(401);
    const inside = await signIn(email, first, attack.subdomain);
    for (const session of [before, inside]) {
      const { access_token: token, refresh_token: refreshToken } = session;
      const switched = await send('POST', '/api/auth/switch-org', token, { organizationId: beta.id });
      expect(codeOf(switched)).toEqual([403, 'NOT_A_MEMBER']);
      const { items } = (await send('GET', '/api/auth/me/organizations', token)).json();
      expect(items).toMatchObject([{ organizationId: attack.id }]);
      expect(codeOf(await send('GET', usersOf(beta), token))).toEqual([403, 'FOREIGN_ORGANIZATION']);
      const organizations = (await send('GET', '/api/organizations', token)).json().organizations;
      expect(organizations).toMatchObject([{ id: attack.id }]);
      const payload = { refreshToken };
      const renewed = await tenant.app.inject({ method: 'POST', url: '/api/auth/token/refresh', payload });
      expect(renewed.statusCode).toBe(200);
      expect(decodeJwt(renewed.json<TokenBody>().access_token)).toMatchObject({ org_id: attack.id });
    }
    const right = decodeJwt((await signIn(email, second, beta.subdomain)).access_token);
    expect(right).toMatchObject({ org_id: beta.id, roles: ['Administrator'], email_verified: false });
    expect(right['platform_user_id']).not.toBe(decodeJwt(inside.access_token)['platform_user_id']);
  });

  it('a membership outside the home organisation is ignored', async () => {
    await add(attack, first);
    const { access_token: token } = await signIn(email, first);
    const { platform_user_id: account } = decodeJwt(token);
    await tenant.db.transact((tx) =>
      tx
        .insertInto('user_identities')
        .values({
          id: randomUUID(),
          organization_id: beta.id,
          platform_user_id: String(account),
          email,
          display_name: 'Chief',
          roles: ['Administrator'],
          status: 'Active',
          provisioned_via: 'AdminCreated',
          created_at: new Date(0),
          last_login_at: null,
        })
        .execute(),
    );
    expect((await login(email, first, beta.subdomain)).statusCode).toBe(401);
    expect(decodeJwt((await signIn(email, first)).access_token)).toMatchObject({ org_id: attack.id });
    const switched = await send('POST', '/api/auth/switch-org', token, { organizationId: beta.id });
    expect(codeOf(switched)).toEqual([403, 'NOT_A_MEMBER']);
    const { organizations } = (await send('GET', '/api/organizations', token)).json();
    expect(organizations).toMatchObject([{ id: attack.id }]);
    expect((await send('GET', `/api/organizations/${beta.id}`, token)).statusCode).toBe(404);
    // it does not count as an administrator of beta, so the founder cannot be removed
    const { users } = (await send('GET', usersOf(beta), root)).json();
    const others = users.filter((user: { email: string }) => user.email !== email);
    const left = [];
    for (const { id } of others) left.push((await send('DELETE', `${usersOf(beta)}/${id}`, root)).statusCode);
    expect(left).toEqual([204, 409]);
  });

  it('sign-in without a subdomain uses the only account and refuses several', async () => {
    await add(attack, first, ['User']);
    expect(decodeJwt((await signIn(email, first)).access_token)).toMatchObject({ org_id: attack.id });
    await add(beta, second, ['User']);
    const refusals = [await login(email, first), await login(email, second), await login(email, 'neither')];
    const bodies = refusals.map((answer) => {
      const { detail, code, status } = answer.json();
      return { detail, code, status };
    });
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
    expect(bodies[0]).toMatchObject({ status: 401, code: 'INVALID_CREDENTIALS' });
    // an account that was removed from its home is not counted
    const { id } = await listed(attack);
    expect((await send('DELETE', `${usersOf(attack)}/${id}`, attack.boss)).statusCode).toBe(204);
    expect(decodeJwt((await signIn(email, second)).access_token)).toMatchObject({ org_id: beta.id });
  });

  it('the verified account takes precedence', async () => {
    await add(attack, first, ['User']);
    await verifyAddress(tenant, email);
    await tenant.db.transact((tx) =>
      sql`INSERT INTO platform_users (id, email, display_name, email_verified, status, home_organization_id, created_at)
        VALUES (${randomUUID()}, ${email}, 'Other', false, 'Active', ${beta.id}, now())`.execute(tx),
    );
    expect(decodeJwt((await signIn(email, first)).access_token)).toMatchObject({ email_verified: true });
  });

  it('adding an address gives the same answer with and without an account of any kind', async () => {
    const shapeOf = (answer: { readonly statusCode: number; json(): object }) => {
      const body = Object.entries(answer.json()).filter(
        ([key]) => !['id', 'email', 'createdAt'].includes(key),
      );
      return [answer.statusCode, Object.fromEntries(body)];
    };
    const unknown = await add(beta, second, ['User'], `new@beta-${count}.test`);
    await add(attack, first);
    const unverified = await add(beta, second, ['User']);
    const shared = `shared@attack-${count}.test`;
    await add(attack, first, ['User'], shared);
    await verifyAddress(tenant, shared);
    const verified = await add(beta, second, ['User'], shared);
    expect(shapeOf(unknown)).toEqual([
      201,
      { displayName: 'Chief', emailVerified: false, roles: ['User'], status: 'Active', lastLoginAt: null },
    ]);
    expect(shapeOf(unverified)).toEqual(shapeOf(unknown));
    expect(shapeOf(verified)).toEqual(shapeOf(unknown));
    for (const address of [`newer@beta-${count}.test`, email, shared]) {
      const weak = await add(attack, 'short', ['User'], address);
      expect(codeOf(weak), address).toEqual([400, 'PASSWORD_REFUSED']);
    }
    for (const address of [email, shared]) {
      expect(codeOf(await add(beta, second, ['User'], address))).toEqual([409, 'ALREADY_A_MEMBER']);
    }
  });

  it('adding an address runs the same statements and one hash in each case', async () => {
    const shared = `shared@attack-${count}.test`;
    for (const address of [email, shared]) await add(attack, first, ['User'], address);
    await verifyAddress(tenant, shared);
    const caller = await tenant.authenticator.authenticate(beta.boss);
    const workOf = async (address: string) => {
      let hashes = 0;
      const passwords = {
        hash: async () => `hash ${++hashes}`,
        verify: async () => ({ correct: false }),
      };
      const query = vi.spyOn(pg.Client.prototype, 'query');
      const newUser = { email: address, displayName: 'Chief', password: second, roles: ['User'], origin: {} };
      await createUser({ ...tenant.deps.users, passwords }, caller, { ...newUser, organizationId: beta.id });
      const statements = query.mock.calls
        .map(([statement]) => (JSON.parse(JSON.stringify(statement)) as { readonly text: string }).text)
        .filter((text) => !text.includes('FROM revocations'));
      query.mockRestore();
      return { statements, hashes };
    };
    const unknown = await workOf(`unknown@beta-${count}.test`);
    expect(unknown.statements.length).toBeGreaterThan(5);
    expect(unknown.hashes).toBe(1);
    expect(await workOf(email)).toEqual(unknown);
    expect(await workOf(shared)).toEqual(unknown);
  });

  it('adding a verified address joins the account, which keeps its password', async () => {
    await add(attack, first, ['User']);
    await verifyAddress(tenant, email);
    await add(beta, second);
    expect((await login(email, second, beta.subdomain)).statusCode).toBe(401);
    // an earlier answer would reveal that the address has an account elsewhere
    expect(await listed(beta)).toMatchObject({ emailVerified: false });
    expect(await listed(attack)).toMatchObject({ emailVerified: true });
    const { access_token } = await signIn(email, first, beta.subdomain);
    expect(decodeJwt(access_token)).toMatchObject({ org_id: beta.id, email_verified: true });
    const seen = await listed(beta);
    expect(seen).toMatchObject({ emailVerified: true });
    expect((await send('GET', `${usersOf(beta)}/${seen.id}`, beta.boss)).json()).toEqual(seen);
    const switched = await send('POST', '/api/auth/switch-org', access_token, { organizationId: attack.id });
    expect(switched.statusCode).toBe(200);
  });

  it('an organisation lists an address once, also when it was verified after it was added', async () => {
    await add(beta, second);
    await add(attack, first);
    await tenant.db.transact((tx) =>
      tx
        .updateTable('platform_users')
        .set({ email_verified: true })
        .where('email', '=', email)
        .where('home_organization_id', '=', attack.id)
        .execute(),
    );
    expect(codeOf(await add(beta, second))).toEqual([409, 'ALREADY_A_MEMBER']);
  });

  it('a user who is removed and added again has the new password and the same id', async () => {
    const { id } = (await add(beta, first)).json();
    await send('DELETE', `${usersOf(beta)}/${id}`, beta.boss);
    expect((await add(beta, second)).json()).toMatchObject({ id });
    expect((await login(email, first, beta.subdomain)).statusCode).toBe(401);
    expect(decodeJwt((await signIn(email, second)).access_token)).toMatchObject({ sub: id });
    expect(codeOf(await add(beta, first))).toEqual([409, 'ALREADY_A_MEMBER']);
    expect((await login(email, second)).statusCode).toBe(200);
  });

  it('parallel additions create one account per organisation', async () => {
    const answers = await Promise.all(
      [attack, beta, attack, beta, attack, beta].map((one) => add(one, first)),
    );
    const statuses = answers.map(({ statusCode }) => statusCode).toSorted((a, b) => a - b);
    expect(statuses).toEqual([201, 201, 409, 409, 409, 409]);
    const rows = await tenant.db.read
      .selectFrom('platform_users')
      .select('home_organization_id')
      .where('email', '=', email)
      .execute();
    expect(rows.map((row) => row.home_organization_id).toSorted()).toEqual([attack.id, beta.id].toSorted());
  });

  it('an administrator cannot unlock an account that the organisation has only added', async () => {
    await add(beta, first, ['User']);
    await verifyAddress(tenant, email);
    const { id } = (await add(attack, second, ['User'])).json();
    const enter = async (password: string) => (await login(email, password, beta.subdomain)).statusCode;
    const unlock = (of: Organization, userId: string) =>
      send('POST', `${usersOf(of)}/${userId}/unlock`, of.boss);
    expect([await enter('wrong'), await enter('wrong'), await enter(first)]).toEqual([401, 401, 401]);
    const answer = await unlock(attack, id);
    expect([answer.statusCode, answer.json()]).toEqual([200, { success: true }]);
    expect(await enter(first)).toBe(401);
    const event = await tenant.db.read
      .selectFrom('audit_events')
      .select('details')
      .where('organization_id', '=', attack.id)
      .where('event_type', '=', 'AccountUnlockedByAdmin')
      .executeTakeFirstOrThrow();
    expect(event.details).toMatchObject({ failures: 0 });
    const own = (await listed(beta)).id;
    expect((await unlock(attack, own)).statusCode).toBe(404);
    expect((await unlock(beta, own)).statusCode).toBe(200);
    expect(await enter(first)).toBe(200);
  });

  it('a system administrator with an unverified address creates organisations without becoming a member', async () => {
    const address = `helper-${count}@system.test`;
    const user = { email: address, displayName: 'Helper', password: first, roles: ['SystemAdmin'] };
    expect((await send('POST', usersOf({ id: SYSTEM_ORGANIZATION_ID }), root, user)).statusCode).toBe(201);
    const { access_token } = await signIn(address, first);
    const body = { name: 'Made from outside', subdomain: `outside-${count}` };
    const made = await send('POST', '/api/organizations', access_token, body);
    expect(made.statusCode).toBe(201);
    const users = await send('GET', usersOf(made.json()), access_token);
    expect([users.statusCode, users.json().totalCount]).toEqual([200, 0]);
  });
});
