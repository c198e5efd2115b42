import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PUBLIC_ORGANIZATION_ID, SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { delegatedTokenPath } from '../../platform/principals/token-listener.ts';
import {
  bearer,
  formOf,
  grant,
  startReplica,
  startTestTenant,
  type TestTenant,
  type TokenBody,
  verifyAddress,
} from '../../tenant.fixture.ts';
import { deletedGraceMs } from '../organization.ts';
import { purgeDeletedOrganizations } from '../purge.ts';
import { applyStatus } from '../status.ts';
import { lockOrganization } from '../store.ts';
import { addMember, auditOf, base, memberPassword, operatorOf, specFor } from './managed.fixture.ts';

describe('suspension, release and deletion of organisations', () => {
  let tenant: TestTenant;
  let replica: TestTenant;
  let operator: Awaited<ReturnType<typeof operatorOf>>;

  const made = async (subdomain: string, extra: object = {}) => {
    const spec = specFor(subdomain, extra);
    const organizationId: string = (await operator.upsert(spec)).json().organizationId;
    return { spec, organizationId, email: await addMember(tenant, organizationId, ['Administrator']) };
  };
  const signIn = (email: string, organizationSubdomain?: string, on: TestTenant = tenant) =>
    on.app.inject({
      method: 'POST',
      url: '/api/auth/login',
      payload: { email, password: memberPassword, organizationSubdomain },
    });
  const me = async (token: string, on: TestTenant) =>
    (await on.app.inject({ url: '/api/auth/me', headers: bearer(token) })).statusCode;
  const refresh = (tokens: TokenBody) =>
    tenant.app.inject({
      method: 'POST',
      url: '/api/auth/token/refresh',
      payload: { refreshToken: tokens.refresh_token },
    });
  const delegate = (subjectToken: string) => {
    const form = formOf({
      client_id: 'service-register',
      client_secret: tenant.files.secretOf('service-register'),
      subject_token: subjectToken,
    });
    return tenant.internal.inject({ ...form, url: delegatedTokenPath });
  };
  const setPublicStatus = async (organizationId: string, status: string, token?: string) =>
    tenant.app.inject({
      method: 'PUT',
      url: `/api/platform/organizations/${organizationId}/status`,
      headers: bearer(token ?? (await grant(tenant)).access_token),
      payload: { status },
    });
  /** Waits until both replicas refuse the token, within the revocation delay. */
  const expectDead = async (...tokens: string[]) => {
    const since = performance.now();
    for (const token of tokens) {
      await expect.poll(() => me(token, tenant), { interval: 20 }).toBe(401);
      await expect.poll(() => me(token, replica), { interval: 20 }).toBe(401);
    }
    expect(performance.now() - since).toBeLessThan(2_000);
  };

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_managed_life');
    replica = await startReplica({ ...tenant.files, remove: async () => undefined });
    operator = await operatorOf(tenant);
  });
  afterAll(async () => {
    await replica.stop();
    await tenant.stop();
  });

  it('suspension ends tokens and delegations and refuses sign-in; reactivation allows sign-in again', async () => {
    const { spec, organizationId, email } = await made('paused');
    const tokens = (await signIn(email, 'paused')).json<TokenBody>();
    const delegated = (await delegate(tokens.access_token)).json().access_token;
    expect(await me(delegated, tenant)).toBe(200);
    const suspended = await operator.setStatus(spec.resourceUid, 'Suspended');
    expect([suspended.statusCode, suspended.json()]).toMatchObject([200, { state: 'Suspended', version: 2 }]);
    await expectDead(tokens.access_token, delegated);
    for (const on of [tenant, replica]) {
      for (const subdomain of ['paused', undefined]) {
        const refused = await signIn(email, subdomain, on);
        expect([refused.statusCode, refused.json().code]).toEqual([401, 'INVALID_CREDENTIALS']);
      }
    }
    expect((await refresh(tokens)).statusCode).toBe(401);
    expect((await delegate(tokens.access_token)).statusCode).toBe(401);
    const bySubdomain = await tenant.app.inject({ url: '/api/organizations/by-subdomain/paused' });
    expect(bySubdomain.statusCode).toBe(404);
    // a repetition writes no row and revokes no token
    const repeated = await operator.setStatus(spec.resourceUid, 'Suspended');
    expect(repeated.json()).toEqual(suspended.json());
    await operator.setStatus(spec.resourceUid, 'Active');
    const again = (await signIn(email, 'paused')).json<TokenBody>();
    expect(await me(again.access_token, tenant)).toBe(200);
    expect(await me(tokens.access_token, tenant)).toBe(401);
    expect((await refresh(tokens)).statusCode).toBe(401);
    expect((await auditOf(tenant, organizationId)).filter((type) => type.startsWith('Organization'))).toEqual(
      ['OrganizationCreated', 'OrganizationSuspended', 'OrganizationReactivated'],
    );
  });

  it('a member of two organisations keeps access to the other one', async () => {
    const { spec, email } = await made('first-home');
    await verifyAddress(tenant, email);
    const second = await made('second-home');
    await tenant.app.inject({
      method: 'POST',
      url: `/api/organizations/${second.organizationId}/users`,
      headers: bearer((await grant(tenant)).access_token),
      payload: { email, displayName: 'A User', password: memberPassword, roles: ['User'] },
    });
    const there = (await signIn(email, 'second-home')).json<TokenBody>();
    await operator.setStatus(spec.resourceUid, 'Suspended');
    expect((await signIn(email)).statusCode).toBe(200);
    expect(await me(there.access_token, tenant)).toBe(200);
    expect((await refresh(there)).statusCode).toBe(200);
  });

  it.each(['sign-in', 'delegation'])(
    'a %s concurrent with a suspension leaves no valid token',
    async (kind) => {
      const { spec, organizationId, email } = await made(`slippery-${kind}`);
      const tokens = (await signIn(email, spec.subdomain)).json<TokenBody>();
      const by = await tenant.authenticator.authenticate(operator.token);
      const attempt = await tenant.db.transact(async (tx) => {
        const organization = await lockOrganization(tx, organizationId);
        if (organization === undefined) throw new Error('no organisation');
        // Reads the organisation before the suspension, then waits for this transaction.
        const waiting = kind === 'sign-in' ? signIn(email, spec.subdomain) : delegate(tokens.access_token);
        const answer = Promise.resolve(waiting);
        await waitFor(async () => {
          const { rows } = await sql`SELECT 1 FROM pg_locks WHERE NOT granted`.execute(tenant.db.read);
          return rows.length > 0;
        });
        const act = { by, origin: {}, atMs: tenant.clock.nowMs() };
        await applyStatus(tx, organization, { ...act, status: 'Suspended' });
        return { answer };
      });
      expect((await attempt.answer).statusCode).toBe(401);
      const { rows } = await sql`SELECT 1 FROM refresh_families WHERE organization_id = ${organizationId}
      AND revoked_at IS NULL`.execute(tenant.db.read);
      expect(rows).toEqual([]);
    },
  );

  it('the resource sets the suspension and overrides a change by a person', async () => {
    const { spec, organizationId } = await made('declared', { suspended: true });
    expect((await operator.read(spec.resourceUid)).json()).toMatchObject({ state: 'Suspended' });
    expect((await operator.upsert({ ...spec, suspended: false })).json()).toMatchObject({ state: 'Active' });
    expect((await setPublicStatus(organizationId, 'Suspended')).statusCode).toBe(204);
    expect((await operator.read(spec.resourceUid)).json()).toMatchObject({ state: 'Suspended' });
    const unsaid = await operator.upsert({ ...spec, suspended: undefined });
    expect(unsaid.json()).toMatchObject({ state: 'Suspended' });
    expect((await operator.upsert({ ...spec, suspended: false })).json()).toMatchObject({ state: 'Active' });
  });

  it('only the system administrator may use the public route; platform organisations are protected', async () => {
    const { organizationId, email } = await made('public-route');
    const own = (await signIn(email, 'public-route')).json<TokenBody>().access_token;
    expect((await setPublicStatus(organizationId, 'Suspended', own)).statusCode).toBe(403);
    expect((await setPublicStatus(organizationId, 'Suspended', operator.token)).statusCode).toBe(403);
    for (const _ of ['changed', 'unchanged']) {
      expect((await setPublicStatus(organizationId, 'Suspended')).statusCode).toBe(204);
    }
    await expectDead(own);
    expect((await setPublicStatus(organizationId, 'Active')).statusCode).toBe(204);
    expect((await signIn(email, 'public-route')).statusCode).toBe(200);
    expect((await setPublicStatus(organizationId, 'Deleted')).statusCode).toBe(400);
    expect((await setPublicStatus(randomUUID(), 'Active')).statusCode).toBe(404);
    await tenant.app.inject({
      method: 'PUT',
      url: '/api/platform/settings/public-org',
      headers: bearer((await grant(tenant)).access_token),
      payload: { enabled: true },
    });
    for (const platform of [SYSTEM_ORGANIZATION_ID, PUBLIC_ORGANIZATION_ID]) {
      const refused = await setPublicStatus(platform, 'Suspended');
      expect([refused.statusCode, refused.json().code]).toEqual([409, 'PLATFORM_ORG_PROTECTED']);
    }
  });

  it.each([
    ['Retain', 'Active'],
    ['Suspend', 'Suspended'],
  ])('release with %s leaves it %s, and another resource may adopt it', async (policy, state) => {
    const { spec, organizationId } = await made(`release-${policy.toLowerCase()}`);
    for (const _ of ['first', 'repeated']) {
      expect((await operator.remove(spec.resourceUid, policy)).statusCode).toBe(204);
    }
    expect((await operator.read(spec.resourceUid)).statusCode).toBe(404);
    const byId = await operator.call('GET', `${base}/${organizationId}`);
    expect(byId.json()).toMatchObject({ state, resourceUid: null });
    const adopted = await operator.upsert(specFor(spec.subdomain, { organizationId, suspended: false }));
    expect([adopted.statusCode, adopted.json()]).toMatchObject([200, { organizationId, state: 'Active' }]);
  });

  it('deletion is final: tokens end, the subdomain stays taken, members are deleted after the grace period', async () => {
    const { spec, organizationId, email } = await made('gone');
    const tokens = (await signIn(email, 'gone')).json<TokenBody>();
    for (const _ of ['first', 'repeated']) {
      expect((await operator.remove(spec.resourceUid, 'Delete')).statusCode).toBe(204);
    }
    await expectDead(tokens.access_token);
    expect((await signIn(email, 'gone')).statusCode).toBe(401);
    const seen = (await operator.read(spec.resourceUid)).json();
    expect(seen).toMatchObject({ organizationId, state: 'Terminating', userCount: 1 });
    expect(Date.parse(seen.purgedAfter) - Date.parse(seen.deletedAt)).toBe(deletedGraceMs);
    const refusals = [
      [await operator.upsert(spec), 410, 'ORGANIZATION_DELETED'],
      [await operator.setStatus(spec.resourceUid, 'Active'), 410, 'ORGANIZATION_DELETED'],
      [await operator.upsert(specFor('gone')), 409, 'SUBDOMAIN_CONFLICT'],
      [await operator.upsert(specFor('gone', { organizationId })), 410, 'ORGANIZATION_DELETED'],
      [await setPublicStatus(organizationId, 'Active'), 404, 'ORGANIZATION_NOT_FOUND'],
    ] as const;
    for (const [answer, status, code] of refusals) {
      expect([answer.statusCode, answer.json().code]).toEqual([status, code]);
    }
    await purgeDeletedOrganizations(tenant);
    expect((await operator.read(spec.resourceUid)).json()).toMatchObject({ userCount: 1 });
    const later = {
      db: tenant.db,
      clock: { ...tenant.clock, nowMs: () => Date.now() + deletedGraceMs + 60_000 },
    };
    await Promise.all([purgeDeletedOrganizations(later), purgeDeletedOrganizations(later)]);
    expect((await operator.read(spec.resourceUid)).json()).toMatchObject({
      userCount: 0,
      state: 'Terminating',
    });
    expect((await auditOf(tenant, organizationId)).filter((type) => type.startsWith('Organization'))).toEqual(
      ['OrganizationCreated', 'OrganizationDeleted', 'OrganizationPurged'],
    );
    expect((await operator.upsert(specFor('gone'))).statusCode).toBe(409);
  });

  it('platform organisations cannot be suspended or deleted, not even by a resource that is bound to one', async () => {
    const resourceUid = randomUUID();
    await tenant.db.transact((tx) =>
      sql`UPDATE organizations SET resource_uid = ${resourceUid} WHERE id = ${SYSTEM_ORGANIZATION_ID}`.execute(
        tx,
      ),
    );
    const refusals = [
      await operator.remove(resourceUid, 'Delete'),
      await operator.remove(resourceUid, 'Suspend'),
      await operator.setStatus(resourceUid, 'Suspended'),
    ];
    for (const answer of refusals) {
      expect([answer.statusCode, answer.json().code]).toEqual([409, 'PLATFORM_ORG_PROTECTED']);
    }
    expect((await operator.read(resourceUid)).json()).toMatchObject({ state: 'Active', version: 1 });
    expect((await operator.remove(resourceUid, 'Retain')).statusCode).toBe(204);
  });

  it('releasing a uid without an organisation succeeds; a release needs a policy', async () => {
    for (const policy of ['Retain', 'Suspend', 'Delete']) {
      expect((await operator.remove(randomUUID(), policy)).statusCode).toBe(204);
    }
    expect((await operator.remove(randomUUID(), 'Burn')).statusCode).toBe(400);
    expect((await operator.setStatus(randomUUID(), 'Active')).statusCode).toBe(404);
    const { spec } = await made('no-policy');
    expect((await operator.call('DELETE', `${base}/by-uid/${spec.resourceUid}`)).statusCode).toBe(400);
    expect((await operator.read(spec.resourceUid)).json()).toMatchObject({ state: 'Active' });
  });
});
