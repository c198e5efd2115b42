import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { bearer, grant, startReplica, startTestTenant, type TestTenant } from '../../tenant.fixture.ts';
import { addMember, auditOf, base, operatorOf, serviceToken, specFor } from './managed.fixture.ts';

describe('organisations of custom resources', () => {
  let tenant: TestTenant;
  let replica: TestTenant;
  let operator: Awaited<ReturnType<typeof operatorOf>>;
  let other: Awaited<ReturnType<typeof operatorOf>>;

  const created = async (subdomain: string, extra: object = {}) => {
    const spec = specFor(subdomain, extra);
    const answer = await operator.upsert(spec);
    expect(answer.statusCode).toBe(201);
    return { spec, organization: answer.json() };
  };
  const byPerson = async (subdomain: string): Promise<string> => {
    const answer = await tenant.app.inject({
      method: 'POST',
      url: '/api/organizations',
      headers: bearer((await grant(tenant)).access_token),
      payload: { name: 'Made by hand', subdomain },
    });
    return answer.json().id;
  };
  const countBySubdomain = async (subdomain: string) => {
    const { rows } = await sql<{ n: number }>`
      SELECT count(*)::int AS n FROM organizations WHERE subdomain = ${subdomain}`.execute(tenant.db.read);
    return rows[0]?.n;
  };

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_managed');
    replica = await startReplica({ ...tenant.files, remove: async () => undefined });
    operator = await operatorOf(tenant);
    other = await operatorOf(replica);
  });
  afterAll(async () => {
    await replica.stop();
    await tenant.stop();
  });

  it('creates an organisation for a uid and returns it by uid and by id', async () => {
    const branding = { primaryColor: '#112233', secondaryColor: '#445566', companyTagline: 'Here' };
    const { spec, organization } = await created('acme', { branding });
    expect(organization).toMatchObject({
      resourceUid: spec.resourceUid,
      state: 'Active',
      name: spec.name,
      subdomain: 'acme',
      organizationType: 'Standard',
      isPlatformOrganization: false,
      branding,
      userCount: 0,
      version: 1,
      deletedAt: null,
      purgedAfter: null,
    });
    expect((await operator.read(spec.resourceUid)).json()).toEqual(organization);
    const byId = await operator.call('GET', `${base}/${organization.organizationId}`);
    expect(byId.json()).toEqual(organization);
    await addMember(tenant, organization.organizationId);
    expect((await operator.read(spec.resourceUid)).json()).toMatchObject({ userCount: 1 });
  });

  it('answers the same spec with the same organisation and writes no row', async () => {
    const { spec, organization } = await created('again', { branding: { primaryColor: '#112233' } });
    const before = await auditOf(tenant, organization.organizationId);
    for (const repeated of [spec, { ...spec, branding: null }, { ...spec, suspended: false }]) {
      const answer = await operator.upsert(repeated);
      expect([answer.statusCode, answer.json()]).toEqual([200, organization]);
    }
    expect(await auditOf(tenant, organization.organizationId)).toEqual(before);
  });

  it('creates one organisation for concurrent requests to two replicas', async () => {
    const spec = specFor('twice');
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, at) => (at % 2 === 0 ? operator : other).upsert(spec)),
    );
    expect(answers.map((answer) => answer.statusCode).sort()).toEqual([...Array(9).fill(200), 201]);
    expect(new Set(answers.map((answer) => answer.json().organizationId)).size).toBe(1);
    expect(await countBySubdomain('twice')).toBe(1);
    expect(await auditOf(tenant, answers[0]?.json().organizationId)).toEqual(['OrganizationCreated']);
  });

  it('gives a subdomain to one of two uids', async () => {
    const answers = await Promise.all([operator.upsert(specFor('rivals')), other.upsert(specFor('rivals'))]);
    expect(answers.map((answer) => answer.statusCode).sort()).toEqual([201, 409]);
  });

  it.each(['organizations', 'audit_events'])(
    'writes nothing when the database fails at %s, and the repetition creates one',
    async (table) => {
      const spec = specFor(`crash-${table.replace('_', '-')}`);
      await tenant.db.transact((tx) =>
        sql`CREATE FUNCTION fail() RETURNS trigger AS $$ BEGIN RAISE 'no more'; END $$ LANGUAGE plpgsql`.execute(
          tx,
        ),
      );
      await tenant.db.transact((tx) =>
        sql`CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON ${sql.table(table)} DEFERRABLE INITIALLY DEFERRED
          FOR EACH ROW EXECUTE FUNCTION fail()`.execute(tx),
      );
      expect((await operator.upsert(spec)).statusCode).toBe(500);
      expect((await operator.read(spec.resourceUid)).statusCode).toBe(404);
      await tenant.db.transact((tx) => sql`DROP FUNCTION fail() CASCADE`.execute(tx));
      expect((await operator.upsert(spec)).statusCode).toBe(201);
      expect((await operator.upsert(spec)).statusCode).toBe(200);
      expect(await countBySubdomain(spec.subdomain)).toBe(1);
    },
  );

  it('changes name and branding and increments the version', async () => {
    const { spec, organization } = await created('changing');
    const changed = await operator.upsert({
      ...spec,
      name: 'Renamed',
      branding: { primaryColor: '#abcdef' },
    });
    expect(changed.json()).toMatchObject({
      organizationId: organization.organizationId,
      name: 'Renamed',
      branding: { primaryColor: '#abcdef' },
      version: 2,
    });
    const kept = await operator.upsert({ ...spec, name: 'Renamed' });
    expect(kept.json()).toEqual(changed.json());
    expect(await auditOf(tenant, organization.organizationId)).toEqual([
      'OrganizationCreated',
      'OrganizationUpdated',
    ]);
  });

  it('stores the name unchanged, so that a repeated spec is equal to the stored one', async () => {
    const { spec, organization } = await created('letters', { name: ' 🦊 and sons ' });
    expect(organization.name).toBe(' 🦊 and sons ');
    expect((await operator.upsert(spec)).json()).toEqual(organization);
  });

  it('refuses changes of immutable members and names them', async () => {
    const { spec } = await created('fixed');
    const answer = await operator.upsert({
      ...spec,
      subdomain: 'moved',
      organizationType: 'Public',
      organizationId: randomUUID(),
    });
    expect([answer.statusCode, answer.json().code]).toEqual([409, 'IMMUTABLE_FIELD']);
    expect(Object.keys(answer.json().errors)).toEqual(['subdomain', 'organizationType', 'organizationId']);
    expect(await countBySubdomain('moved')).toBe(0);
  });

  it('names the organisation that holds a taken subdomain and whether it can be adopted', async () => {
    const organizationId = await byPerson('taken');
    const free = await operator.upsert(specFor('taken'));
    expect([free.statusCode, free.json()]).toEqual([
      409,
      expect.objectContaining({
        code: 'SUBDOMAIN_CONFLICT',
        organizationId,
        state: 'Active',
        adoptable: true,
      }),
    ]);
    const { organization } = await created('bound');
    const bound = await operator.upsert(specFor('bound'));
    expect(bound.json()).toMatchObject({ organizationId: organization.organizationId, adoptable: false });
  });

  it('adopts by id once; the first request wins', async () => {
    const organizationId = await byPerson('adopted');
    const wishes = [specFor('adopted', { organizationId }), specFor('adopted', { organizationId })] as const;
    const answers = await Promise.all([operator.upsert(wishes[0]), other.upsert(wishes[1])]);
    const winner = answers.findIndex((answer) => answer.statusCode === 200);
    const loser = answers[1 - winner];
    expect([loser?.statusCode, loser?.json().code]).toEqual([409, 'ORGANIZATION_BOUND']);
    expect(answers[winner]?.json()).toMatchObject({
      organizationId,
      resourceUid: wishes[winner === 0 ? 0 : 1].resourceUid,
      name: 'The adopted',
      userCount: 1,
    });
    const repeated = await operator.upsert(wishes[winner === 0 ? 0 : 1]);
    expect([repeated.statusCode, repeated.json()]).toEqual([200, answers[winner]?.json()]);
    expect(await auditOf(tenant, organizationId)).toEqual([
      'OrganizationCreated',
      'OrganizationAdopted',
      'OrganizationUpdated',
    ]);
  });

  it('does not adopt an unknown, a different or a platform organisation', async () => {
    const organizationId = await byPerson('different');
    const refusals = [
      [specFor('nowhere', { organizationId: randomUUID() }), 404, 'ORGANIZATION_NOT_FOUND'],
      [specFor('elsewhere', { organizationId }), 409, 'ADOPTION_MISMATCH'],
      [specFor('different', { organizationId, organizationType: 'Public' }), 409, 'ADOPTION_MISMATCH'],
      [specFor('mine', { organizationId: SYSTEM_ORGANIZATION_ID }), 409, 'PLATFORM_ORG_PROTECTED'],
    ] as const;
    for (const [spec, status, code] of refusals) {
      const answer = await operator.upsert(spec);
      expect([answer.statusCode, answer.json().code]).toEqual([status, code]);
      expect((await operator.read(spec.resourceUid)).statusCode).toBe(404);
    }
  });

  it.each([
    [{ resourceUid: 'x' }, 'INVALID_REQUEST'],
    [{ name: 'ab' }, 'INVALID_REQUEST'],
    [{ name: 'x'.repeat(101) }, 'INVALID_REQUEST'],
    [{ name: 'a\u0000bc' }, 'INVALID_REQUEST'],
    [{ branding: { companyTagline: 'two\nlines' } }, 'INVALID_REQUEST'],
    [{ subdomain: '-bad' }, 'INVALID_REQUEST'],
    [{ organizationType: 'Secret' }, 'INVALID_REQUEST'],
    [{ branding: { logoUrl: 'http://plain.example' } }, 'INVALID_REQUEST'],
    [{ suspended: 'yes' }, 'INVALID_REQUEST'],
    [{ subdomain: 'wallet' }, 'SUBDOMAIN_RESERVED'],
  ])('refuses %j', async (part, code) => {
    const answer = await operator.upsert({ ...specFor('shape'), ...part });
    expect([answer.statusCode, answer.json().code]).toEqual([400, code]);
  });

  it('accepts only the token of the operator with its scope', async () => {
    const spec = specFor('strangers');
    const post = (token: string) =>
      tenant.app.inject({ method: 'POST', url: base, headers: bearer(token), payload: spec });
    const strangers = [
      (await grant(tenant)).access_token,
      await serviceToken(tenant, 'service-register'),
      await serviceToken(tenant, 'service-operator', 'registers:read'),
    ];
    for (const token of strangers) expect((await post(token)).statusCode).toBe(403);
    expect((await tenant.app.inject({ method: 'POST', url: base, payload: spec })).statusCode).toBe(401);
    expect((await operator.read(spec.resourceUid)).statusCode).toBe(404);
    expect((await post(operator.token)).statusCode).toBe(201);
  });
});
