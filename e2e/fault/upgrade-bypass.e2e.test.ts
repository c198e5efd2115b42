import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RouteRule, routingTable } from '../../components/gateway/routing/table.ts';
import { handshakeTo, openRawClient, type RawClient } from '../../components/gateway/testing/client.ts';
import {
  type RawConnection,
  type RawService,
  secret,
  startRawService,
} from '../../components/gateway/testing/raw-service.ts';
import {
  createTestWorld,
  spiffeId,
  type TestGateway,
  type TestWorld,
} from '../../components/gateway/testing/world.ts';
import { createOperator } from '../harness/operator.ts';
import { mintWithSvid } from '../harness/service-token.ts';
import { installation } from '../harness/shared-system.ts';
import { until } from '../harness/wait.ts';
import { badHandshakes, hub, type ServiceAnswer, serviceAnswers } from './handshakes.ts';

/** A table that lets one hub upgrade, as the installation's will once a service serves WebSockets. */
const withHub: readonly RouteRule[] = [
  { path: '/hubs/register/**', service: 'register', webSocket: true },
  ...routingTable,
];

const behind = [
  'GET /api/internal/x HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n',
  'POST /api/internal/inbox HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}',
].join('');

const ended = (client: RawClient) =>
  until('the end of the connection', 10_000, async () => client.isClosed() || undefined);
const statusOf = (client: RawClient) => Number(/^HTTP\/1\.1 (\d{3}) /.exec(client.text())?.[1]);
const heads = (client: RawClient) => client.text().match(/HTTP\/1\.1 \d{3} /g)?.length;

describe('a gateway before a service that serves whatever comes', () => {
  let world: TestWorld;
  let service: RawService;
  let gateway: TestGateway;
  let answer: ServiceAnswer | undefined;

  const writeParts = async (connection: RawConnection) => {
    for (const part of answer?.parts(connection) ?? []) {
      await new Promise((resolve) => connection.socket.write(part, 'latin1', resolve));
    }
  };

  beforeAll(async () => {
    world = await createTestWorld();
    const identity = await world.authority.issue(spiffeId('service-register'));
    service = await startRawService(identity, (connection) => void writeParts(connection));
    gateway = await world.startGateway(
      { register: service.address },
      { CHANCERY_GATEWAY_ANSWER_SECONDS: '1' },
      withHub,
    );
  });
  afterAll(async () => {
    await world.stop();
    await service.stop();
  });

  test.each(badHandshakes)(
    'refuses a handshake with $name, and serves nothing behind it',
    async ({ bytes, status }) => {
      const before = service.connections.length;
      const client = openRawClient(gateway.port);
      client.write(`${bytes}${behind}`);
      await ended(client);
      expect([statusOf(client), heads(client)]).toEqual([status, 1]);
      expect(client.text()).toMatch(/\r\nconnection: close/i);
      if (status === 426) expect(client.text()).toMatch(/\r\nsec-websocket-version: 13\r\n/i);
      if (!bytes.startsWith('HEAD')) expect(client.text()).toMatch(/"traceId":"[0-9a-f]{32}"/);
      expect(service.connections.length).toBe(before);
    },
  );

  test('refuses bytes right behind a handshake before the service hears of it', async () => {
    const before = service.connections.length;
    const client = openRawClient(gateway.port);
    client.write(`${handshakeTo(hub)}${behind}`);
    await ended(client);
    expect([statusOf(client), heads(client)]).toEqual([400, 1]);
    expect(service.connections.length).toBe(before);
  });

  test('refuses bytes that come before the answer, and ends both connections', async () => {
    answer = { name: 'nothing', parts: () => [], statuses: [] };
    const client = openRawClient(gateway.port);
    const before = service.connections.length;
    client.write(handshakeTo(hub));
    const connection = await until('the handshake', 10_000, async () => {
      const found = service.connections[before];
      return found?.received.endsWith('\r\n\r\n') ? found : undefined;
    });
    client.write(behind);
    await ended(client);
    expect([statusOf(client), heads(client)]).toEqual([400, 1]);
    await until('the end at the service', 10_000, async () => connection.socket.destroyed || undefined);
    expect(connection.received).not.toContain('internal');
  });

  test.each(serviceAnswers)('lets nothing past an answer: $name', async (given) => {
    answer = given;
    const before = service.connections.length;
    const client = openRawClient(gateway.port);
    client.write(handshakeTo(hub));
    await until(
      'an answer',
      10_000,
      async () => client.text().includes('\r\n\r\n') || client.isClosed() || undefined,
    );
    const status = statusOf(client);
    expect(given.statuses).toContain(status);
    client.write(behind);
    if (status === 101) {
      // the service has agreed: what follows is a WebSocket's
      await until('the tunnel', 10_000, async () => client.text().includes(secret) || undefined);
      client.socket.destroy();
    } else {
      await ended(client);
      expect(client.text()).toMatch(/\r\nconnection: close/i);
      expect(client.text()).not.toContain(secret);
      expect(heads(client)).toBe(1);
    }
    const connection = service.connections[before];
    await until('the end at the service', 10_000, async () => connection?.socket.destroyed || undefined);
    expect(service.connections.length).toBe(before + 1);
    const requests = connection?.received.match(/ HTTP\/1\.1\r\n/g)?.length;
    expect(requests).toBe(status === 101 ? 3 : 1);
  });
});

