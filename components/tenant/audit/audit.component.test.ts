import { create } from '@bufbuild/protobuf';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Caller } from '#core/identity/claims.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { ReportRefusalsRequestSchema } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { tokenPath } from '../platform/principals/token-listener.ts';
import { bearer, formOf, grant, startTestTenant, type TestTenant } from '../tenant.fixture.ts';
import { upkeepJobs } from '../upkeep.ts';
import { auditRpc } from './rpc.ts';

const password = 'amber tunnel sings at dawn';
const refusals = '/api/internal/audit/refusals';

interface Listed {
  readonly id: number;
  readonly timestamp: string;
  readonly eventType: string;
  readonly identityId: string | null;
  readonly ipAddress: string | null;
  readonly success: boolean;
  readonly details: Readonly<Record<string, unknown>>;
}

describe('the audit log of an organisation', () => {
  let tenant: TestTenant;
  let admin: string;
  let acme: string;
  let other: string;
  let wallet: string;
  const tokens: Record<string, string> = {};

  const send = (method: 'GET' | 'POST' | 'PUT', url: string, token: string | undefined, payload?: object) =>
    tenant.app.inject({
      method,
      url,
      ...(payload === undefined ? {} : { payload }),
      ...(token === undefined ? {} : { headers: bearer(token) }),
    });
  const tokenOf = (role: string) => tokens[role] ?? 'none';
  const read = (query = '', token = tokenOf('auditor')) =>
    send('GET', `/api/organizations/${acme}/audit${query}`, token);
  const events = async (query = ''): Promise<readonly Listed[]> => (await read(query)).json().events;
  const typesOf = async (query: string) => (await events(query)).map(({ eventType }) => eventType);
  const serviceToken = async (client_id: string, scope?: string): Promise<string> => {
    const client_secret = tenant.files.secretOf(client_id);
    const grant = { grant_type: 'client_credentials', client_id, client_secret };
    const form = formOf(scope === undefined ? grant : { ...grant, scope });
    return (await tenant.internal.inject({ ...form, url: tokenPath })).json().access_token;
  };
  const report = (payload: object, token = wallet) => send('POST', refusals, token, payload);
  const refused = () => ({ organizationId: acme, action: 'wallet.sign', reason: 'no grant' });

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_audit');
    admin = (await grant(tenant)).access_token;
    const create = async (name: string) => {
      const made = await send('POST', '/api/organizations', admin, { name, subdomain: name.toLowerCase() });
      return made.json().id;
    };
    acme = await create('Acme');
    other = await create('Other');
    for (const role of ['Administrator', 'Auditor', 'User']) {
      const email = `${role.toLowerCase()}@acme.example`;
      const user = { email, displayName: role, password, roles: [role] };
      await send('POST', `/api/organizations/${acme}/users`, admin, user);
      tokens[role.toLowerCase()] = (await grant(tenant, email, password)).access_token;
    }
    wallet = await serviceToken('service-wallet');
    await expect(grant(tenant, 'user@acme.example', 'not the password')).rejects.toThrow();
  });
  afterAll(() => tenant.stop());

  it('lists events newest first, with actor, origin and details', async () => {
    const answer = (await read()).json();
    expect(answer).toMatchObject({ page: 1, pageSize: 50, totalCount: answer.events.length });
    const [newest] = answer.events as Listed[];
    expect(newest).toEqual({
      id: expect.any(Number),
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      eventType: 'LoginFailed',
      identityId: null,
      ipAddress: '127.0.0.1',
      success: false,
      details: { reason: 'password' },
    });
    expect(await typesOf('')).toEqual([
      'LoginFailed',
      'Login',
      'UserAddedToOrganization',
      'Login',
      'UserAddedToOrganization',
      'Login',
      'UserAddedToOrganization',
      'OrganizationCreated',
    ]);
    const all = await events('?pageSize=1000');
    const paged = [...(await events('?pageSize=5')), ...(await events('?pageSize=5&page=2'))];
    expect(paged).toEqual(all);
    expect((await read('?pageSize=1000&page=2')).json()).toMatchObject({
      events: [],
      pageSize: 200,
      page: 2,
    });
  });

  it('filters by type, by person and by user of the organisation', async () => {
    expect(await typesOf('?eventType=login')).toEqual(['Login', 'Login', 'Login']);
    expect(await typesOf('?eventType=PersonaDeleted')).toEqual([]);
    const { sub, platform_user_id: person } = decodeJwt(tokenOf('user'));
    const mine = await events(`?userId=${sub}`);
    expect(mine.map(({ eventType, identityId }) => [eventType, identityId])).toEqual([
      ['Login', sub],
      ['UserAddedToOrganization', sub],
    ]);
    expect(await typesOf(`?userId=${String(person)}`)).toEqual([
      'LoginFailed',
      'Login',
      'UserAddedToOrganization',
    ]);
    expect(await typesOf(`?userId=${String(person)}&eventType=LoginFailed`)).toEqual(['LoginFailed']);
  });

  it('filters by time: an instant or a date, its end included', async () => {
    const today = new Date(tenant.clock.nowMs()).toISOString().slice(0, 10);
    const total = (await events()).length;
    const [newest] = await events();
    const at = newest?.timestamp ?? '';
    expect(await events(`?startDate=${today}&endDate=${today}`)).toHaveLength(total);
    expect(await events(`?startDate=${at}&endDate=${at}`)).toContainEqual(newest);
    expect(await events(`?endDate=2026-01-01`)).toEqual([]);
    expect(await events(`?startDate=${encodeURIComponent('2099-01-01T00:00:00+01:00')}`)).toEqual([]);
  });

  it.each([
    ['eventType=Nothing', 'eventType'],
    ['startDate=2026-11-02&endDate=2026-11-01', 'startDate'],
    ['startDate=yesterday', 'startDate'],
    ['endDate=2026-02-30', 'endDate'],
    ['userId=7', 'userId'],
    ['page=first', 'page'],
  ])('refuses %s by field', async (query, field) => {
    const answer = await read(`?${query}`);
    expect([answer.statusCode, answer.json().code]).toEqual([400, 'INVALID_REQUEST']);
    expect(Object.keys(answer.json().errors)).toEqual([field]);
  });

  it('only auditors and administrators of the organisation and the system administrator may read it', async () => {
    const url = `/api/organizations/${acme}/audit`;
    const status = async (token: string | undefined, path = url) =>
      (await send('GET', path, token)).statusCode;
    expect(await status(tokenOf('administrator'))).toBe(200);
    expect(await status(admin)).toBe(200);
    expect(await status(tokenOf('user'))).toBe(403);
    expect(await status(wallet)).toBe(403);
    expect(await status(undefined)).toBe(401);
    expect(await status(tokenOf('auditor'), `/api/organizations/${other}/audit`)).toBe(403);
    const unknown = '/api/organizations/00000000-0000-4000-8000-000000000000/audit';
    expect([await status(tokenOf('auditor'), unknown), await status(admin, unknown)]).toEqual([403, 404]);
    const seen = await events('?pageSize=200');
    const rows = await tenant.db.read
      .selectFrom('audit_events')
      .select('id')
      .where('organization_id', '<>', acme)
      .execute();
    const foreign = new Set(rows.map(({ id }) => Number(id)));
    expect(foreign.size).toBeGreaterThan(0);
    expect(seen.filter(({ id }) => foreign.has(id))).toEqual([]);
  });

  it('stores a refusal reported by a service, under the client id of its token', async () => {
    const { platform_user_id: person } = decodeJwt(tokenOf('user'));
    const occurredAt = new Date(tenant.clock.nowMs() - 5_000).toISOString();
    const reported = {
      ...refused(),
      resourceType: 'wallet',
      resourceId: 'w1abc',
      platformUserId: person,
      occurredAt,
      service: 'service-operator',
    };
    const answer = await report(reported);
    expect([answer.statusCode, answer.body]).toEqual([202, '']);
    const [event] = await events('?eventType=PermissionDenied');
    expect(event).toMatchObject({
      timestamp: occurredAt,
      success: false,
      identityId: null,
      details: {
        source: 'service-refusal',
        service: 'service-wallet',
        action: 'wallet.sign',
        resourceType: 'wallet',
        resourceId: 'w1abc',
        reason: 'no grant',
        occurrences: 1,
      },
    });
    expect(await typesOf(`?userId=${String(person)}&eventType=PermissionDenied`)).toHaveLength(1);
  });

  it('counts equal refusals of a minute in one event, also from concurrent reports', async () => {
    const minuteMs = Math.floor(tenant.clock.nowMs() / 60_000) * 60_000;
    const at = (ms: number) => new Date(minuteMs + ms).toISOString();
    const one = { ...refused(), action: 'wallet.access', resourceId: 'w1same', occurredAt: at(0) };
    const before = (await events('?eventType=PermissionDenied')).length;
    const answers = await Promise.all(Array.from({ length: 20 }, () => report(one)));
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array.from({ length: 20 }, () => 202));
    const counted = await events('?eventType=PermissionDenied');
    expect(counted).toHaveLength(before + 1);
    const same = counted.find(({ details }) => details['resourceId'] === 'w1same');
    expect(same?.details).toMatchObject({ action: 'wallet.access', occurrences: 20 });
    const different = [
      { ...one, resourceId: 'w1else' },
      { ...one, action: 'wallet.sign' },
      { ...one, platformUserId: '00000000-0000-4000-8000-000000000000' },
      { ...one, organizationId: other },
      { ...one, occurredAt: at(-1) },
    ];
    for (const each of different) expect((await report(each)).statusCode).toBe(202);
    expect(await events('?eventType=PermissionDenied')).toHaveLength(before + 5);
  });

  it.each([
    [{ action: '' }, 400, 'INVALID_REQUEST'],
    [{ reason: 'two\nlines' }, 400, 'INVALID_REQUEST'],
    [{ organizationId: 'acme' }, 400, 'INVALID_REQUEST'],
    [{ platformUserId: 'anna' }, 400, 'INVALID_REQUEST'],
    [{ occurredAt: 'now' }, 400, 'INVALID_REQUEST'],
    [{ occurredAt: '2099-01-01T00:00:00Z' }, 400, 'INVALID_REQUEST'],
    [{ organizationId: '00000000-0000-4000-8000-000000000000' }, 404, 'ORGANIZATION_NOT_FOUND'],
  ])('rejects a refusal with %j', async (change, status, code) => {
    const answer = await report({ ...refused(), ...change });
    expect([answer.statusCode, answer.json().code]).toEqual([status, code]);
  });

  it('accepts refusals only from services with the scope', async () => {
    expect((await report(refused(), admin)).statusCode).toBe(403);
    expect((await send('POST', refusals, undefined, refused())).statusCode).toBe(401);
    expect((await report(refused(), await serviceToken('service-register'))).statusCode).toBe(403);
    const narrowed = await serviceToken('service-wallet', 'registers:read');
    expect((await report(refused(), narrowed)).statusCode).toBe(403);
  });

  it('accepts batches of refusals over gRPC and skips organisations that do not exist', async () => {
    const handlers = auditRpc({ db: tenant.db, clock: tenant.clock });
    const peer = { clientId: 'service-wallet', spiffeId: 'spiffe://test/service/service-wallet' };
    const context = (by: Caller) => ({ peer, caller: by, signal: new AbortController().signal });
    const caller = await tenant.authenticator.authenticate(wallet);
    const gathered = (change: object = {}) => ({
      organizationId: acme,
      action: 'wallet.sign',
      reason: 'GRANT_MISSING',
      resourceType: 'wallet',
      resourceId: 'w1gathered',
      platformUserId: '',
      occurredAtMs: BigInt(tenant.clock.nowMs()),
      occurrences: 3,
      ...change,
    });
    const report = (refusals: object[], by = caller) =>
      handlers.reportRefusals(create(ReportRefusalsRequestSchema, { refusals }), context(by));
    const nowhere = { organizationId: '00000000-0000-4000-8000-000000000000' };
    await report([
      gathered(),
      gathered(nowhere),
      gathered({ occurredAtMs: 4_000_000_000_000n, occurrences: 2 }),
    ]);
    const refusals = (await events('?eventType=PermissionDenied')).filter(
      ({ details }) => details['resourceId'] === 'w1gathered',
    );
    expect(refusals).toHaveLength(1);
    expect(refusals[0]?.details).toMatchObject({ service: 'service-wallet', occurrences: 5 });
    expect(Date.parse(refusals[0]?.timestamp ?? '')).toBe(tenant.clock.nowMs());

    for (const change of [
      { action: '' },
      { organizationId: 'acme' },
      { occurrences: 0 },
      { platformUserId: 'x' },
    ]) {
      await expect(report([gathered({ resourceId: 'w1half' }), gathered(change)])).rejects.toMatchObject({
        kind: 'invalid',
      });
    }
    await expect(report(Array.from({ length: 501 }, () => gathered()))).rejects.toMatchObject({
      kind: 'invalid',
    });
    const narrowed = await tenant.authenticator.authenticate(
      await serviceToken('service-wallet', 'registers:read'),
    );
    await expect(report([gathered()], narrowed)).rejects.toMatchObject({ kind: 'forbidden' });
    const half = (await events('?eventType=PermissionDenied')).filter(
      ({ details }) => details['resourceId'] === 'w1half',
    );
    expect(half).toEqual([]);
  });

  it('the organisation sets the retention of its events', async () => {
    const url = `/api/organizations/${acme}/audit/retention`;
    const administrator = tokenOf('administrator');
    const get = async () => (await send('GET', url, administrator)).json();
    const put = (payload: object, token = administrator) => send('PUT', url, token, payload);
    expect(await get()).toEqual({ retentionMonths: 12 });
    for (const body of [
      {},
      { retentionMonths: 0 },
      { months: 121 },
      { retentionMonths: 1.5 },
      { months: '6' },
    ]) {
      expect((await put(body)).statusCode, JSON.stringify(body)).toBe(400);
    }
    expect((await put({ retentionMonths: 3, months: 4 })).statusCode).toBe(400);
    expect((await put({ retentionMonths: 6 }, tokenOf('auditor'))).statusCode).toBe(403);
    expect((await send('GET', url, tokenOf('auditor'))).statusCode).toBe(403);
    expect((await send('GET', `/api/organizations/${other}/audit/retention`, administrator)).statusCode).toBe(
      403,
    );
    expect((await put({ retentionMonths: 6 })).json()).toEqual({ retentionMonths: 6 });
    expect((await put({ months: 1 })).json()).toEqual({ retentionMonths: 1 });
    expect((await put({ months: 1 })).statusCode).toBe(200);
    expect(await get()).toEqual({ retentionMonths: 1 });
    const changes = await events('?eventType=OrganizationUpdated');
    expect(changes.map(({ details }) => details['auditRetentionMonths'])).toEqual([1, 6]);
  });

  it('the retention job deletes older events by the retention of each organisation', async () => {
    const dayMs = 86_400_000;
    const old = new Date(tenant.clock.nowMs() - 40 * dayMs);
    const rows = [acme, other, SYSTEM_ORGANIZATION_ID].map((organization_id) => ({
      organization_id,
      occurred_at: old,
      event_type: 'Logout',
      identity_id: null,
      platform_user_id: null,
      ip_address: null,
      user_agent: null,
      success: true,
      details: '{}',
      refusal_key: null,
    }));
    await tenant.db.transact((tx) => tx.insertInto('audit_events').values(rows).execute());
    const before = (await events()).length;
    const job = upkeepJobs(tenant, tenant).find(({ name }) => name === 'audit-retention');
    await job?.run(new AbortController().signal);
    expect(await typesOf('?eventType=Logout')).toEqual([]);
    expect(await events()).toHaveLength(before - 1);
    const left = (await send('GET', `/api/organizations/${other}/audit?eventType=Logout`, admin)).json();
    expect(left.totalCount).toBe(1);
  });
});
