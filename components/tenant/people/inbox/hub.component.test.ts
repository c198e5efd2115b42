import { randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TENANT_HUB_EVENTS, type TenantHubEvent } from '#core/events/hub-events.ts';
import { listenHttp } from '#kit/http/http.ts';
import { connectClient, transports } from '#kit/hub/hub.fixture.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { tokenPath } from '../../platform/principals/token-listener.ts';
import {
  bearer,
  formOf,
  grant,
  startReplica,
  startTestTenant,
  type TestTenant,
} from '../../tenant.fixture.ts';

const names = Object.keys(TENANT_HUB_EVENTS) as TenantHubEvent[];
const password = 'copper bells before noon';

interface Person {
  readonly token: string;
  readonly id: string;
}

describe('the tenant hub', () => {
  let tenant: TestTenant;
  let url: string;
  let root: string;
  let wallet: string;
  let acme: string;
  let people = 0;

  const listen = async ({ app, startHub }: TestTenant) => {
    await startHub();
    return `http://127.0.0.1:${await listenHttp(app, { host: '127.0.0.1', port: 0 })}/hubs/tenant`;
  };
  const send = (method: 'POST' | 'PUT', path: string, token: string, payload: object = {}) =>
    tenant.app.inject({ method, url: path, headers: bearer(token), payload });

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_hub');
    url = await listen(tenant);
    root = (await grant(tenant)).access_token;
    const client = {
      grant_type: 'client_credentials',
      client_id: 'service-wallet',
      client_secret: tenant.files.secretOf('service-wallet'),
    };
    wallet = (await tenant.internal.inject({ ...formOf(client), url: tokenPath })).json().access_token;
    const made = await send('POST', '/api/organizations', root, { name: 'Acme', subdomain: 'acme' });
    acme = made.json().id;
  });
  afterAll(() => tenant.stop());

  async function person(): Promise<Person & { readonly userId: string }> {
    people += 1;
    const email = `person${people}@acme.example`;
    const user = { email, displayName: 'Person', password, roles: ['User'] };
    const added = await send('POST', `/api/organizations/${acme}/users`, root, user);
    const login = { method: 'POST', url: '/api/auth/login', payload: { email, password } } as const;
    const token: string = (await tenant.app.inject(login)).json().access_token;
    return { token, id: String(decodeJwt(token)['platform_user_id']), userId: added.json().id };
  }
  const write = async (platformUserId: string): Promise<string> => {
    const entry = { platformUserId, category: 'System', correlationKey: 'x', title: 'A secret title' };
    const written = await send('POST', '/api/internal/inbox', wallet, {
      ...entry,
      sourceEventId: randomUUID(),
    });
    return written.json().entry.id;
  };
  async function follow(at: string, { token }: Person, transport?: (typeof transports)[number][1]) {
    const client = await connectClient(at, { token, ...(transport !== undefined && { transport }) });
    const heard: { readonly name: string; readonly args: readonly unknown[] }[] = [];
    for (const name of [...names, 'Replayed'] as const) {
      client.connection.on(name, (...args: unknown[]) => heard.push({ name, args }));
    }
    return {
      ...client,
      heard,
      added: () => heard.flatMap(({ name, args }) => (name === 'InboxEntryAdded' ? [args[0]] : [])),
      unread: () => heard.findLast(({ name }) => name === 'InboxUnreadCountUpdated')?.args[0],
    };
  }

  it.each(transports)('tells a person of each change of the inbox, over %s', async (_name, by) => {
    const [anna, ben] = [await person(), await person()];
    const [client, other] = [await follow(url, anna, by), await follow(url, ben, by)];
    await send('POST', '/api/me/inbox/mark-all-read', anna.token);
    await waitFor(() => client.unread() === 0);
    const entryId = await write(anna.id);
    await waitFor(() => client.unread() === 1);
    expect(client.heard.slice(-2).map(({ name }) => name)).toEqual(names);
    expect(client.added().at(-1)).toBe(entryId);
    await send('POST', `/api/me/inbox/${entryId}/read`, anna.token);
    await waitFor(() => client.unread() === 0);
    await write(anna.id);
    await waitFor(() => client.unread() === 1);
    await send('POST', `/api/me/inbox/${await write(anna.id)}/dismiss`, anna.token);
    await waitFor(() => client.added().length === 3 && client.unread() === 1);
    for (const { name, args } of client.heard) {
      expect(TENANT_HUB_EVENTS[name as TenantHubEvent].parse(args)).toEqual(args);
    }
    expect(JSON.stringify(client.heard)).not.toContain('secret');
    await write(ben.id);
    await waitFor(() => other.added().length === 1);
    expect(client.added()).toHaveLength(3);
  });

  it('repeats what happened since, to that person alone', async () => {
    const [anna, ben] = [await person(), await person()];
    const first = await follow(url, anna);
    const seen = await write(anna.id);
    await waitFor(() => first.added().includes(seen));
    await first.connection.stop();
    const since = String(first.heard.at(-1)?.args[1]);
    const missed = [await write(anna.id), await write(anna.id)];
    const foreign = await write(ben.id);
    const again = await follow(`${url}?since=${encodeURIComponent(since)}`, anna);
    await waitFor(() => again.heard.some(({ name }) => name === 'Replayed'));
    // What a running transaction holds back comes after the replay, and what the client has seen may be repeated.
    await waitFor(() => missed.every((id) => again.added().includes(id)));
    const heard = [...new Set(again.added().map(String))];
    expect(heard.filter((id) => missed.includes(id))).toEqual(missed);
    expect(again.added()).not.toContain(foreign);
    expect(again.heard.find(({ name }) => name === 'Replayed')?.args[1]).toBe(true);
    const later = await write(anna.id);
    await waitFor(() => again.added().includes(later));
  });

  it('signals a change at one replica to the clients of another one', async () => {
    const replica = await startReplica({ ...tenant.files, remove: async () => undefined });
    try {
      const anna = await person();
      const client = await follow(await listen(replica), anna);
      const entryId = await write(anna.id);
      await waitFor(() => client.added().includes(entryId));
    } finally {
      await replica.stop();
    }
  });

  it('closes the connections of a person whose tokens were revoked', async () => {
    const anna = await person();
    const client = await follow(url, anna);
    await send('PUT', `/api/organizations/${acme}/users/${anna.userId}/role`, root, { role: 'Auditor' });
    await waitFor(() => client.closed.count === 1);
  });

  it('refuses services, strangers and malformed times', async () => {
    for (const [token, status] of [
      [wallet, 401],
      ['x', 401],
    ] as const) {
      const answer = await send('POST', '/hubs/tenant/negotiate?negotiateVersion=1', token);
      expect(answer.statusCode).toBe(status);
      await expect(connectClient(url, { token, skipNegotiation: true })).rejects.toThrow();
    }
    expect((await tenant.app.inject({ method: 'POST', url: '/hubs/tenant/negotiate' })).statusCode).toBe(401);
    const { token } = await person();
    await expect(connectClient(`${url}?since=yesterday`, { token })).rejects.toThrow();
  });
});
