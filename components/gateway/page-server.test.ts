import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  call,
  createTestWorld,
  type TestGateway,
  type TestService,
  type TestWorld,
} from './testing/world.ts';

const policy = "default-src 'self'";

describe('a server of pages in place of the built-in ones', () => {
  let world: TestWorld;
  let gateway: TestGateway;
  let tenant: TestService;
  let origin = '';
  let seen: IncomingMessage[] = [];
  let answer: RequestListener;
  const server = createServer((request, response) => {
    seen.push(request);
    answer(request, response);
  });

  beforeAll(async () => {
    world = await createTestWorld();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    tenant = await world.startService('tenant', (_, response) => response.end('tenant'));
    const settings = { CHANCERY_UI_UPSTREAM: origin, CHANCERY_GATEWAY_ANSWER_SECONDS: '1' };
    gateway = await world.startGateway({ tenant: tenant.address }, settings);
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await world.stop();
  });
  beforeEach(() => {
    seen = [];
    tenant.seen.length = 0;
    answer = (_, response) => response.writeHead(200, { 'content-security-policy': policy }).end('page');
  });

  it.each([
    '/auth/login',
    '/auth/login?returnUrl=/app/',
    '/auth/login/assets/main.js',
    '/auth/verify-email',
    '/auth/reset-password',
    '/auth/files/page.js',
    '/app/',
    '/app/deep/path?x=1',
    '/app',
    '/wallet/',
  ])('gets %s', async (path) => {
    const page = await call(gateway.port, path);
    expect([page.status, page.text]).toEqual([200, 'page']);
    expect(seen.map(({ url }) => url)).toEqual([path]);
    expect(tenant.seen).toEqual([]);
    expect(page.headers).toMatchObject({ 'content-security-policy': policy, 'x-frame-options': 'DENY' });
  });

  it.each([
    '/auth/social/callback?state=s',
    '/auth/loginx',
    '/api/auth/return-to',
    '/api/auth/login',
    '/.well-known/jwks.json',
  ])('does not get %s', async (path) => {
    expect((await call(gateway.port, path)).text).toBe('tenant');
    expect(seen).toEqual([]);
  });

  it.each(['/app/../api/internal/x', '/app/%2e%2e/metrics', '/metrics', '/api/internal/x', '/app//x'])(
    'gets nothing of %s',
    async (path) => {
      expect((await call(gateway.port, path)).status).toBe(404);
      expect(seen).toEqual([]);
    },
  );

  it('gets no credential, and neither the cookies of the sign-in nor the right to set one', async () => {
    answer = (_, response) => response.writeHead(200, { 'set-cookie': '__Host-browser=fixed' }).end();
    const page = await call(gateway.port, '/app/', {
      headers: {
        authorization: 'Bearer secret',
        Cookie: '__Host-browser=b',
        'x-auth-challenge': 'ch_1',
        'accept-language': 'de',
        'x-forwarded-host': 'evil.example',
      },
    });
    const [request] = seen;
    expect(request?.rawHeaders.join(' ')).not.toMatch(/secret|__Host|ch_1|evil/);
    expect(request?.headers).toMatchObject({ 'accept-language': 'de', host: new URL(origin).host });
    expect(request?.headers['x-forwarded-host']).toBe(`127.0.0.1:${gateway.port}`);
    expect(page.headers['set-cookie']).toBeUndefined();
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
  });

  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])('gets no %s', async (method) => {
    const refused = await call(gateway.port, '/auth/login', { method });
    expect([refused.status, refused.headers.allow]).toEqual([405, 'GET, HEAD']);
    expect(seen).toEqual([]);
  });

  it('is told nothing of access tokens in a query', async () => {
    expect((await call(gateway.port, '/app/?access_token=x')).status).toBe(400);
    expect(seen).toEqual([]);
  });

  it('that is away, silent or faulty is answered for, as a service is', async () => {
    answer = (_, response) => void response.socket?.destroy();
    expect((await call(gateway.port, '/app/')).status).toBe(502);
    answer = () => undefined;
    expect((await call(gateway.port, '/app/')).status).toBe(504);
    const away = { CHANCERY_UI_UPSTREAM: 'http://127.0.0.1:9' };
    const other = await world.startGateway({ tenant: tenant.address }, away);
    const refused = await call(other.port, '/app/');
    expect([refused.status, refused.json()['code']]).toEqual([503, 'SERVICE_UNAVAILABLE']);
    // The installation is not ill because its pages are away.
    expect((await call(other.port, '/api/health')).text).not.toContain('pages');
  });

  it.each(['ftp://x', 'http://host/path', 'https://user@host', 'host:80'])(
    'has no address %j',
    async (address) => {
      await expect(world.startGateway({}, { CHANCERY_UI_UPSTREAM: address })).rejects.toThrow(/UI_UPSTREAM/);
    },
  );
});
