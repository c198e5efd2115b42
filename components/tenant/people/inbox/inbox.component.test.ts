import { randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { tokenPath } from '../../platform/principals/token-listener.ts';
import { reportLocks } from '../../sign-in/lockout/report-locks.ts';
import {
  bearer,
  formOf,
  grant,
  startTestTenant,
  type TestTenant,
  type TokenBody,
} from '../../tenant.fixture.ts';

const password = 'copper bells before noon';

interface Listed {
  readonly id: string;
  readonly title: string;
  readonly category: string;
  readonly readAt: string | null;
  readonly dismissedAt: string | null;
}

describe('the inbox of a person', () => {
  let tenant: TestTenant;
  let root: string;
  let wallet: string;
  let acme: string;
  let count = 0;
  let anna: { readonly token: string; readonly id: string };

  const send = (method: 'GET' | 'POST' | 'PUT' | 'DELETE', url: string, token: string, payload?: object) =>
    tenant.app.inject({ method, url, headers: bearer(token), ...(payload === undefined ? {} : { payload }) });
  const login = (email: string, text = password, tier?: string) =>
    tenant.app.inject({ method: 'POST', url: '/api/auth/login', payload: { email, password: text, tier } });
  const person = async (name: string) => {
    const email = `${name}${count}@acme.example`;
    const user = { email, displayName: name, password, roles: ['User'] };
    const added = (await send('POST', `/api/organizations/${acme}/users`, root, user)).json();
    const token = (await login(email)).json<TokenBody>().access_token;
    return { token, email, userId: added.id, id: String(decodeJwt(token)['platform_user_id']) };
  };
  const serviceToken = async (scope?: string): Promise<string> => {
    const client_id = 'service-wallet';
    const grant = {
      grant_type: 'client_credentials',
      client_id,
      client_secret: tenant.files.secretOf(client_id),
    };
    const form = formOf(scope === undefined ? grant : { ...grant, scope });
    return (await tenant.internal.inject({ ...form, url: tokenPath })).json().access_token;
  };
  const write = (change: object = {}, token = wallet) =>
    send('POST', '/api/internal/inbox', token, {
      platformUserId: anna.id,
      category: 'Credential',
      correlationKey: 'credential:7',
      title: 'A credential is ready',
      sourceEventId: randomUUID(),
      ...change,
    });
  const entries = async (query = '', token = anna.token): Promise<readonly Listed[]> =>
    (await send('GET', `/api/me/inbox${query}`, token)).json().entries;
  const titles = async (query = '', token = anna.token) =>
    (await entries(query, token)).map(({ title }) => title);
  const unread = async (token = anna.token) =>
    (await send('GET', '/api/me/inbox/unread-count', token)).json().unread;
  const act = async (id: string, what: string, token = anna.token) =>
    (await send('POST', `/api/me/inbox/${id}/${what}`, token)).statusCode;

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_inbox', { CHANCERY_PUBLIC_ORG_ENABLED: 'true' });
    root = (await grant(tenant)).access_token;
    wallet = await serviceToken();
    const made = await send('POST', '/api/organizations', root, { name: 'Acme', subdomain: 'acme' });
    acme = made.json().id;
  });
  afterAll(() => tenant.stop());

  beforeEach(async () => {
    count += 1;
    anna = await person('anna');
    // removes the entry about the membership
    await send('POST', '/api/me/inbox/mark-all-read', anna.token);
    const [first] = await entries();
    await act(first?.id ?? '', 'dismiss');
  });

  it('shows an entry of a service under the client id of its token', async () => {
    const occurredAt = '2026-11-20T10:00:00.000Z';
    const sourceEventId = randomUUID();
    const newEntry = {
      severity: 'ActionRequired',
      summary: 'Fetch it within a week.',
      iconKey: 'credential.ready',
      detailHref: '/api/v1/credentials/7',
      sourceEventId,
      occurredAt,
      writerServiceId: 'service-operator',
    };
    const answer = await write(newEntry);
    const entry = {
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      category: 'Credential',
      severity: 'ActionRequired',
      correlationKey: 'credential:7',
      title: 'A credential is ready',
      summary: 'Fetch it within a week.',
      iconKey: 'credential.ready',
      detailHref: '/api/v1/credentials/7',
      sourceEventId,
      occurredAt,
      readAt: null,
      dismissedAt: null,
      channelHints: ['Inbox', 'Push'],
      writerServiceId: 'service-wallet',
    };
    expect([answer.statusCode, answer.json()]).toEqual([
      201,
      { entry: { ...entry, platformUserId: anna.id }, idempotent: false },
    ]);
    const list = await send('GET', '/api/me/inbox', anna.token);
    expect(list.json()).toEqual({ entries: [entry], page: 1, pageSize: 20, total: 1, totalCount: 1 });
    const { id } = answer.json().entry;
    for (const written of [id, id.replaceAll('-', ''), id.toUpperCase()]) {
      expect((await send('GET', `/api/me/inbox/${written}`, anna.token)).json()).toEqual(entry);
    }
  });

  it('one event of one person is one entry, also when it is submitted twice concurrently', async () => {
    const sourceEventId = randomUUID();
    const answers = await Promise.all(Array.from({ length: 10 }, () => write({ sourceEventId })));
    const statuses = answers.map(({ statusCode }) => statusCode).toSorted((a, b) => a - b);
    expect(statuses).toEqual([...Array.from({ length: 9 }, () => 200), 201]);
    expect(new Set(answers.map((answer) => answer.json().entry.id)).size).toBe(1);
    const again = await write({ sourceEventId, title: 'Another text' });
    expect([again.statusCode, again.json()]).toMatchObject([
      200,
      { idempotent: true, entry: { title: 'A credential is ready' } },
    ]);
    const ben = await person('ben');
    expect((await write({ sourceEventId, platformUserId: ben.id })).statusCode).toBe(201);
    expect(await unread()).toBe(1);
  });

  it('counts, reads and dismisses; a repetition changes nothing', async () => {
    for (const title of ['one', 'two', 'three', 'four']) await write({ title });
    expect(await unread()).toBe(4);
    const [four, three, two] = await entries();
    expect(await act(four?.id ?? '', 'read')).toBe(204);
    const readAt = (await entries())[0]?.readAt;
    tenant.clock.advance(10);
    expect(await act(four?.id ?? '', 'read')).toBe(204);
    expect((await entries())[0]?.readAt).toBe(readAt);
    expect(await unread()).toBe(3);
    expect(await act(three?.id ?? '', 'dismiss')).toBe(204);
    expect(await act(three?.id ?? '', 'dismiss')).toBe(204);
    expect(await unread()).toBe(2);
    expect(await titles()).toEqual(['four', 'two', 'one']);
    expect(await titles('?unreadOnly=true')).toEqual(['two', 'one']);
    expect((await titles('?includeDismissed=true')).slice(0, 4)).toEqual(['four', 'three', 'two', 'one']);
    expect((await send('GET', `/api/me/inbox/${three?.id}`, anna.token)).json().dismissedAt).not.toBeNull();
    expect((await send('POST', '/api/me/inbox/mark-all-read', anna.token)).json()).toEqual({ marked: 2 });
    expect((await send('POST', '/api/me/inbox/mark-all-read', anna.token)).json()).toEqual({ marked: 0 });
    expect(await unread()).toBe(0);
    expect((await entries()).every((one) => one.readAt !== null)).toBe(true);
    expect(two?.readAt).toBeNull();
  });

  it('pages newest first and filters by category', async () => {
    for (let n = 1; n <= 5; n += 1) {
      await write({
        title: `${n}`,
        category: n === 3 ? 'Workflow' : 'Action',
        occurredAt: `2026-11-0${n}T00:00:00Z`,
      });
    }
    expect(await titles('?pageSize=2')).toEqual(['5', '4']);
    expect(await titles('?pageSize=2&page=3')).toEqual(['1']);
    expect(await titles('?category=Workflow')).toEqual(['3']);
    const answer = await send('GET', '/api/me/inbox?pageSize=1000&category=Action', anna.token);
    expect(answer.json()).toMatchObject({ pageSize: 100, total: 4, totalCount: 4 });
    for (const query of ['category=Nothing', 'unreadOnly=perhaps', 'page=x']) {
      const refused = await send('GET', `/api/me/inbox?${query}`, anna.token);
      expect([refused.statusCode, refused.json().code]).toEqual([400, 'INVALID_REQUEST']);
    }
  });

  it('only the person reads it, and it is the same in every tier', async () => {
    const { id } = (await write()).json().entry;
    const ben = await person('ben');
    expect(await titles('?category=Credential', ben.token)).toEqual([]);
    for (const what of ['read', 'dismiss']) expect(await act(id, what, ben.token)).toBe(404);
    for (const missing of [id, randomUUID(), 'x']) {
      expect((await send('GET', `/api/me/inbox/${missing}`, ben.token)).statusCode).toBe(404);
    }
    expect(await unread()).toBe(1);
    const consumer = await login(`anna${count}@acme.example`, password, 'consumer');
    expect(await titles('', consumer.json<TokenBody>().access_token)).toEqual(['A credential is ready']);
    expect((await send('GET', '/api/me/inbox', wallet)).statusCode).toBe(403);
    expect((await tenant.app.inject({ url: '/api/me/inbox' })).statusCode).toBe(401);
  });

  it.each([
    [{ title: '' }, 400],
    [{ title: 'x'.repeat(201) }, 400],
    [{ summary: 'x'.repeat(1001) }, 400],
    [{ correlationKey: undefined }, 400],
    [{ sourceEventId: undefined }, 400],
    [{ platformUserId: undefined }, 400],
    [{ category: 'Nothing' }, 400],
    [{ detailHref: '/settings' }, 400],
    [{ detailHref: 'https://elsewhere.example/api/' }, 400],
    [{ detailHref: '/api/a b' }, 400],
    [{ channelHints: ['Pigeon'] }, 400],
    [{ channelHints: 8 }, 400],
    [{ platformUserId: '00000000-0000-4000-8000-000000000000' }, 404],
  ])('refuses an entry with %j', async (change, status) => {
    expect((await write(change)).statusCode).toBe(status);
    expect(await titles()).toEqual([]);
  });

  it.each([
    [['Email'], ['Email']],
    ['Push, Inbox', ['Push', 'Inbox']],
    [5, ['Inbox', 'Email']],
    [0, []],
  ])('parses channel hints %j', async (channelHints, read) => {
    expect((await write({ channelHints })).json().entry.channelHints).toEqual(read);
  });

  it('only services with the scope may write entries', async () => {
    expect((await write({}, root)).statusCode).toBe(403);
    expect((await write({}, await serviceToken('registers:read'))).statusCode).toBe(403);
  });

  it('has entries about memberships: added, changed roles, removed', async () => {
    const ben = await person('ben');
    const url = `/api/organizations/${acme}/users/${ben.userId}`;
    await send('PUT', `${url}/role`, root, { role: 'Auditor' });
    await send('POST', `${url}/suspend`, root);
    await send('POST', `${url}/reactivate`, root);
    await send('DELETE', url, root);
    const user = { email: ben.email, displayName: 'ben', password, roles: ['Designer'] };
    await send('POST', `/api/organizations/${acme}/users`, root, user);
    const { access_token } = (await login(ben.email)).json<TokenBody>();
    const entries = (await send('GET', '/api/me/inbox', access_token)).json().entries;
    const byIcon = Object.groupBy(entries, ({ iconKey }: { iconKey: string }) => iconKey);
    expect(Object.keys(byIcon).toSorted()).toEqual([
      'membership.added',
      'membership.removed',
      'membership.role-changed',
    ]);
    expect(byIcon['membership.added']).toHaveLength(2);
    expect(byIcon['membership.role-changed']).toMatchObject([
      {
        category: 'Membership',
        severity: 'Info',
        correlationKey: `membership:${acme}`,
        title: 'Your roles in Acme have changed',
        summary: 'Roles: Auditor.',
        detailHref: `/api/organizations/${acme}`,
        channelHints: ['Inbox', 'Email'],
        writerServiceId: 'service-tenant',
      },
    ]);
    // the link of the entry resolves
    expect((await send('GET', `/api/organizations/${acme}`, access_token)).statusCode).toBe(200);
  });

  it('has entries about account security: a lock, and a session whose refresh token was reused', async () => {
    const ben = await person('ben');
    const tokens = (await login(ben.email)).json<TokenBody>();
    const refresh = (refreshToken: string) =>
      tenant.app.inject({ method: 'POST', url: '/api/auth/token/refresh', payload: { refreshToken } });
    const next = (await refresh(tokens.refresh_token)).json<TokenBody>();
    await refresh(next.refresh_token);
    expect((await refresh(tokens.refresh_token)).statusCode).toBe(401);
    for (let n = 0; n < 5; n += 1) {
      await tenant.app.inject({
        method: 'POST',
        url: '/api/auth/login',
        remoteAddress: '198.51.100.7',
        payload: { email: ben.email, password: 'not the password' },
      });
    }
    await reportLocks(tenant);
    const page = await send('GET', '/api/me/inbox?category=Security', ben.token);
    const { entries: security } = page.json() as { entries: { iconKey: string; severity: string }[] };
    expect(security.map(({ iconKey, severity }) => [iconKey, severity])).toEqual([
      ['security.account-locked', 'Warning'],
      ['security.refresh-reuse', 'Warning'],
    ]);
  });
});
