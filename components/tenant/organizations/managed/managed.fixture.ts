import { randomUUID } from 'node:crypto';
import { tokenPath } from '../../platform/principals/token-listener.ts';
import { bearer, formOf, grant, type TestTenant } from '../../tenant.fixture.ts';

export const base = '/api/internal/organizations';
export const memberPassword = 'velvet harbour nine lanterns';

/** The token of a service by its secret, narrowed to scopes when they are named. */
export async function serviceToken(tenant: TestTenant, clientId: string, scope?: string): Promise<string> {
  const form = formOf({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: tenant.files.secretOf(clientId),
    ...(scope === undefined ? {} : { scope }),
  });
  return (await tenant.internal.inject({ ...form, url: tokenPath })).json().access_token;
}

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** The operator on one replica. */
export async function operatorOf(tenant: TestTenant) {
  const token = await serviceToken(tenant, 'service-operator');
  const call = (method: Method, url: string, payload?: object) =>
    tenant.app.inject({ method, url, headers: bearer(token), ...(payload === undefined ? {} : { payload }) });
  return {
    token,
    call,
    upsert: (spec: object) => call('POST', base, spec),
    read: (resourceUid: string) => call('GET', `${base}/by-uid/${resourceUid}`),
    setStatus: (resourceUid: string, status: string) =>
      call('PUT', `${base}/by-uid/${resourceUid}/status`, { status }),
    remove: (resourceUid: string, policy: string) =>
      call('DELETE', `${base}/by-uid/${resourceUid}?policy=${policy}`),
  };
}

/** A spec of a new organisation, with a new uid. */
export function specFor(subdomain: string, extra: object = {}) {
  return { resourceUid: randomUUID(), name: `The ${subdomain}`, subdomain, ...extra };
}

/** Adds a member who belongs to no other organisation; returns the e-mail address to sign in with. */
export async function addMember(
  tenant: TestTenant,
  organizationId: string,
  roles = ['User'],
): Promise<string> {
  const email = `${randomUUID()}@example.org`;
  const answer = await tenant.app.inject({
    method: 'POST',
    url: `/api/organizations/${organizationId}/users`,
    headers: bearer((await grant(tenant)).access_token),
    payload: { email, displayName: 'A User', password: memberPassword, roles },
  });
  if (answer.statusCode !== 201) throw new Error(`${answer.statusCode} ${answer.body}`);
  return email;
}

/** The types of the audit events of an organisation, oldest first. */
export async function auditOf(tenant: TestTenant, organizationId: string): Promise<string[]> {
  const rows = await tenant.db.read
    .selectFrom('audit_events')
    .select('event_type')
    .where('organization_id', '=', organizationId)
    .orderBy('id')
    .execute();
  return rows.map((row) => row.event_type);
}