describe('an installation', () => {
  const here = installation(['--processes']);
  const portOf = () => Number(new URL(here.state.gatewayUrl).port);

  test('serves its document whole or not at all, from the start on', async () => {
    const whole = await until('the merged document', 30_000, async () => {
      const answer = await here.api.send('GET', '/openapi.json');
      if (answer.status === 200) return answer;
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
      return undefined;
    });
    const paths = Object.keys((whole.body as { paths: object }).paths);
    for (const path of [
      '/health',
      '/api/auth/me',
      '/api/v1/wallets',
      '/api/registers',
      '/api/v1/transactions/validate',
    ])
      expect(paths).toContain(path);
  });

  test.each([
    ['as it was reported', 'Connection: Upgrade\r\nUpgrade: websocket'],
    [
      'with a sound handshake',
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13',
    ],
    ['as h2c', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk'],
  ])('gives no document of a service behind an upgrade %s', async (_name, headers) => {
    for (const path of ['/hubs/tenant/x', '/hubs/register/x', '/hubs/wallet/x', '/api/me/x']) {
      const first = `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n`;
      const client = openRawClient(portOf());
      client.write(`${first}GET /openapi.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      await until('an answer', 10_000, async () => client.text().includes('\r\n\r\n') || undefined);
      client.write('GET /openapi.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      await ended(client);
      expect([401, 404]).toContain(statusOf(client));
      expect(client.text(), path).not.toContain('api/internal');
    }
  });

  test('writes nothing to an inbox from behind an upgrade', async () => {
    const me = await here.api.expect(200, 'GET', '/api/auth/me', { token: here.token() });
    const { token } = await mintWithSvid(here.state, 'service-wallet');
    const entry = JSON.stringify(entryFor((me.body as { platformUserId: string }).platformUserId));
    const post = `POST /api/internal/inbox HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${entry.length}\r\nConnection: close\r\n\r\n${entry}`;
    const client = openRawClient(portOf());
    client.write(`${handshakeTo('/hubs/tenant/x')}${post}`);
    await until('an answer', 10_000, async () => client.text().includes('\r\n\r\n') || undefined);
    client.write(post);
    await ended(client);
    expect(client.text()).not.toMatch(/ 20[01] /);
    const inbox = await here.api.expect(200, 'GET', '/api/me/inbox', { token: here.token() });
    expect(JSON.stringify(inbox.body)).not.toContain('from behind');
  });

  test("refuses its gateway on internal routes, with a service's own token too", async () => {
    const me = await here.api.expect(200, 'GET', '/api/auth/me', { token: here.token() });
    const entry = entryFor((me.body as { platformUserId: string }).platformUserId);
    const { call } = createOperator(here.state);
    const line = 'POST /api/internal/inbox';
    const by = (certificate: string, token: string | undefined) =>
      call('tenant', line, entry, { certificate, token });
    expect((await by('service-gateway', 'service-wallet')).status).toBe(403);
    expect((await by('service-gateway', undefined)).status).toBe(403);
    expect((await by('service-register', 'service-wallet')).status).toBe(403);
    expect((await by('service-wallet', 'service-wallet')).status).toBe(201);
  });
});

function entryFor(platformUserId: string) {
  return {
    platformUserId,
    category: 'System',
    severity: 'Info',
    correlationKey: 'upgrade-bypass',
    title: 'from behind',
    sourceEventId: randomUUID(),
  };
}
