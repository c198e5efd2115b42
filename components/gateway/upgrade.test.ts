import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import {
  createTestWorld,
  sendRaw,
  spiffeId,
  type TestGateway,
  type TestService,
  type TestWorld,
} from './testing/world.ts';

const handshake = (path: string) =>
  `GET ${path} HTTP/1.1\r\nhost: h\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\nx-forwarded-for: 6.6.6.6\r\n\r\n`;

describe('WebSocket pass-through', () => {
  let world: TestWorld;
  let register: TestService;
  let gateway: TestGateway;
  const upgrades: { url: string; headers: Record<string, unknown>; destroyed: () => boolean }[] = [];

  beforeAll(async () => {
    world = await createTestWorld();
    register = await world.startService('register', (_request, response) => response.end('no upgrade'));
    register.server.on('upgrade', (request, socket, head) => {
      upgrades.push({ url: request.url ?? '', headers: request.headers, destroyed: () => socket.destroyed });
      socket.on('error', () => undefined);
      if (request.url?.startsWith('/hubs/register/refuse')) {
        socket.end('HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
        return;
      }
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n');
      if (head.length > 0) socket.write(`echo:${head}`);
      socket.on('data', (chunk: Buffer) => socket.write(`echo:${chunk}`));
    });
    gateway = await world.startGateway({ register: register.address, tenant: '127.0.0.1:9' });
  });

  afterAll(() => world.stop());

  function open() {
    const socket = connect(gateway.port, '127.0.0.1');
    const received = { text: '' };
    socket.on('data', (chunk: Buffer) => {
      received.text += chunk.toString('latin1');
    });
    socket.on('error', () => undefined);
    return { socket, received };
  }

  it('carries bytes both ways, the early ones too', async () => {
    const { socket, received } = open();
    socket.write(`${handshake('/hubs/register?access_token=secret')}early`);
    await waitFor(() => received.text.includes('echo:early'));
    expect(received.text).toMatch(/^HTTP\/1\.1 101 /);
    socket.write('hello');
    await waitFor(() => received.text.includes('echo:hello'));
    const upgrade = upgrades.at(-1);
    expect(upgrade?.url).toBe('/hubs/register?access_token=secret');
    expect(upgrade?.headers).toMatchObject({
      upgrade: 'websocket',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'x-forwarded-for': '127.0.0.1',
      host: 'h',
    });
    expect(upgrade?.headers['traceparent']).toMatch(/^00-/);
    socket.destroy();
    await waitFor(() => upgrade?.destroyed() === true, { what: 'the service to see the end' });
    expect(JSON.stringify(world.runtime.lines)).not.toContain('access_token=secret');
  });

  it('passes a refused handshake on', async () => {
    expect(await sendRaw(gateway.port, handshake('/hubs/register/refuse'))).toMatch(/^HTTP\/1\.1 401 /);
  });

  it('answers 503 when the service is down or absent', async () => {
    for (const path of ['/hubs/tenant', '/hubs/wallet']) {
      const answer = await sendRaw(gateway.port, handshake(path));
      expect(answer).toMatch(/^HTTP\/1\.1 503 /);
      expect(answer).toContain('"code":"SERVICE_UNAVAILABLE"');
    }
  });

  it('answers 502 when the service is somebody else', async () => {
    const identity = await world.authority.issue(spiffeId('service-wallet'));
    const impostor = await world.startService('register', (_request, response) => response.end(), {
      identity,
    });
    const other = await world.startGateway({ register: impostor.address });
    expect(await sendRaw(other.port, handshake('/hubs/register'))).toMatch(/^HTTP\/1\.1 502 /);
  });

  it('upgrades hubs only, and nothing internal', async () => {
    const before = upgrades.length;
    const ordinary = handshake('/api/registers').replace('connection: Upgrade', 'connection: close, Upgrade');
    expect(await sendRaw(gateway.port, ordinary)).toMatch(/^HTTP\/1\.1 200 /);
    const internal = handshake('/hubs/%2e%2e/api/internal/x').replace(
      'connection: Upgrade',
      'connection: close, Upgrade',
    );
    expect(await sendRaw(gateway.port, internal)).toMatch(/^HTTP\/1\.1 404 /);
    expect(upgrades.length).toBe(before);
  });

  it('ends tunnels when the gateway stops', async () => {
    const other = await world.startGateway({ register: register.address });
    const socket = connect(other.port, '127.0.0.1');
    socket.on('error', () => undefined);
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    socket.write(handshake('/hubs/register'));
    await waitFor(() => text.includes('101'));
    await other.component.stop();
    await waitFor(() => socket.destroyed);
  });
});
