import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { handshakeTo, openRawClient, sampleKey } from '#kit/testing/raw-client.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { acceptOf } from './forwarding/handshake.ts';
import { agreement, type RawService, type Script, startRawService } from './testing/raw-service.ts';
import {
  call,
  createTestWorld,
  routingTable,
  sendRaw,
  spiffeId,
  type TestGateway,
  type TestWorld,
} from './testing/world.ts';

const hub = '/hubs/register/x';

/** Agrees, and echoes every byte after the handshake. */
const echo: Script = (connection) => {
  connection.socket.write(agreement(connection));
  connection.socket.on('data', (chunk: Buffer) => connection.socket.write(`echo:${chunk}`));
};

describe('WebSocket pass-through', () => {
  let world: TestWorld;
  let gateway: TestGateway;
  let service: RawService;
  let script: Script = echo;

  beforeAll(async () => {
    world = await createTestWorld();
    const identity = await world.authority.issue(spiffeId('service-register'));
    service = await startRawService(identity, (connection) => script(connection));
    const services = { register: service.address, tenant: '127.0.0.1:9' };
    gateway = await world.startGateway(services, { CHANCERY_GATEWAY_ANSWER_SECONDS: '1' });
  });

  afterAll(async () => {
    await world.stop();
    await service.stop();
  });

  function open(bytes: string, answer: Script = echo) {
    script = answer;
    const client = openRawClient(gateway.port);
    onTestFinished(() => void client.socket.destroy());
    client.write(bytes);
    return client;
  }

  const opened = async (bytes: string, answer: Script = echo) => {
    const client = open(bytes, answer);
    await waitFor(() => client.text().includes('\r\n\r\n'), { what: 'the answer to the handshake' });
    return client;
  };
  const observed = (path: string) =>
    waitFor(() => world.runtime.lines.find((line) => line['path'] === path && line['msg'] === 'request'));

  it('forwards bytes in both directions after an agreement', async () => {
    const client = await opened(
      handshakeTo(`${hub}?access_token=secret`, {
        'x-forwarded-for': '6.6.6.6',
        'sec-websocket-protocol': 'chat',
        connection: 'keep-alive, Upgrade, sec-websocket-protocol, sec-websocket-key',
      }),
      (connection) => {
        connection.socket.write(`${agreement(connection, { 'sec-websocket-protocol': 'chat' })}first`);
        connection.socket.on('data', (chunk: Buffer) => connection.socket.write(`echo:${chunk}`));
      },
    );
    await waitFor(() => client.text().endsWith('first'));
    expect(client.text()).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/);
    expect(client.text()).toContain(`sec-websocket-accept: ${acceptOf(sampleKey)}\r\n`);
    expect(client.text()).toContain('sec-websocket-protocol: chat\r\n');
    expect(client.text()).toContain('x-api-version: 1\r\n');
    client.write('hello');
    await waitFor(() => client.text().endsWith('echo:hello'));
    const connection = service.connections.at(-1);
    expect(connection?.received).toMatch(/^GET \/hubs\/register\/x\?access_token=secret HTTP\/1\.1\r\n/);
    expect(connection?.received).toMatch(/\r\nx-forwarded-for: 127\.0\.0\.1\r\n/);
    expect(connection?.received).toMatch(/\r\ntraceparent: 00-/);
    expect(connection?.received.match(/\r\nsec-websocket-key: /g)).toHaveLength(1);
    expect(connection?.received.match(/\r\nsec-websocket-protocol: chat\r\n/g)).toHaveLength(1);
    client.socket.destroy();
    await waitFor(() => connection?.socket.destroyed === true, { what: 'the service to see the end' });
    expect(JSON.stringify(world.runtime.lines)).not.toContain('access_token=secret');
  });

  it('joins on an agreement that arrives in pieces', async () => {
    const client = await opened(handshakeTo(hub), (connection) => {
      const bytes = agreement(connection);
      const { socket } = connection;
      socket.write(bytes.slice(0, 20), () =>
        socket.write(bytes.slice(20, 60), () => socket.write(bytes.slice(60))),
      );
    });
    expect(client.text()).toMatch(/^HTTP\/1\.1 101 /);
  });

  it('forwards the end of either side', async () => {
    const client = await opened(handshakeTo(hub), (connection) => {
      connection.socket.write(agreement(connection));
      connection.socket.end('last words');
    });
    await waitFor(() => client.isClosed());
    expect(client.text()).toMatch(/last words$/);
  });

  it("gives a client the service's refusal as the last answer of its connection", async () => {
    const body = '{"code":"UNAUTHORIZED"}';
    const client = open(handshakeTo(hub), ({ socket }) =>
      socket.write(
        `HTTP/1.1 401 Unauthorized\r\ncontent-type: application/problem+json\r\nwww-authenticate: Bearer\r\nserver: leaky\r\nconnection: keep-alive\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      ),
    );
    await waitFor(() => client.isClosed());
    expect(client.text()).toMatch(/^HTTP\/1\.1 401 Unauthorized\r\n/);
    expect(client.text()).toMatch(/\r\nwww-authenticate: Bearer\r\n/);
    expect(client.text()).toMatch(/\r\nx-frame-options: DENY\r\n.*\r\nconnection: close\r\n/s);
    expect(client.text()).not.toContain('leaky');
    expect(client.text().endsWith(`\r\n\r\n${body}`)).toBe(true);
    await waitFor(() => service.connections.at(-1)?.socket.destroyed === true);
  });

  it("sends a client nothing that follows the service's answer", async () => {
    for (const behind of ['TRAILING', 'HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nTRAILING']) {
      const client = open(handshakeTo(hub), ({ socket }) =>
        socket.write(`HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno${behind}`),
      );
      await waitFor(() => client.isClosed());
      expect(client.text()).toMatch(/^HTTP\/1\.1 (404|502) /);
      expect(client.text()).not.toContain('TRAILING');
      expect(client.text().match(/HTTP\/1\.1/g)).toHaveLength(1);
    }
  });

  it('answers 502 for an unbounded answer', async () => {
    const long = 'x'.repeat(17 * 1024);
    const broken: Record<string, string> = {
      'a head over 16 KiB': `HTTP/1.1 401 Unauthorized\r\nx: ${long}\r\n\r\n`,
      'a body over 64 KiB': `HTTP/1.1 401 Unauthorized\r\ncontent-length: 70000\r\n\r\n${'x'.repeat(70_000)}`,
      'no HTTP': 'HELLO\r\n\r\n',
      'two lengths': 'HTTP/1.1 401 Unauthorized\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx',
    };
    for (const [name, bytes] of Object.entries(broken)) {
      const client = open(handshakeTo(hub), ({ socket }) => socket.write(bytes));
      await waitFor(() => client.isClosed(), { what: name });
      expect(client.text(), name).toMatch(/^HTTP\/1\.1 502 .*"code":"BAD_GATEWAY"/s);
    }
  });

  it('answers 504 when the agreement is late, and leaves no connection open', async () => {
    const client = open(handshakeTo(hub), (connection) => {
      connection.socket.write(agreement(connection).slice(0, -2));
    });
    await waitFor(() => client.isClosed());
    expect(client.text()).toMatch(/^HTTP\/1\.1 504 .*connection: close/s);
    await waitFor(() => service.connections.at(-1)?.socket.destroyed === true);
  });

  it('closes the connection of a client that keeps its side open after a refusal', async () => {
    const client = open(handshakeTo(hub, { 'sec-websocket-key': 'short' }));
    await waitFor(() => client.text().includes('400'));
    const serving = open(handshakeTo(hub), ({ socket }) =>
      socket.write('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n'),
    );
    await waitFor(() => client.isClosed() && serving.isClosed());
  });

  it('aborts the call to the service when the client disconnects before the answer', async () => {
    const path = '/hubs/register/left';
    const client = open(handshakeTo(path), () => undefined);
    const connection = await waitFor(() =>
      service.connections.find(({ received }) => received.includes(path)),
    );
    client.socket.destroy();
    await waitFor(() => connection.socket.destroyed);
    expect(await observed(path)).toMatchObject({ status: 499, peer: 'register' });
  });

  it('refuses a handshake after a request that is not answered yet', async () => {
    const http = await world.startService('register', (request, response) => {
      if (request.url === '/api/registers/held') setImmediate(() => response.end('held'));
      else response.end('reached');
    });
    const other = await world.startGateway({ register: http.address });
    const first = 'GET /api/registers/held HTTP/1.1\r\nhost: h\r\n\r\n';
    const text = await sendRaw(other.port, `${first}${handshakeTo(hub)}`);
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
    expect(http.seen.map(({ url }) => url)).toEqual(['/api/registers/held']);
  });

  it('answers 503 when the service is down or absent', async () => {
    for (const path of ['/hubs/tenant/x', '/hubs/wallet/x']) {
      const answer = await sendRaw(gateway.port, handshakeTo(path));
      expect(answer).toMatch(/^HTTP\/1\.1 503 .*connection: close.*"code":"SERVICE_UNAVAILABLE"/s);
    }
  });

  it('answers 502 when the service has another identity', async () => {
    const identity = await world.authority.issue(spiffeId('service-wallet'));
    const impostor = await world.startService('register', (_request, response) => response.end(), {
      identity,
    });
    const other = await world.startGateway({ register: impostor.address });
    expect(await sendRaw(other.port, handshakeTo(hub))).toMatch(/^HTTP\/1\.1 502 /);
  });

  it('logs and counts tunnels and refusals with method, path, peer and status, without a query', async () => {
    await opened(handshakeTo('/hubs/register/logged?token=hidden'));
    await opened(handshakeTo('/hubs/register/refused?token=hidden', { 'sec-websocket-version': '8' }));
    await sendRaw(gateway.port, 'NO HTTP\r\n\r\n');
    const joined = await observed('/hubs/register/logged');
    expect(joined).toMatchObject({
      method: 'GET',
      peer: 'register',
      status: 101,
      clientAddress: '127.0.0.1',
    });
    expect(joined['traceId']).toMatch(/^[0-9a-f]{32}$/);
    expect(await observed('/hubs/register/refused')).toMatchObject({
      method: 'GET',
      peer: 'register',
      status: 426,
    });
    expect(await observed('')).toMatchObject({ peer: 'none', status: 400 });
    expect(JSON.stringify(world.runtime.lines)).not.toContain('hidden');
  });

  it('closes tunnels and pending handshakes when the gateway stops', async () => {
    const other = await world.startGateway({ register: service.address });
    script = (connection) => {
      if (connection.received.includes('/hubs/register/slow')) return;
      echo(connection);
    };
    const joined = openRawClient(other.port);
    joined.write(handshakeTo(hub));
    await waitFor(() => joined.text().includes('101'));
    const waiting = openRawClient(other.port);
    waiting.write(handshakeTo('/hubs/register/slow'));
    await waitFor(() => service.connections.some(({ received }) => received.includes('/hubs/register/slow')));
    await other.component.stop();
    await waitFor(() => joined.isClosed() && waiting.isClosed());
  });
});

describe('the routes of the installation', () => {
  let world: TestWorld;
  let gateway: TestGateway;
  let upgrades = 0;
  const seen: string[] = [];

  const held: (() => void)[] = [];

  beforeAll(async () => {
    world = await createTestWorld();
    const tenant = await world.startService('tenant', (request, response) => {
      seen.push(`${request.method} ${request.url} ${request.headers.upgrade ?? 'no upgrade'}`);
      held.push(() => response.writeHead(404).end());
    });
    tenant.server.on('upgrade', (_request, socket) => {
      upgrades += 1;
      socket.destroy();
    });
    gateway = await world.startGateway({ tenant: tenant.address });
  });

  afterAll(() => world.stop());

  it('serve WebSockets at hubs alone: elsewhere a handshake is a request, and the last of its connection', async () => {
    expect(routingTable.filter(({ hub }) => hub === true).map(({ path }) => path)).toEqual(
      ['tenant', 'wallet', 'register', 'blueprint', 'chat'].map((name) => `/hubs/${name}/**`),
    );
    const client = openRawClient(gateway.port);
    client.write(handshakeTo('/api/me/x'));
    await waitFor(() => held.length > 0);
    client.write('POST /api/me/behind HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n');
    // by then the gateway has read the earlier bytes
    await call(gateway.port, '/health');
    held.pop()?.();
    await waitFor(() => client.isClosed());
    expect(client.text().match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 404']);
    expect(client.text()).toMatch(/\r\nconnection: close\r\n/i);
    const unbuilt = await sendRaw(gateway.port, handshakeTo('/hubs/chat'));
    expect(unbuilt).toMatch(/^HTTP\/1\.1 503 .*connection: close/is);
    const internal = await sendRaw(gateway.port, handshakeTo('/hubs/%2e%2e/api/internal/x'));
    expect(internal).toMatch(/^HTTP\/1\.1 404 .*connection: close/is);
    const own = await sendRaw(gateway.port, handshakeTo('/health'));
    expect(own).toMatch(/^HTTP\/1\.1 200 .*connection: close/is);
    expect(seen).toEqual(['GET /api/me/x no upgrade']);
    expect(upgrades).toBe(0);
  });

  it('ignore other protocols, and keep the connection', async () => {
    const client = openRawClient(gateway.port);
    client.write(handshakeTo('/health', { upgrade: 'h2c', connection: 'Upgrade, HTTP2-Settings' }));
    await waitFor(() => client.text().includes('"healthy"'));
    client.write('GET /health HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n');
    await waitFor(() => client.isClosed());
    expect(client.text().match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200']);
  });
});
