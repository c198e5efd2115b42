import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { bearer, grant, startReplica, startTestTenant, type TestTenant } from '../tenant.fixture.ts';
import { addMember, auditOf, base, operatorOf, serviceToken, wishFor } from './managed.fixture.ts';

describe('organisations of custom resources', () => {
  let tenant: TestTenant;
  let replica: TestTenant;
  let operator: Awaited<ReturnType<typeof operatorOf>>;
  let other: Awaited<ReturnType<typeof operatorOf>>;

  const created = async (subdomain: string, extra: object = {}) => {
    const wish = wishFor(subdomain, extra);
    const answer = await operator.upsert(wish);
    expect(answer.statusCode).toBe(201);
    return { wish, organization: answer.json() };
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

  it('makes one for a uid and shows it by uid and by id', async () => {
    const branding = { primaryColor: '#112233', secondaryColor: '#445566', companyTagline: 'Here' };
    const { wish, organization } = await created('acme', { branding });
    expect(organization).toMatchObject({
      resourceUid: wish.resourceUid,
      state: 'Active',
      name: wish.name,
      subdomain: 'acme',
      organizationType: 'Standard',
      isPlatformOrganization: false,
      branding,
      userCount: 0,
      version: 1,
      deletedAt: null,
      purgedAfter: null,
    });
    expect((await operator.read(wish.resourceUid)).json()).toEqual(organization);
    const byId = await operator.call('GET', `${base}/${organization.organizationId}`);
    expect(byId.json()).toEqual(organization);
    await addMember(tenant, organization.organizationId);
    expect((await operator.read(wish.resourceUid)).json()).toMatchObject({ userCount: 1 });
  });

  it('answers the same wish with the same organisation and writes nothing', async () => {
    const { wish, organization } = await created('again', { branding: { primaryColor: '#112233' } });
    const before = await auditOf(tenant, organization.organizationId);
    for (const repeated of [wish, { ...wish, branding: null }, { ...wish, suspended: false }]) {
      const answer = await operator.upsert(repeated);
      expect([answer.statusCode, answer.json()]).toEqual([200, organization]);
    }
    expect(await auditOf(tenant, organization.organizationId)).toEqual(before);
  });

  it('makes one of two at once, and of ten, over two replicas', async () => {
    const wish = wishFor('twice');
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, at) => (at % 2 === 0 ? operator : other).upsert(wish)),
    );
    expect(answers.map((answer) => answer.statusCode).sort()).toEqual([...Array(9).fill(200), 201]);
    expect(new Set(answers.map((answer) => answer.json().organizationId)).size).toBe(1);
    expect(await countBySubdomain('twice')).toBe(1);
    expect(await auditOf(tenant, answers[0]?.json().organizationId)).toEqual(['OrganizationCreated']);
  });

  it('lets one of two uids have a subdomain', async () => {
    const answers = await Promise.all([operator.upsert(wishFor('rivals')), other.upsert(wishFor('rivals'))]);
    expect(answers.map((answer) => answer.statusCode).sort()).toEqual([201, 409]);
  });

  it.each(['organizations', 'audit_events'])(
    'leaves nothing behind when the database fails at %s, and the repetition makes one',
    async (table) => {
      const wish = wishFor(`crash-${table.replace('_', '-')}`);
      await tenant.db.transact((tx) =>
        sql`CREATE FUNCTION fail() RETURNS trigger AS $$ BEGIN RAISE 'no more'; END $$ LANGUAGE plpgsql`.execute(
          tx,
        ),
      );
      await tenant.db.transact((tx) =>
        sql`CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON ${sql.table(table)} DEFERRABLE INITIALLY DEFERRED
          FOR EACH ROW EXECUTE FUNCTION fail()`.execute(tx),
      );
      expect((await operator.upsert(wish)).statusCode).toBe(500);
      expect((await operator.read(wish.resourceUid)).statusCode).toBe(404);
      await tenant.db.transact((tx) => sql`DROP FUNCTION fail() CASCADE`.execute(tx));
      expect((await operator.upsert(wish)).statusCode).toBe(201);
      expect((await operator.upsert(wish)).statusCode).toBe(200);
      expect(await countBySubdomain(wish.subdomain)).toBe(1);
    },
  );

  it('changes name and branding and counts the changes', async () => {
    const { wish, organization } = await created('changing');
    const changed = await operator.upsert({
      ...wish,
      name: 'Renamed',
      branding: { primaryColor: '#abcdef' },
    });
    expect(changed.json()).toMatchObject({
      organizationId: organization.organizationId,
      name: 'Renamed',
      branding: { primaryColor: '#abcdef' },
      version: 2,
    });
    const kept = await operator.upsert({ ...wish, name: 'Renamed' });
    expect(kept.json()).toEqual(changed.json());
    expect(await auditOf(tenant, organization.organizationId)).toEqual([
      'OrganizationCreated',
      'OrganizationUpdated',
    ]);
  });

  it('keeps a name to the letter, so that a wish equals what it made', async () => {
    const { wish, organization } = await created('letters', { name: ' 🦊 and sons ' });
    expect(organization.name).toBe(' 🦊 and sons ');
    expect((await operator.upsert(wish)).json()).toEqual(organization);
  });

  it('refuses other immutable members by name', async () => {
    const { wish } = await created('fixed');
    const answer = await operator.upsert({
      ...wish,
      subdomain: 'moved',
      organizationType: 'Public',
      organizationId: randomUUID(),
    });
    expect([answer.statusCode, answer.json().code]).toEqual([409, 'IMMUTABLE_FIELD']);
    expect(Object.keys(answer.json().errors)).toEqual(['subdomain', 'organizationType', 'organizationId']);
    expect(await countBySubdomain('moved')).toBe(0);
  });

  it('says who has a taken subdomain and whether it can be adopted', async () => {
    const organizationId = await byPerson('taken');
    const free = await operator.upsert(wishFor('taken'));
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
    const bound = await operator.upsert(wishFor('bound'));
    expect(bound.json()).toMatchObject({ organizationId: organization.organizationId, adoptable: false });
  });

  it('adopts by id once, whoever comes first', async () => {
    const organizationId = await byPerson('adopted');
    const wishes = [wishFor('adopted', { organizationId }), wishFor('adopted', { organizationId })] as const;
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

  it('adopts nothing unknown, different or of the platform', async () => {
    const organizationId = await byPerson('different');
    const refusals = [
      [wishFor('nowhere', { organizationId: randomUUID() }), 404, 'ORGANIZATION_NOT_FOUND'],
      [wishFor('elsewhere', { organizationId }), 409, 'ADOPTION_MISMATCH'],
      [wishFor('different', { organizationId, organizationType: 'Public' }), 409, 'ADOPTION_MISMATCH'],
      [wishFor('mine', { organizationId: SYSTEM_ORGANIZATION_ID }), 409, 'PLATFORM_ORG_PROTECTED'],
    ] as const;
    for (const [wish, status, code] of refusals) {
      const answer = await operator.upsert(wish);
      expect([answer.statusCode, answer.json().code]).toEqual([status, code]);
      expect((await operator.read(wish.resourceUid)).statusCode).toBe(404);
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
    const answer = await operator.upsert({ ...wishFor('shape'), ...part });
    expect([answer.statusCode, answer.json().code]).toEqual([400, code]);
  });

  it('lets in the operator’s own token with its scope, and nobody else', async () => {
    const wish = wishFor('strangers');
    const post = (token: string) =>
      tenant.app.inject({ method: 'POST', url: base, headers: bearer(token), payload: wish });
    const strangers = [
      (await grant(tenant)).access_token,
      await serviceToken(tenant, 'service-register'),
      await serviceToken(tenant, 'service-operator', 'registers:read'),
    ];
    for (const token of strangers) expect((await post(token)).statusCode).toBe(403);
    expect((await tenant.app.inject({ method: 'POST', url: base, payload: wish })).statusCode).toBe(401);
    expect((await operator.read(wish.resourceUid)).statusCode).toBe(404);
    expect((await post(operator.token)).statusCode).toBe(201);
  });
});
