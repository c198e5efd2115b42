import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ConfigError, loadConfig } from '#kit/config/config.ts';
import { tenantSettings } from '../../config.ts';
import {
  adminEmail,
  adminPassword,
  bearer,
  grant,
  makeTenantFiles,
  startReplica,
  startTestTenant,
  type TestTenant,
} from '../../tenant.fixture.ts';

describe('the password of the seeded administrator, in production', () => {
  let tenant: TestTenant;
  beforeAll(async () => {
    tenant = await startTestTenant('tenant_seed_production', { CHANCERY_RATE_LIMIT_PROFILE: 'production' });
  });
  afterAll(() => tenant.stop());

  const post = (url: string, token: string, payload: object = {}, headers: Record<string, string> = {}) =>
    tenant.app.inject({ method: 'POST', url, payload, headers: { ...bearer(token), ...headers } });
  const signIn = async (password: string) => {
    const payload = { email: adminEmail, password };
    return tenant.app.inject({ method: 'POST', url: '/api/auth/login', payload });
  };
  const change = async (token: string, present: string, password: string) => {
    const wanted = { scopedOperation: 'ChangePassword' };
    await post('/api/auth/challenge/initiate', token, wanted);
    const proof = { ...wanted, method: 'Password', proof: { password: present } };
    const proved = await post('/api/auth/challenge/verify', token, proof);
    expect(proved.statusCode).toBe(200);
    const headers = { 'x-auth-challenge': proved.json().token as string };
    return post('/api/auth/password/change', token, { password }, headers);
  };

  it('must be replaced by another before the administrator writes', async () => {
    const first = (await signIn(adminPassword)).json();
    expect(decodeJwt(first.access_token)).toMatchObject({ password_change_required: true });
    const organization = { name: 'Engines', subdomain: 'engines' };
    const refused = await post('/api/organizations', first.access_token, organization);
    expect(refused.json()).toMatchObject({ status: 403, code: 'PASSWORD_CHANGE_REQUIRED' });
    const me = await tenant.app.inject({ url: '/api/me/auth-methods', headers: bearer(first.access_token) });
    expect(me.statusCode).toBe(200);
    const same = await change(first.access_token, adminPassword, adminPassword);
    expect(same.json()).toMatchObject({ code: 'PASSWORD_REFUSED', errors: { password: ['unchanged'] } });
    const password = 'seven quiet orchard lamps';
    expect((await change(first.access_token, adminPassword, password)).statusCode).toBe(204);
    const renewed = await tenant.app.inject({
      method: 'POST',
      url: '/api/auth/token/refresh',
      payload: { refreshToken: first.refresh_token },
    });
    const token = renewed.json().access_token as string;
    expect(decodeJwt(token)).not.toHaveProperty('password_change_required');
    expect((await post('/api/organizations', token, organization)).statusCode).toBe(201);
    expect(decodeJwt((await signIn(password)).json().access_token)).not.toHaveProperty(
      'password_change_required',
    );
  });
});

