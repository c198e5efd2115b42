import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { answerAsRegister, megabyte } from './testing/register-answers.ts';
import {
  call,
  createTestWorld,
  spiffeId,
  type TestGateway,
  type TestService,
  type TestWorld,
} from './testing/world.ts';

describe('forwarding', () => {
  let world: TestWorld;
  let register: TestService;
  let gateway: TestGateway;
  /** A test calls these to release held answers. */
  const held: (() => void)[] = [];

  beforeAll(async () => {
    world = await createTestWorld();
    register = await world.startService('register', answerAsRegister(held));
    gateway = await world.startGateway({ register: register.address, wallet: '127.0.0.1:9' });
  });

  afterAll(() => world.stop());

  it("forwards method, path and query unchanged and adds the client's origin", async () => {
    const answer = await call(gateway.port, '/api/registers/echo?x=%2f&y=1', {
      method: 'POST',
      body: '{"a":1}',
      headers: {
        'content-type': 'application/json',
        authorization: 'Bearer abc',
        'x-forwarded-for': '6.6.6.6',
        'x-forwarded-proto': 'https',
        'x-real-ip': '6.6.6.6',
        forwarded: 'for=6.6.6.6',
        te: 'trailers',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      },
    });
    expect(answer.status).toBe(201);
    const seen = answer.json() as {
      url: string;
      method: string;
      bytes: number;
      headers: Record<string, string>;
    };
    expect(seen).toMatchObject({ url: '/api/registers/echo?x=%2f&y=1', method: 'POST', bytes: 7 });
    expect(seen.headers).toMatchObject({
      authorization: 'Bearer abc',
      host: `127.0.0.1:${gateway.port}`,
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': `127.0.0.1:${gateway.port}`,
    });
    expect(seen.headers['traceparent']).toMatch(/^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01$/);
    expect(seen.headers['traceparent']).not.toContain('b7ad6b7169203331');
    for (const name of ['te', 'forwarded', 'x-real-ip']) expect(seen.headers[name]).toBeUndefined();
  });

  it('starts a trace when there is none, or no valid one', async () => {
    for (const traceparent of [undefined, 'nonsense', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`]) {
      const headers = traceparent === undefined ? {} : { traceparent };
      const answer = await call(gateway.port, '/api/registers/echo', { headers });
      const seen = answer.json() as { headers: Record<string, string> };
      expect(seen.headers['traceparent']).toMatch(/^00-(?!0{32})[0-9a-f]{32}-[0-9a-f]{16}-00$/);
    }
  });

  it('sets security headers on every answer and drops headers that name the software', async () => {
    for (const path of ['/api/registers/echo', '/health', '/api/internal/x', '/api/wallets']) {
      const { headers } = await call(gateway.port, path);
      expect(headers).toMatchObject({
        'x-api-version': '1',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'strict-origin-when-cross-origin',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      });
      expect(headers['permissions-policy']).toBeDefined();
      expect(headers['server']).toBeUndefined();
      expect(headers['x-powered-by']).toBeUndefined();
      expect(headers['strict-transport-security']).toBeUndefined();
    }
  });

  it('drops hop-by-hop headers of an answer and keeps repeated ones', async () => {
    const { headers, status } = await call(gateway.port, '/api/registers/hop', {
      headers: { connection: 'close' },
    });
    expect(status).toBe(200);
    expect(headers['x-private']).toBeUndefined();
    expect(headers['proxy-authenticate']).toBeUndefined();
    expect(headers['x-frame-options']).toBe('DENY');
    expect(headers['set-cookie']).toEqual(['a=1', 'b=2']);
  });

  it('drops headers named in Connection, except those that authenticate the client', async () => {
    const answer = await call(gateway.port, '/api/registers/echo', {
      headers: {
        connection: 'close, x-drop, authorization, host',
        'x-drop': '1',
        authorization: 'Bearer kept',
      },
    });
    const seen = answer.json() as { headers: Record<string, string> };
    expect(seen.headers['x-drop']).toBeUndefined();
    expect(seen.headers['authorization']).toBe('Bearer kept');
    expect(seen.headers['host']).toBeDefined();
  });

  it('passes Allow of a 405 through', async () => {
    const answer = await call(gateway.port, '/api/registers/read-only', { method: 'POST' });
    expect([answer.status, answer.headers.allow]).toEqual([405, 'GET, HEAD']);
  });

  it('answers HEAD and 204 without a body', async () => {
    expect(await call(gateway.port, '/api/registers/plain', { method: 'HEAD' })).toMatchObject({
      status: 200,
      text: '',
    });
    expect(await call(gateway.port, '/api/registers/nothing')).toMatchObject({ status: 204, text: '' });
  });

  it('streams an answer as it arrives', async () => {
    const socket = connect(gateway.port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.write('GET /api/registers/stream HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n');
    await waitFor(() => text.includes('data: first'), { what: 'the first event' });
    expect(text).not.toContain('data: last');
    await waitFor(() => held.length > 0);
    held.shift()?.();
    await waitFor(() => text.includes('data: last'));
    socket.destroy();
  });

  it('forwards large answers completely', async () => {
    const answer = await call(gateway.port, '/api/registers/large');
    expect(answer.text.length).toBe(8 * megabyte);
  });

  it('breaks the answer off when the service breaks off, and answers 502 when there is none', async () => {
    await expect(call(gateway.port, '/api/registers/break')).rejects.toThrow();
    const reset = await call(gateway.port, '/api/registers/reset');
    expect(reset.status).toBe(502);
    expect(reset.headers['content-type']).toBe('application/problem+json');
    expect(reset.json()).toMatchObject({ code: 'BAD_GATEWAY', status: 502, path: '/api/registers/reset' });
  });

  it('answers 503 for a service that is down and for one that is not configured', async () => {
    for (const path of ['/api/wallets?token=secret', '/api/blueprints/x/versions']) {
      const answer = await call(gateway.port, path);
      expect(answer.status).toBe(503);
      expect(answer.headers['retry-after']).toBe('1');
      expect(answer.json()).toMatchObject({ code: 'SERVICE_UNAVAILABLE', path: path.split('?')[0] });
      expect(answer.text).not.toContain('127.0.0.1');
    }
  });

  it('aborts the call when the client disconnects', async () => {
    const before = register.seen.length;
    const socket = connect(gateway.port, '127.0.0.1');
    socket.write('GET /api/registers/stream HTTP/1.1\r\nhost: h\r\n\r\n');
    const request = await waitFor(() => register.seen[before]);
    socket.destroy();
    await waitFor(() => request.socket.destroyed, { what: 'the call to be given up' });
    held.length = 0;
  });

  it('logs neither queries nor headers', async () => {
    await call(gateway.port, '/api/registers/plain?access_token=verysecret', {
      headers: { authorization: 'Bearer topsecret', cookie: 'session=hidden' },
    });
    await call(gateway.port, '/api/unknown/log?access_token=verysecret');
    const entry = await waitFor(() =>
      world.runtime.lines.find((line) => line['path'] === '/api/unknown/log'),
    );
    expect(entry).toMatchObject({ method: 'GET', status: 404, peer: 'none', msg: 'request' });
    expect(JSON.stringify(world.runtime.lines)).not.toMatch(/verysecret|topsecret|session=hidden/);
  });

  it('switches to a rotated SVID without losing a request', async () => {
    const before = register.seen.length;
    const calls = Array.from({ length: 60 }, async (_unused, position) => {
      if (position % 20 === 10) await gateway.rotate();
      return call(gateway.port, '/api/registers/echo', { method: 'POST', body: 'x'.repeat(position) });
    });
    const answers = await Promise.all(calls);
    expect(answers.map((answer) => answer.status)).toEqual(Array(60).fill(201));
    expect(register.seen.length - before).toBe(60);
  });

  it('does not call a service with another identity', async () => {
    const impostors = [
      await world.authority.issue(spiffeId('service-wallet')),
      await world.authority.issue('spiffe://other.example/service/service-tenant'),
      await world.authority.issue(spiffeId('service-tenant'), spiffeId('service-wallet')),
    ];
    for (const identity of impostors) {
      const impostor = await world.startService('tenant', (_request, response) => response.end('stolen'), {
        identity,
      });
      const other = await world.startGateway({ tenant: impostor.address });
      const answer = await call(other.port, '/api/auth/me', { headers: { authorization: 'Bearer x' } });
      expect(answer.status).toBe(502);
      expect(impostor.seen.length).toBe(0);
    }
  });

  it('retries an idempotent call that found no connection, and never a POST', async () => {
    const probe = await world.startService('tenant', (_request, response) => response.end());
    const port = Number(probe.address.split(':')[1]);
    await probe.stop();
    let connections = 0;
    const refuser = createServer((socket) => {
      connections++;
      socket.resetAndDestroy();
    });
    refuser.listen(port, '127.0.0.1');
    await once(refuser, 'listening');
    const other = await world.startGateway({ tenant: `127.0.0.1:${port}` });
    expect((await call(other.port, '/api/auth/me')).status).toBe(503);
    expect(connections).toBe(2);
    connections = 0;
    expect((await call(other.port, '/api/auth/login', { method: 'POST', body: '{}' })).status).toBe(503);
    expect(connections).toBe(1);
    refuser.close();
  });
});
