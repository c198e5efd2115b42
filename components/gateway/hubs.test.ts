import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { handshakeTo, openRawClient } from '#kit/testing/raw-client.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { agreement, type RawService, startRawService } from './testing/raw-service.ts';
import {
  call,
  createTestWorld,
  spiffeId,
  type TestGateway,
  type TestService,
  type TestWorld,
} from './testing/world.ts';

/** One GET that the test service holds. */
interface Held {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  isClosed: boolean;
}

/** A stream of a client: what it has received, and its end. */
interface Stream {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  text(): string;
  /** `end` for an orderly end, `cut` for a broken one. */
  outcome(): 'open' | 'end' | 'cut';
  destroy(): void;
}

describe('hubs', () => {
  let world: TestWorld;
  let tenant: TestService;
  let gateway: TestGateway;
  const held: Held[] = [];

  const hold = (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === '/api/me/silent') return;
    if (request.method !== 'GET' || request.url?.startsWith('/api/') === true) {
      response.end(`${request.method} ${request.url}`);
      return;
    }
    const one: Held = { request, response, isClosed: false };
    response.once('close', () => {
      one.isClosed = true;
    });
    held.push(one);
  };
  const heldAt = (path: string) =>
    waitFor(() => held.find(({ request }) => request.url?.startsWith(path)), { what: `a call to ${path}` });
  const gaugeOf = async ({ component }: TestGateway) => {
    const [, port] = component.addresses['ops']?.split(':') ?? [];
    const { text } = await call(Number(port), '/metrics');
    return Number(/^chancery_gateway_hub_connections (\d+)$/m.exec(text)?.[1]);
  };

  beforeAll(async () => {
    world = await createTestWorld();
    tenant = await world.startService('tenant', hold);
    const settings = { CHANCERY_GATEWAY_ANSWER_SECONDS: '1', CHANCERY_GATEWAY_CONNECTIONS: '2' };
    gateway = await world.startGateway({ tenant: tenant.address }, settings);
  });
  afterAll(() => world.stop());

  async function openStream(port: number, path: string): Promise<Stream> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const headers = { accept: 'text/event-stream' };
    const outgoing = httpRequest({ host: '127.0.0.1', port, path, headers, agent: false }, resolve);
    outgoing.once('error', reject);
    outgoing.end();
    onTestFinished(() => void outgoing.destroy());
    const incoming = await promise;
    let text = '';
    let outcome: ReturnType<Stream['outcome']> = 'open';
    incoming.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    incoming.on('error', () => undefined);
    incoming.once('close', () => {
      outcome = incoming.complete ? 'end' : 'cut';
    });
    const { statusCode: status = 0, headers: received } = incoming;
    const destroy = () => void outgoing.destroy();
    return { status, headers: received, text: () => text, outcome: () => outcome, destroy };
  }

  const begin = ({ response }: Held) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.flushHeaders();
  };

  it('forward negotiation, messages and the end of a connection as they are', async () => {
    for (const [method, path] of [
      ['POST', '/hubs/tenant/negotiate?negotiateVersion=1'],
      ['POST', '/hubs/tenant?id=a%2Fb'],
      ['DELETE', '/hubs/tenant?id=a%2Fb'],
    ] as const) {
      const answer = await call(gateway.port, path, { method });
      expect([answer.status, answer.text]).toEqual([200, `${method} ${path}`]);
    }
  });

  it('take no other method', async () => {
    for (const method of ['PUT', 'PATCH', 'OPTIONS']) {
      const { status, headers } = await call(gateway.port, '/hubs/tenant', { method });
      expect([status, headers.allow], method).toEqual([405, 'GET, POST, DELETE']);
    }
  });

  it('that are not built answer 503 to each of them', async () => {
    for (const path of ['/hubs/blueprint', '/hubs/chat', '/hubs/chat/negotiate', '/hubs/wallet']) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        expect((await call(gateway.port, path, { method })).status, path).toBe(503);
      }
    }
  });

  it('stream without buffering: the head, then each event when it is sent', async () => {
    const opening = openStream(gateway.port, '/hubs/tenant?stream');
    const one = await heldAt('/hubs/tenant?stream');
    begin(one);
    const stream = await opening;
    expect(stream).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream' } });
    expect(stream.headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
    for (const event of ['data: 1\r\n\r\n', 'data: 2\r\n\r\n']) {
      one.response.write(event);
      await waitFor(() => stream.text().endsWith(event));
    }
    one.response.end();
    await waitFor(() => stream.outcome() === 'end');
    expect(stream.text()).toBe('data: 1\r\n\r\ndata: 2\r\n\r\n');
  });

  it('hold polls beyond the usual limits of time and connections', async () => {
    const polls = Array.from({ length: 20 }, (_, n) => call(gateway.port, `/hubs/tenant?poll=${n}`));
    await waitFor(() => held.filter(({ request }) => request.url?.includes('?poll=')).length === 20);
    expect(await gaugeOf(gateway)).toBe(20);
    expect((await call(gateway.port, '/api/auth/me')).status).toBe(200);
    expect((await call(gateway.port, '/api/me/silent')).status).toBe(504);
    for (const { request, response } of held) if (request.url?.includes('?poll=')) response.end('{"type":6}');
    const answers = await Promise.all(polls);
    expect(answers.map(({ status, text }) => `${status} ${text}`)).toEqual(Array(20).fill('200 {"type":6}'));
    await waitFor(async () => (await gaugeOf(gateway)) === 0);
  });

  it('end at the service when the client leaves, and at the client when the service does', async () => {
    const opening = openStream(gateway.port, '/hubs/tenant?left');
    const left = await heldAt('/hubs/tenant?left');
    begin(left);
    (await opening).destroy();
    await waitFor(() => left.isClosed, { what: 'the end at the service' });
    const breaking = openStream(gateway.port, '/hubs/tenant?broken');
    const broken = await heldAt('/hubs/tenant?broken');
    begin(broken);
    const stream = await breaking;
    broken.request.socket.destroy();
    await waitFor(() => stream.outcome() === 'cut', { what: 'the end at the client' });
  });

  it('never repeat a poll that was sent', async () => {
    const polling = call(gateway.port, '/hubs/tenant?once');
    const one = await heldAt('/hubs/tenant?once');
    one.request.socket.destroy();
    expect((await polling).status).toBe(502);
    expect(held.filter(({ request }) => request.url === '/hubs/tenant?once')).toHaveLength(1);
  });

  it('refuse a GET with a body', async () => {
    const answer = await call(gateway.port, '/hubs/tenant?body', { method: 'GET', body: 'x' });
    expect(answer.status).toBe(400);
  });

  it('take a token in the query, which no other route does, and none is logged', async () => {
    const token = 'query-token-that-is-secret';
    const opening = openStream(gateway.port, `/hubs/tenant?id=1&access_token=${token}`);
    const one = await heldAt(`/hubs/tenant?id=1&access_token=${token}`);
    begin(one);
    const stream = await opening;
    one.request.socket.destroy();
    await waitFor(() => stream.outcome() === 'cut');
    const polling = call(gateway.port, `/hubs/tenant?x&access_token=${token}`);
    const poll = await heldAt('/hubs/tenant?x');
    poll.request.socket.destroy();
    expect((await polling).text).not.toContain(token);
    for (const path of ['/api/auth/me', '/health', '/api/me/inbox', '/hubs']) {
      const answer = await call(gateway.port, `${path}?a=1&%61ccess_token=${token}`);
      expect([400, 404], path).toContain(answer.status);
      expect(answer.text).not.toContain(token);
    }
    const twice = await call(gateway.port, `/hubs/tenant?access_token=${token}&access_token=x`);
    expect(twice.status).toBe(400);
    await waitFor(() => world.runtime.lines.some(({ msg }) => msg === 'a call to a hub failed'));
    expect(JSON.stringify(world.runtime.lines)).not.toContain(token);
    expect(tenant.seen.some(({ url }) => url?.startsWith('/api/me/inbox'))).toBe(false);
    const [, ops] = gateway.component.addresses['ops']?.split(':') ?? [];
    expect((await call(Number(ops), '/metrics')).text).not.toContain(token);
  });

  it('break off a stream whose client reads nothing, and leave the others alone', async () => {
    const other = await world.startGateway({ tenant: tenant.address }, {}, 300);
    const opening = openStream(other.port, '/hubs/tenant?reads');
    const reads = await heldAt('/hubs/tenant?reads');
    begin(reads);
    const stream = await opening;
    const slow = connect(other.port, '127.0.0.1');
    onTestFinished(() => void slow.destroy());
    slow.on('error', () => undefined);
    slow.pause();
    slow.write('GET /hubs/tenant?stalls HTTP/1.1\r\nhost: h\r\n\r\n');
    const stalls = await heldAt('/hubs/tenant?stalls');
    begin(stalls);
    const fill = () => {
      while (!stalls.isClosed && stalls.response.write('x'.repeat(65_536)));
    };
    stalls.response.on('drain', fill);
    fill();
    await waitFor(() => stalls.isClosed, { what: 'the end of the stalled stream' });
    reads.response.write('data: still\r\n\r\n');
    await waitFor(() => stream.text().includes('still'));
  });

  it('bound the open connections of a client, whatever their kind, and serve its other requests', async () => {
    const settings = { CHANCERY_GATEWAY_HUB_CONNECTIONS: '3', CHANCERY_TRUSTED_PROXIES: '127.0.0.1' };
    const other = await world.startGateway({ tenant: tenant.address }, settings);
    const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });
    const polls = [1, 2, 3].map((n) => call(other.port, `/hubs/tenant?bound=${n}`, from('192.0.2.1')));
    await waitFor(() => held.filter(({ request }) => request.url?.includes('?bound=')).length === 3);
    const refused = await call(other.port, '/hubs/tenant?bound=4', from('192.0.2.1'));
    expect(refused).toMatchObject({ status: 429, headers: { 'retry-after': '10' } });
    expect(refused.json()).toMatchObject({ code: 'RATE_LIMITED' });
    const socket = openRawClient(other.port);
    socket.write(handshakeTo('/hubs/tenant', { 'x-forwarded-for': '192.0.2.1' }));
    await waitFor(() => socket.isClosed());
    expect(socket.text()).toMatch(/^HTTP\/1\.1 429 .*connection: close/s);
    expect((await call(other.port, '/api/auth/me', from('192.0.2.1'))).status).toBe(200);
    const neighbour = call(other.port, '/hubs/tenant?neighbour', from('192.0.2.2'));
    (await heldAt('/hubs/tenant?neighbour')).response.end('heard');
    expect((await neighbour).text).toBe('heard');
    for (const { request, response } of held) if (request.url?.includes('?bound=')) response.end();
    await Promise.all(polls);
    const again = call(other.port, '/hubs/tenant?again', from('192.0.2.1'));
    (await heldAt('/hubs/tenant?again')).response.end('heard');
    expect((await again).text).toBe('heard');
  });

  it('are closed when the gateway stops, so that clients reconnect to another one', async () => {
    const other = await world.startGateway({ tenant: tenant.address });
    const opening = openStream(other.port, '/hubs/tenant?drained');
    const drained = await heldAt('/hubs/tenant?drained');
    begin(drained);
    const stream = await opening;
    const polling = call(other.port, '/hubs/tenant?waiting');
    const waiting = await heldAt('/hubs/tenant?waiting');
    const startedAt = performance.now();
    await other.component.stop();
    expect(performance.now() - startedAt).toBeLessThan(2_500);
    await waitFor(() => stream.outcome() === 'cut');
    expect(await polling).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    await waitFor(() => drained.isClosed && waiting.isClosed, { what: 'the end at the service' });
  });
});

describe('a WebSocket of a hub', () => {
  let world: TestWorld;
  let service: RawService;

  beforeAll(async () => {
    world = await createTestWorld();
    const identity = await world.authority.issue(spiffeId('service-register'));
    service = await startRawService(identity, (connection) => {
      connection.socket.write(agreement(connection));
      const fill = () => {
        while (!connection.socket.destroyed && connection.socket.write('x'.repeat(65_536)));
      };
      connection.socket.on('drain', fill);
      fill();
    });
  });
  afterAll(async () => {
    await world.stop();
    await service.stop();
  });

  it('is closed when its client sends but reads nothing', async () => {
    const gateway = await world.startGateway({ register: service.address }, {}, 300);
    const client = connect(gateway.port, '127.0.0.1');
    onTestFinished(() => void client.destroy());
    client.on('error', () => undefined);
    client.pause();
    client.write(handshakeTo('/hubs/register'));
    const connection = await waitFor(() => service.connections[0]);
    const ping = setInterval(() => client.write('ping'), 50);
    onTestFinished(() => clearInterval(ping));
    await waitFor(() => connection.socket.destroyed, { what: 'the end at the service' });
  });
});
