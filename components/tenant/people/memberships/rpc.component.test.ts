import { create } from '@bufbuild/protobuf';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import { FindMemberRequestSchema } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { bearer, grant, startTestTenant, type TestTenant, type TokenBody } from '../../tenant.fixture.ts';
import { mayFindMembers, membershipRpc } from './rpc.ts';

const password = 'paper lantern on the river';
let tenant: TestTenant;
let root: string;

beforeAll(async () => {
  tenant = await startTestTenant('tenant_members');
  root = (await grant(tenant)).access_token;
});

afterAll(() => tenant.stop());

const send = (method: 'POST' | 'DELETE', url: string, payload?: object) =>
  tenant.app.inject({ method, url, headers: bearer(root), ...(payload === undefined ? {} : { payload }) });

/** The person that the service finds by an id. */
async function find(organizationId: string, userId: string): Promise<string | undefined> {
  const { clientId, spiffeId } = {
    clientId: 'service-wallet',
    spiffeId: serviceSpiffeId('x', 'service-wallet'),
  };
  const context = { peer: { clientId, spiffeId }, signal: new AbortController().signal };
  const request = create(FindMemberRequestSchema, { organizationId, userId });
  return (await membershipRpc(tenant.db.read).findMember(request, context)).platformUserId;
}

test('a member is found by both ids while active, in that organisation alone', async () => {
  const { id: organizationId } = (
    await send('POST', '/api/organizations', { name: 'acme', subdomain: 'acme' })
  ).json();
  const account = { email: 'ann@acme.example', password };
  const users = `/api/organizations/${organizationId}/users`;
  const { id } = (await send('POST', users, { ...account, displayName: 'Ann', roles: ['User'] })).json();
  const answer = await tenant.app.inject({ method: 'POST', url: '/api/auth/login', payload: account });
  const { platform_user_id: person } = decodeJwt<{ platform_user_id: string }>(
    answer.json<TokenBody>().access_token,
  );
  expect(await find(organizationId, id)).toBe(person);
  expect(await find(organizationId.toUpperCase(), person.toUpperCase())).toBe(person);
  expect(await find(SYSTEM_ORGANIZATION_ID, person)).toBeUndefined();
  for (const text of ['', 'ann', '%', person.slice(1)]) {
    expect(await find(organizationId, text)).toBeUndefined();
    expect(await find(text, person)).toBeUndefined();
  }
  await send('POST', `${users}/${id}/suspend`);
  expect(await find(organizationId, id)).toBeUndefined();
  await send('POST', `${users}/${id}/reactivate`);
  expect(await find(organizationId, id)).toBe(person);
  await send('DELETE', `${users}/${id}`);
  expect(await find(organizationId, id)).toBeUndefined();
});

test('only the wallet service asks', () => {
  const asks = (clientId: string) => mayFindMembers({ clientId, spiffeId: 'spiffe://x/y' });
  expect(['service-wallet', 'service-register', 'validator-0'].filter(asks)).toEqual(['service-wallet']);
});
