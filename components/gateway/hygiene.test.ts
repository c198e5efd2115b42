import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  call,
  createTestWorld,
  sendRaw,
  type TestGateway,
  type TestService,
  type TestWorld,
} from './testing/world.ts';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

describe('requests that are never forwarded', () => {
  let world: TestWorld;
  let gateway: TestGateway;
  const services: TestService[] = [];

  beforeAll(async () => {
    world = await createTestWorld();
    for (const service of ['tenant', 'register', 'wallet'] as const) {
      services.push(await world.startService(service, (_request, response) => response.end('reached')));
    }
    const [tenant, register, wallet] = services.map((service) => service.address);
    gateway = await world.startGateway({
      tenant: tenant ?? '',
      register: register ?? '',
      wallet: wallet ?? '',
    });
  });

  afterAll(() => world.stop());

  const reached = () => services.reduce((sum, service) => sum + service.seen.length, 0);

  it('answers 404 for internal paths in every encoding and method', async () => {
    const targets = [
      '/api/internal/service-auth/token',
      '/api/internal/service-auth/token/',
      '/api/internal',
      '/API/INTERNAL/service-auth/token',
      '/api//internal/service-auth/token',
      '//api/internal/service-auth/token',
      '/api/%69nternal/service-auth/token',
      '/api%2Finternal%2Fservice-auth/token',
      '/api/%2569nternal/x',
      '/api/registers/../internal/x',
      '/api/registers/%2e%2e/internal/x',
      '/api/./internal/x',
      '/api/auth/internal/x',
      '/api/auth/..%2finternal/x',
      '/api/internal;a=b/x',
      '/api/internal/../registers',
      '/api/v1/wallets/w1abc/persona/decrypt',
      '/metrics',
      '/readyz',
      'http://elsewhere.example/api/internal/x',
    ];
    for (const target of targets) {
      for (const method of methods) {
        const answer = await call(gateway.port, target, { method });
        expect(answer.status, `${method} ${target}`).toBe(404);
        if (method === 'HEAD') continue;
        expect(answer.headers['content-type']).toBe('application/problem+json');
        expect(answer.json()).toMatchObject({
          code: 'NOT_FOUND',
          status: 404,
          error: 'The resource does not exist.',
        });
      }
    }
    expect(reached()).toBe(0);
  });

  it('answers a refused path exactly like an unknown one', async () => {
    const plain = ({ status, headers, text }: Awaited<ReturnType<typeof call>>) => ({
      status,
      headers: { ...headers, date: '', 'content-length': '' },
      body: text.replaceAll(/"(?:timestamp|traceId|path|instance)":"[^"]*"/g, ''),
    });
    const denied = await call(gateway.port, '/api/internal/audit/refusals');
    const unknown = await call(gateway.port, '/api/unknown');
    expect(plain(denied)).toEqual(plain(unknown));
  });

  it.each([
    [
      'two lengths',
      'POST /api/registers HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello',
    ],
    [
      'length and chunks',
      'POST /api/registers HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    [
      'a disguised encoding',
      'POST /api/registers HTTP/1.1\r\nhost: h\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n',
    ],
    [
      'a space before the colon',
      'POST /api/registers HTTP/1.1\r\nhost: h\r\ntransfer-encoding : chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a folded header', 'GET /api/registers HTTP/1.1\r\nhost: h\r\nx-a: 1\r\n b: 2\r\n\r\n'],
    ['a bare line feed in a header', 'GET /api/registers HTTP/1.1\r\nhost: h\r\nx: a\nb\r\n\r\n'],
    ['no host', 'GET /api/registers HTTP/1.1\r\n\r\n'],
    ['two hosts', 'GET /api/registers HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n'],
    [
      'a bad chunk size',
      'POST /api/registers HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n5;\nx\r\nhello\r\n0\r\n\r\n',
    ],
    ['no HTTP at all', '\u0016\u0003\u0001\u0002\u0000\u0001\r\n\r\n'],
    ['another protocol', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a control character in the path', 'GET /api/registers\u0001 HTTP/1.1\r\nhost: h\r\n\r\n'],
  ])('refuses %s with 400', async (_name, bytes) => {
    const before = reached();
    const answer = await sendRaw(gateway.port, bytes);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer.match(/HTTP\/1\.1 /g)?.length).toBe(1);
    expect(reached()).toBe(before);
  });

  it('does not allow request smuggling', async () => {
    const before = reached();
    const answer = await sendRaw(
      gateway.port,
      'POST /api/registers HTTP/1.1\r\nhost: h\r\ncontent-length: 6\r\n\r\nhello!GET /api/internal/x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n',
    );
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 404']);
    expect(reached()).toBe(before + 1);
  });

  it('answers 431 when the headers exceed 16 KB', async () => {
    const answer = await sendRaw(
      gateway.port,
      `GET /api/registers HTTP/1.1\r\nhost: h\r\nx: ${'a'.repeat(17 * 1024)}\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 431 /);
    expect(answer).toContain('"code":"HEADERS_TOO_LARGE"');
    const fits = await call(gateway.port, '/api/registers', { headers: { x: 'a'.repeat(15 * 1024) } });
    expect(fits.status).toBe(200);
  });

  it('answers 405 for TRACE with the forwarded methods, and closes CONNECT', async () => {
    const trace = await call(gateway.port, '/api/registers', { method: 'TRACE' });
    expect([trace.status, trace.headers.allow]).toEqual([405, methods.join(', ')]);
    const answer = await sendRaw(
      gateway.port,
      'CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n',
    ).catch(() => '');
    expect(answer).not.toContain(' 200 ');
  });

  it('answers 400 for malformed targets', async () => {
    for (const target of ['/api/registers/%zz', '/api/registers/%00']) {
      const answer = await call(gateway.port, target);
      expect(answer.status, target).toBe(400);
      expect(answer.json()['code']).toBe('INVALID_REQUEST');
    }
  });

  it('treats an upgrade on an ordinary route as an ordinary request', async () => {
    const answer = await sendRaw(
      gateway.port,
      'GET /api/registers HTTP/1.1\r\nhost: h\r\nconnection: Upgrade, HTTP2-Settings, close\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    const seen = services[1]?.seen.at(-1);
    expect(seen?.headers.upgrade).toBeUndefined();
  });

  it('trusts forwarding headers of trusted proxies only', async () => {
    const [, register] = services;
    const trusting = await world.startGateway(
      { register: register?.address ?? '' },
      { CHANCERY_TRUSTED_PROXIES: '127.0.0.0/8, 10.0.0.0/8' },
    );
    const answer = await call(trusting.port, '/api/registers', {
      headers: {
        'x-forwarded-for': '1.1.1.1, 203.0.113.9, 10.1.2.3',
        'x-forwarded-proto': 'https',
        'x-forwarded-host': 'api.example.com',
      },
    });
    expect(answer.headers['strict-transport-security']).toBe('max-age=31536000; includeSubDomains');
    expect(register?.seen.at(-1)?.headers).toMatchObject({
      'x-forwarded-for': '203.0.113.9',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'api.example.com',
    });
  });
});