describe('seeding', () => {
  let tenant: TestTenant;
  beforeAll(async () => {
    tenant = await startTestTenant('tenant_seed');
  });
  afterAll(() => tenant.stop());

  it('creates the platform organisations, the administrator and the principals', async () => {
    const organizations = await tenant.db.read
      .selectFrom('organizations')
      .select(['id', 'subdomain', 'status', 'org_type', 'is_platform_org'])
      .orderBy('id')
      .execute();
    expect(organizations).toEqual([
      {
        id: '00000000-0000-0000-0000-000000000001',
        subdomain: 'system',
        status: 'Active',
        org_type: 'Standard',
        is_platform_org: true,
      },
      {
        id: '00000000-0000-0000-0000-000000000002',
        subdomain: 'public',
        status: 'Suspended',
        org_type: 'Public',
        is_platform_org: true,
      },
    ]);
    const principals = await tenant.db.read
      .selectFrom('service_principals')
      .select(['id', 'client_id', 'can_sign_system'])
      .orderBy('id')
      .execute();
    expect(principals.map((row) => row.client_id)).toEqual([
      'service-blueprint',
      'service-wallet',
      'service-register',
      'service-peer',
      'validator-0',
      'service-tenant',
      'service-credential',
      'service-gateway',
      'service-operator',
      'service-tool-server',
    ]);
    const signing = principals.filter((row) => row.can_sign_system).map((row) => row.client_id);
    expect(signing).toEqual(['service-register', 'validator-0']);
  });

  it('gives the operator only the scopes that it needs', async () => {
    const operator = await tenant.db.read
      .selectFrom('service_principals')
      .select(['scopes', 'can_sign_system'])
      .where('client_id', '=', 'service-operator')
      .executeTakeFirstOrThrow();
    expect(operator).toEqual({
      scopes: [
        'principals:write',
        'organizations:write',
        'registers:write',
        'registers:read',
        'wallets:sign',
      ],
      can_sign_system: false,
    });
  });

  it('two replicas that start concurrently on an empty database seed it once', async () => {
    const files = await makeTenantFiles('tenant_seed_two', { CHANCERY_SERVICE_SECRETS_DIR: '' });
    const shared = { ...files, remove: async () => undefined };
    const replicas = await Promise.all([startReplica(shared), startReplica(shared), startReplica(shared)]);
    const kids = replicas.map((replica) => replica.keys.jwks().keys.map((key) => key['kid']));
    expect(kids[1]).toEqual(kids[0]);
    expect(kids[2]).toEqual(kids[0]);
    for (const replica of replicas) {
      const tokens = await grant(replica);
      for (const other of replicas) {
        const me = { url: '/api/auth/me', headers: bearer(tokens.access_token) };
        expect((await other.app.inject(me)).statusCode).toBe(200);
      }
    }
    for (const table of ['organizations', 'service_principals', 'platform_users'] as const) {
      const { count } = await tenant.db.read
        .selectFrom(table)
        .select((from) => from.fn.countAll<number>().as('count'))
        .executeTakeFirstOrThrow();
      const { rows } = await sql<{
        count: number;
      }>`SELECT count(*) AS count FROM ${sql.table(table)}`.execute(replicas[0]?.db.read ?? tenant.db.read);
      expect(rows[0]?.count).toBe(count);
    }
    for (const replica of replicas) await replica.stop();
    await files.remove();
  });

  it('a repeated or concurrent run changes nothing, also with another password', async () => {
    const path = join(tenant.files.directory, 'new-password');
    await writeFile(path, 'a completely different phrase');
    const env = { ...tenant.files.env, CHANCERY_ADMIN_PASSWORD_FILE: path };
    const files = { ...tenant.files, env, remove: async () => undefined };
    const replicas = await Promise.all([startReplica(files), startReplica(files)]);
    await expect(grant(tenant, adminEmail, adminPassword)).resolves.toHaveProperty('access_token');
    const { count } = await tenant.db.read
      .selectFrom('platform_users')
      .select((from) => from.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    expect(count).toBe(1);
    for (const replica of replicas) await replica.stop();
  });

  it('reports all invalid settings without revealing a secret', () => {
    const env = {
      ...tenant.files.env,
      CHANCERY_ADMIN_EMAIL: 'x',
      CHANCERY_LOCKOUT_STEPS: '[]',
      CHANCERY_NONSENSE: 'y',
    };
    const issues = (() => {
      try {
        loadConfig(tenantSettings, env);
      } catch (error) {
        if (error instanceof ConfigError) return error.issues.map((issue) => issue.name);
        throw error;
      }
      return [];
    })();
    expect(issues.sort()).toEqual(['CHANCERY_ADMIN_EMAIL', 'CHANCERY_LOCKOUT_STEPS', 'CHANCERY_NONSENSE']);
  });
});
