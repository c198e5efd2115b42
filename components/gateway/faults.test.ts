import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { call, clientIds, createTestWorld, spiffeId, type TestWorld } from './testing/world.ts';

describe('services that misbehave', () => {
  let world: TestWorld;
  const closing: (() => void)[] = [];

  beforeAll(async () => {
    world = await createTestWorld();
  });

  afterAll(async () => {
    for (const close of closing) close();
    await world.stop();
  });

  /** A register service that answers with exactly these bytes. */
  async function raw(bytes: string): Promise<string> {
    const identity = await world.authority.issue(spiffeId(clientIds.register));
    const server = createTlsServer(
      { ...identity, requestCert: true, minVersion: 'TLSv1.3' },
      (socket: TLSSocket) => {
        socket.on('error', () => undefined);
        socket.once('data', () => socket.end(bytes, 'latin1'));
      },
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closing.push(() => server.close());
    const address = server.address();
    return `127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  }

  it.each([
    ['no HTTP', 'hello\r\n\r\n'],
    ['nothing', ''],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'],
    [
      'length and chunks',
      'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['headers without end', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(200_000)}\r\n\r\n`],
    [
      'an upgrade that was not requested',
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
    ],
  ])('answers 502 to %s', async (_name, bytes) => {
    const gateway = await world.startGateway({ register: await raw(bytes) });
    const answer = await call(gateway.port, '/api/registers');
    expect(answer.status).toBe(502);
    expect(answer.json()).toMatchObject({
      code: 'BAD_GATEWAY',
      detail: 'The service did not give a usable answer.',
    });
  });

  it('ignores informational answers', async () => {
    const bytes =
      'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
    const gateway = await world.startGateway({ register: await raw(bytes) });
    expect(await call(gateway.port, '/api/registers')).toMatchObject({ status: 200, text: 'ok' });
  });

  it('answers 504 when a service does not begin its answer in time', async () => {
    const silent: RequestListener = () => undefined;
    const register = await world.startService('register', silent);
    const gateway = await world.startGateway(
      { register: register.address },
      { CHANCERY_GATEWAY_ANSWER_SECONDS: '1' },
    );
    const answer = await call(gateway.port, '/api/registers?secret=1', { method: 'POST', body: 'x' });
    expect(answer.status).toBe(504);
    expect(answer.json()).toMatchObject({ code: 'GATEWAY_TIMEOUT', path: '/api/registers' });
  });

  it('answers 503 within the connect timeout when the port does not speak TLS', async () => {
    const mute = createTcpServer((socket) => socket.on('error', () => undefined));
    mute.listen(0, '127.0.0.1');
    await once(mute, 'listening');
    closing.push(() => mute.close());
    const address = mute.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const gateway = await world.startGateway({ register: `127.0.0.1:${port}` });
    const answer = await call(gateway.port, '/api/registers', { method: 'POST', body: 'x' });
    expect(answer.status).toBe(503);
  });

  it("answers 502 when the service does not accept the gateway's identity", async () => {
    const other = await createTestWorld();
    const identity = await other.authority.issue(spiffeId(clientIds.register));
    const register = await world.startService('register', (_request, response) => response.end('ok'), {
      identity,
    });
    const gateway = await world.startGateway({ register: register.address });
    expect((await call(gateway.port, '/api/registers')).status).toBe(502);
    await other.stop();
  });

  it('recovers when the service does', async () => {
    const first = await world.startService('register', (_request, response) => response.end('first'));
    const gateway = await world.startGateway({ register: first.address });
    expect((await call(gateway.port, '/api/registers')).text).toBe('first');
    await first.stop();
    expect([502, 503]).toContain((await call(gateway.port, '/api/registers')).status);
    const port = Number(first.address.split(':')[1]);
    await world.startService('register', (_request, response) => response.end('second'), { port });
    await waitFor(async () => (await call(gateway.port, '/api/registers')).text === 'second');
  });

  it('completes pending requests when it stops, and accepts no new ones', async () => {
    const held: (() => void)[] = [];
    const register = await world.startService('register', (_request, response) => {
      held.push(() => response.end('done'));
    });
    const gateway = await world.startGateway({ register: register.address });
    const underWay = call(gateway.port, '/api/registers');
    await waitFor(() => held.length === 1);
    const stopped = gateway.component.stop();
    await waitFor(() =>
      call(gateway.port, '/health').then(
        () => false,
        () => true,
      ),
    );
    held[0]?.();
    expect(await underWay).toMatchObject({ status: 200, text: 'done' });
    await stopped;
  });

  it("isolates services from each other's delays", async () => {
    const released = Promise.withResolvers<void>();
    const register = await world.startService('register', (_request, response) => {
      void released.promise.then(() => response.end());
    });
    const tenant = await world.startService('tenant', (_request, response) => response.end('quick'));
    const gateway = await world.startGateway(
      { register: register.address, tenant: tenant.address },
      { CHANCERY_GATEWAY_CONNECTIONS: '4' },
    );
    const stuck = Array.from({ length: 20 }, () => call(gateway.port, '/api/registers'));
    await waitFor(() => register.seen.length === 4);
    expect((await call(gateway.port, '/api/auth/me')).text).toBe('quick');
    released.resolve();
    const answers = await Promise.all(stuck);
    expect(answers.map((answer) => answer.status)).toEqual(Array(20).fill(200));
    expect(register.seen.length).toBe(20);
  });
});
