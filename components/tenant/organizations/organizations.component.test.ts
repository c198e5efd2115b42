import { createHash } from 'node:crypto';
import { decodeJwt } from 'jose';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PUBLIC_ORGANIZATION_ID, SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import {
  bearer,
  grant,
  startTestTenant,
  type TestTenant,
  type TokenBody,
  verifyAddress,
} from '../tenant.fixture.ts';

const password = 'copper violin under snow';

describe('organisations and users', () => {
  let tenant: TestTenant;
  let admin: string;
  let acme: string;
  let other: string;
  let acmeAdmin: string;

  const get = (url: string, token?: string) =>
    tenant.app.inject({ url, ...(token === undefined ? {} : { headers: bearer(token) }) });
  const post = (
    url: string,
    token: string | undefined,
    payload: object,
    headers: Record<string, string> = {},
  ) =>
    tenant.app.inject({
      method: 'POST',
      url,
      payload,
      headers: { ...headers, ...(token === undefined ? {} : bearer(token)) },
    });
  const create = (name: string, subdomain: string, token = admin) =>
    post('/api/organizations', token, { name, subdomain, branding: { primaryColor: '#112233' } });
  const addUser = (organizationId: string, user: object, token = admin) =>
    post(`/api/organizations/${organizationId}/users`, token, { displayName: 'A User', password, ...user });
  const signIn = async (email: string, organizationSubdomain: string): Promise<TokenBody> => {
    const payload = { email, password, organizationSubdomain };
    return (await tenant.app.inject({ method: 'POST', url: '/api/auth/login', payload })).json();
  };

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_orgs', { CHANCERY_PUBLIC_ORG_ENABLED: 'true' });
    admin = (await grant(tenant)).access_token;
    acme = (await create('Acme Works', 'acme')).json().id;
    other = (await create('Other', 'other')).json().id;
    await addUser(acme, { email: 'boss@acme.example', roles: ['administrator'] });
    acmeAdmin = (await signIn('boss@acme.example', 'acme')).access_token;
  });
  afterAll(() => tenant.stop());

  it('creates, refuses a taken and a reserved subdomain, answers anonymous look-ups by subdomain', async () => {
    const created = await create('Third', 'third');
    expect(created.statusCode).toBe(201);
    expect(created.headers['location']).toBe(`/api/organizations/${created.json().id}`);
    expect(created.json()).toMatchObject({
      name: 'Third',
      subdomain: 'third',
      status: 'Active',
      branding: { primaryColor: '#112233' },
    });
    expect(created.json().createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const taken = await create('Third again', 'third');
    expect([taken.statusCode, taken.json().code]).toEqual([409, 'SUBDOMAIN_CONFLICT']);
    const reserved = await create('Admin', 'admin');
    expect([reserved.statusCode, reserved.json().code]).toEqual([400, 'SUBDOMAIN_RESERVED']);
    expect((await get('/api/organizations/by-subdomain/third')).json()).toEqual(created.json());
    expect((await get('/api/organizations/by-subdomain/nowhere')).statusCode).toBe(404);
    expect((await get('/api/organizations/by-subdomain/a%00')).statusCode).toBe(404);
  });

  it.each([
    [{ name: 'ab', subdomain: 'fine' }, 'name'],
    [{ name: 'Fine', subdomain: '-bad' }, 'subdomain'],
    [{ name: 'Fine', subdomain: 'x' }, 'subdomain'],
    [{ name: 'Fine' }, 'subdomain'],
    [{ name: 'Fine', subdomain: 'fine', branding: { primaryColor: 'red' } }, 'branding.primaryColor'],
    [{ name: 7, subdomain: 'fine' }, 'name'],
    [{ name: 'Fine\u0000', subdomain: 'fine' }, 'name'],
    [
      { name: 'Fine', subdomain: 'fine', branding: { companyTagline: 'a\u0000b' } },
      'branding.companyTagline',
    ],
  ])('refuses %j by field', async (body, field) => {
    const answer = await post('/api/organizations', admin, body);
    expect(answer.statusCode).toBe(400);
    expect(answer.json().code).toBe('INVALID_REQUEST');
    expect(answer.json().errors).toHaveProperty([field]);
  });

  it('of two concurrent creations of one subdomain one succeeds', async () => {
    const answers = await Promise.all([create('Race one', 'race'), create('Race two', 'race')]);
    expect(answers.map((answer) => answer.statusCode).sort()).toEqual([201, 409]);
  });

  it('lists all for the system administrator and the own ones for others; foreign organisations are not found', async () => {
    const all = (await get('/api/organizations', admin)).json().organizations;
    expect(all.map((one: { id: string }) => one.id)).toEqual(
      expect.arrayContaining([SYSTEM_ORGANIZATION_ID, PUBLIC_ORGANIZATION_ID, acme, other]),
    );
    const own = (await get('/api/organizations', acmeAdmin)).json().organizations;
    expect(own.map((one: { id: string }) => one.id)).toEqual([acme]);
    expect((await get(`/api/organizations/${acme}`, acmeAdmin)).statusCode).toBe(200);
    expect((await get(`/api/organizations/${other}`, acmeAdmin)).statusCode).toBe(404);
    expect((await get(`/api/organizations/${other}`)).statusCode).toBe(401);
    expect((await get('/api/organizations/not-a-guid', admin)).statusCode).toBe(404);
  });

  it('adds users with each role, who then sign in with it', async () => {
    for (const role of ['Administrator', 'Designer', 'Auditor', 'User']) {
      const email = `${role.toLowerCase()}@acme.example`;
      const added = await addUser(acme, { email, roles: [role] }, acmeAdmin);
      expect(added.statusCode).toBe(201);
      expect(added.json()).toMatchObject({ email, roles: [role], status: 'Active', lastLoginAt: null });
      expect(decodeJwt((await signIn(email, 'acme')).access_token)).toMatchObject({
        sub: added.json().id,
        org_id: acme,
        roles: [role],
        email_verified: false,
      });
    }
    const plain = await addUser(acme, { email: 'plain@acme.example' }, acmeAdmin);
    expect(plain.json().roles).toEqual(['User']);
  });

  it('members of the Public organisation are consumers', async () => {
    await addUser(PUBLIC_ORGANIZATION_ID, { email: 'citizen@example.org', roles: ['User'] });
    const tokens = await signIn('citizen@example.org', 'public');
    expect(decodeJwt(tokens.access_token)).toMatchObject({ tier: 'consumer' });
    const payload = { email: 'citizen@example.org', password, tier: 'platform' };
    const refused = await tenant.app.inject({ method: 'POST', url: '/api/auth/login', payload });
    expect([refused.statusCode, refused.json().code]).toEqual([403, 'TIER_NOT_ENTITLED']);
  });

  it.each([
    [{ email: 'x@acme.example', roles: ['Emperor'] }, 400, 'UNKNOWN_ROLE'],
    [{ email: 'x@acme.example', roles: ['SystemAdmin'] }, 403, 'ROLE_NOT_GRANTABLE'],
    [{ email: 'not an address' }, 400, 'INVALID_REQUEST'],
    [{ email: 'boss@acme.example' }, 409, 'ALREADY_A_MEMBER'],
    [{ email: 'x\u0000@acme.example' }, 400, 'INVALID_REQUEST'],
    [{ email: 'x@acme.example', displayName: 'a\u0000b' }, 400, 'INVALID_REQUEST'],
    [{ email: 'x@acme.example', password: 'short' }, 400, 'PASSWORD_REFUSED'],
    [{ email: 'x@acme.example', password: 'Acme-Works-2026' }, 400, 'PASSWORD_REFUSED'],
  ])('refuses user %j with %i %s', async (user, status, code) => {
    const answer = await addUser(acme, user, acmeAdmin);
    expect([answer.statusCode, answer.json().code]).toEqual([status, code]);
  });

  it('names the violations of the password policy', async () => {
    const answer = await addUser(acme, { email: 'x@acme.example', password: 'password123' }, acmeAdmin);
    expect(answer.json().errors).toEqual({ password: ['too_short', 'breached'] });
  });

  it('a person with a verified address keeps the password in the next organisation', async () => {
    await verifyAddress(tenant, 'designer@acme.example');
    const user = {
      email: 'designer@acme.example',
      password: 'another phrase of some length',
      roles: ['User'],
    };
    expect((await addUser(other, user)).statusCode).toBe(201);
    expect(decodeJwt((await signIn('designer@acme.example', 'other')).access_token)).toMatchObject({
      org_id: other,
    });
  });

  it('an administrator manages and reads members of the own organisation only', async () => {
    expect((await addUser(other, { email: 'spy@acme.example' }, acmeAdmin)).statusCode).toBe(403);
    expect((await get(`/api/organizations/${other}/users`, acmeAdmin)).statusCode).toBe(403);
    const auditor = (await signIn('auditor@acme.example', 'acme')).access_token;
    expect((await addUser(acme, { email: 'spy@acme.example' }, auditor)).statusCode).toBe(403);
    expect((await get(`/api/organizations/${acme}/users`, auditor)).statusCode).toBe(200);
    const user = (await signIn('user@acme.example', 'acme')).access_token;
    expect((await get(`/api/organizations/${acme}/users`, user)).statusCode).toBe(403);
    const list = await get(`/api/organizations/${acme}/users?pageSize=2&page=2`, acmeAdmin);
    expect(list.json()).toMatchObject({ page: 2, pageSize: 2 });
    expect(list.json().users).toHaveLength(2);
    expect(list.json().items).toEqual(list.json().users);
    expect(list.json().totalCount).toBeGreaterThan(5);
    expect((await get(`/api/organizations/${acme}/users?page=x`, acmeAdmin)).statusCode).toBe(400);
  });

  it('a user needs a verified address and has a quota to create organisations', async () => {
    const refused = await create('Mine', 'mine', acmeAdmin);
    expect([refused.statusCode, refused.json().code]).toEqual([403, 'EMAIL_NOT_VERIFIED']);
    await tenant.db.transact(async (tx) => {
      await tx.updateTable('platform_users').set({ email_verified: true }).execute();
      await tx.updateTable('platform_settings').set({ max_orgs_per_user: 1 }).execute();
    });
    expect((await create('Mine', 'mine', acmeAdmin)).statusCode).toBe(201);
    const second = await create('Mine too', 'mine-too', acmeAdmin);
    expect([second.statusCode, second.json().code]).toEqual([403, 'ORG_LIMIT_REACHED']);
  });

  it('a request repeated with the same Idempotency-Key has no second effect', async () => {
    const headers = { 'idempotency-key': 'k-1' };
    const body = { name: 'Once', subdomain: 'once' };
    const first = await post('/api/organizations', admin, body, headers);
    const second = await post('/api/organizations', admin, body, headers);
    expect([first.statusCode, second.statusCode]).toEqual([201, 201]);
    expect(second.json()).toEqual(first.json());
    const changed = await post('/api/organizations', admin, { ...body, name: 'Twice' }, headers);
    expect([changed.statusCode, changed.json().code]).toEqual([409, 'IDEMPOTENCY_KEY_REUSED']);
    const failing = { name: 'Once more', subdomain: 'once' };
    const key = { 'idempotency-key': 'k-2' };
    expect((await post('/api/organizations', admin, failing, key)).statusCode).toBe(409);
    const mended = { name: 'Once more', subdomain: 'once-more' };
    expect((await post('/api/organizations', admin, mended, key)).statusCode).toBe(201);
  });

  it('an Idempotency-Key stored by an earlier release is still honoured', async () => {
    const hash = (...parts: string[]) => createHash('sha256').update(JSON.stringify(parts)).digest();
    const body = { name: 'Before', subdomain: 'before', branding: {} };
    const keyHash = hash(decodeJwt(admin).sub ?? '', 'POST', '/api/organizations', 'k-3');
    const answer = { ...body, id: acme, status: 'Active', createdAt: '2026-11-21T00:00:00.000Z' };
    await tenant.db.transact((tx) =>
      sql`insert into idempotency_keys (key_hash, body_hash, answer, created_at) values (${keyHash},
        ${hash(JSON.stringify(body))}, ${JSON.stringify(answer)}, ${new Date(tenant.clock.nowMs())})`.execute(
        tx,
      ),
    );
    const repeated = await post('/api/organizations', admin, body, { 'idempotency-key': 'k-3' });
    expect([repeated.statusCode, repeated.json()]).toEqual([201, answer]);
  });
});
