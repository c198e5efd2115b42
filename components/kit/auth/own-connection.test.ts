import { request } from 'node:https';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { type App, createHttpServer, listenHttp } from '#kit/http/http.ts';
import { type TestAuthority, testAuthority } from '#kit/testing/certificates.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { authPlugin } from './auth.ts';

function tokenOf(clientId: string): Caller {
  const isUser = clientId === 'user-app';
  return {
    kind: isUser ? 'user' : 'service',
    tier: isUser ? 'consumer' : 'service',
    subject: clientId,
    clientId,
    roles: [],
    scopes: [],
  } as Partial<Caller> as Caller;
}

let authority: TestAuthority;
let app: App;
let plain: App;
let port = 0;
let plainPort = 0;

const schema = { hide: true };

function serve(made: App): App {
  authPlugin(made, {
    async authenticate(token) {
      if (token === 'nobody') throw new AppError('unauthenticated', 'UNAUTHORIZED', 'unknown token');
      return tokenOf(token);
    },
  });
  made.get('/operator', { config: { policy: 'RequireOperator' }, schema }, async () => ({}));
  made.get('/service', { config: { policy: 'RequireService' }, schema }, async () => ({}));
  made.get('/api/internal/operator', { config: { policy: 'RequireOperator' }, schema }, async () => ({}));
  made.get('/api/internal/service', { config: { policy: 'RequireService' }, schema }, async () => ({}));
  made.get('/api/internal/things/:id', { config: { policy: 'RequireService' }, schema }, async () => ({}));
  made.get('/api/internal/person', { config: { policy: 'RequireAuthenticated' }, schema }, async () => ({}));
  made.get('/api/internal/anybody', { config: { policy: 'Anonymous' }, schema }, async () => ({}));
  made.get('/api/:area/internal/service', { config: { policy: 'RequireService' }, schema }, async () => ({}));
  made.get('/api/internals', { config: { policy: 'RequireService' }, schema }, async () => ({}));
  return made;
}

beforeAll(async () => {
  authority = await testAuthority();
  const own = await authority.identity('service-test');
  app = serve(createHttpServer({ runtime: testRuntime('service-test'), title: 'test', https: own }));
  plain = serve(createHttpServer({ runtime: testRuntime('service-test'), title: 'test' }));
  port = await listenHttp(app, { host: '127.0.0.1', port: 0 });
  plainPort = await listenHttp(plain, { host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await app.close();
  await plain.close();
});

/** Status of a call with the certificate of one client id and the token of another, or none. */
async function ask(path: string, certificate: string, token?: string, uris?: string[]): Promise<number> {
  const { key, cert } = await authority.issue(certificate, uris === undefined ? {} : { uris });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const at = { port, host: '127.0.0.1', path, agent: false };
  const asked = request({ ...at, headers, key, cert, rejectUnauthorized: false }, (response) => {
    response.resume();
    response.on('end', () => resolve(response.statusCode ?? 0));
  });
  asked.on('error', reject);
  asked.end();
  return promise;
}

describe.each(['/operator', '/api/internal/operator'])('%s, a route of the operator alone', (path) => {
  it('requires its own token and certificate', async () => {
    expect(await ask(path, 'service-operator', 'service-operator')).toBe(200);
    expect(await ask(path, 'service-gateway', 'service-operator')).toBe(403);
    expect(await ask(path, 'service-operator', 'service-gateway')).toBe(403);
    expect(await ask(path, 'x-service-operator', 'service-operator')).toBe(403);
    expect(await ask(path, 'service-operator', 'nobody')).toBe(401);
  });

  it("is not served to an SVID whose path only ends like the operator's", async () => {
    const uris = [`spiffe://${testInstallation}/elsewhere/service/service-operator`];
    expect(await ask(path, 'service-operator', 'service-operator', uris)).toBe(403);
  });

  it('is not served over a connection without a certificate', async () => {
    const headers = { authorization: 'Bearer service-operator' };
    expect((await fetch(`http://127.0.0.1:${plainPort}${path}`, { headers })).status).toBe(401);
  });
});

describe('an internal route', () => {
  it.each(['/api/internal/service', '/api/internal/things/7', '/api/wallets/internal/service'])(
    '%s is served over the connection of the token owner alone',
    async (path) => {
      expect(await ask(path, 'service-register', 'service-register')).toBe(200);
      expect(await ask(path, 'service-wallet', 'service-register')).toBe(403);
      expect(await ask(path, 'service-register', 'nobody')).toBe(401);
      expect(await ask(path, 'service-register')).toBe(401);
    },
  );

  it.each([
    '/api/internal/service',
    '/api/internal/person',
    '/api/internal/anybody',
    '/api/wallets/internal/service',
  ])('%s is never served to the gateway, with any token', async (path) => {
    for (const token of [
      'service-register',
      'service-gateway',
      'service-operator',
      'user-app',
      'nobody',
      undefined,
    ])
      expect(await ask(path, 'service-gateway', token), token).toBe(403);
  });

  it('is not served to a person, who has no certificate of that name', async () => {
    expect(await ask('/api/internal/person', 'service-register', 'user-app')).toBe(403);
  });

  it('is served to any workload of the installation except the gateway where it is anonymous', async () => {
    expect(await ask('/api/internal/anybody', 'service-register')).toBe(200);
    expect((await fetch(`http://127.0.0.1:${plainPort}/api/internal/anybody`)).status).toBe(200);
  });

  it('is not served over a connection without a certificate when it requires a token', async () => {
    const headers = { authorization: 'Bearer service-register' };
    const answer = await fetch(`http://127.0.0.1:${plainPort}/api/internal/service`, { headers });
    expect(answer.status).toBe(401);
  });

  it('is 404 to the gateway when nothing serves it', async () => {
    expect(await ask('/api/internal/unknown', 'service-gateway')).toBe(404);
  });
});

describe('a route of any service', () => {
  it('may be called through another process', async () => {
    expect(await ask('/service', 'service-gateway', 'service-operator')).toBe(200);
    expect(await ask('/api/internals', 'service-gateway', 'service-operator')).toBe(200);
  });
});
