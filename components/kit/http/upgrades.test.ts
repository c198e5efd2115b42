import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as tlsConnect } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { testAuthority } from '#kit/testing/certificates.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { type App, createHttpServer, createOpsServer, listenHttp } from './http.ts';

/** An application whose GET /held waits for the test, and that records what it serves. */
function mountHeld(app: App) {
  const served: string[] = [];
  const held = Promise.withResolvers<void>();
  const config = { policy: 'Anonymous' } as const;
  app.get('/held', { config, schema: { hide: true } }, async () => {
    served.push('held');
    await held.promise;
    return {};
  });
  app.post('/behind', { config, schema: { hide: true } }, async () => {
    served.push('behind');
    return {};
  });
  onTestFinished(() => app.close());
  return { served, release: () => held.resolve() };
}

function textOf(socket: Duplex): () => string {
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  socket.on('error', () => socket.destroy());
  onTestFinished(() => void socket.destroy());
  return () => text;
}

const upgrade = (path: string, headers: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n`;
const webSocket =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13';
const behind = 'POST /behind HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n';

/** Sends an upgrade to /held and a request behind it before /held is answered; returns the whole answer. */
async function askBehind(
  { served, release }: ReturnType<typeof mountHeld>,
  headers: string,
  open: () => Socket,
): Promise<string> {
  const socket = open();
  const text = textOf(socket);
  socket.write(upgrade('/held', headers));
  await waitFor(() => served.length > 0, { what: 'the upgrade to be served' });
  socket.write(behind);
  const other = open();
  const otherText = textOf(other);
  // Once this request is answered, the bytes that were sent before it have been read.
  other.write('GET /health-of-nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await waitFor(() => otherText().includes('404'));
  release();
  await waitFor(() => socket.closed, { what: 'the end of the connection' });
  return text();
}

const ways = [
  ['a WebSocket handshake', webSocket],
  ['h2c', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk'],
  ['an Upgrade that Connection does not name', 'Upgrade: websocket'],
] as const;

describe('an upgrade request', () => {
  it.each(ways)('ends a plain connection after its answer to %s', async (_name, headers) => {
    const app = createHttpServer({ runtime: testRuntime('service-test'), title: 'Test' });
    const held = mountHeld(app);
    const port = await listenHttp(app, { host: '127.0.0.1', port: 0 });
    const text = await askBehind(held, headers, () => connect(port, '127.0.0.1'));
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
    expect(text).toMatch(/\r\nconnection: close\r\n/i);
    expect(held.served).toEqual(['held']);
  });

  it.each(ways)('ends a mutual-TLS connection after its answer to %s', async (_name, headers) => {
    const authority = await testAuthority();
    const https = await authority.identity('service-test');
    const app = createHttpServer({ runtime: testRuntime('service-test'), title: 'Test', https });
    const held = mountHeld(app);
    const port = await listenHttp(app, { host: '127.0.0.1', port: 0 });
    const { key, cert } = await authority.issue('service-gateway');
    const open = () => tlsConnect({ port, host: '127.0.0.1', key, cert, rejectUnauthorized: false });
    const text = await askBehind(held, headers, open);
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
    expect(text).toMatch(/\r\nconnection: close\r\n/i);
    expect(held.served).toEqual(['held']);
  });

  it('ends the connection after a refusal too, and after an unknown expectation', async () => {
    const app = createHttpServer({ runtime: testRuntime('service-test'), title: 'Test' });
    const held = mountHeld(app);
    const port = await listenHttp(app, { host: '127.0.0.1', port: 0 });
    for (const [headers, status] of [
      [webSocket, 404],
      [`${webSocket}\r\nExpect: miracles`, 417],
    ] as const) {
      const socket = connect(port, '127.0.0.1');
      const text = textOf(socket);
      socket.write(upgrade('/nothing', headers));
      await waitFor(() => socket.closed);
      expect(text()).toMatch(new RegExp(`^HTTP/1.1 ${status} .*\r\nconnection: close\r\n`, 'is'));
    }
    expect(held.served).toEqual([]);
  });

  it('is treated alike by the operations listener', async () => {
    const runtime = testRuntime('service-test');
    const ops = await createOpsServer({ runtime, host: '127.0.0.1', port: 0, checks: [] });
    onTestFinished(() => ops.stop());
    const socket = connect(ops.port, '127.0.0.1');
    const text = textOf(socket);
    socket.write(upgrade('/ready', webSocket));
    await waitFor(() => socket.closed);
    expect(text()).toMatch(/^HTTP\/1\.1 200 .*\r\nconnection: close\r\n/is);
  });
});
