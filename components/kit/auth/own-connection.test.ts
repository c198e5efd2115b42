import { request } from 'node:https';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { type App, createHttpServer, listenHttp } from '#kit/http/http.ts';
import { type TestAuthority, testAuthority } from '#kit/testing/certificates.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { authPlugin } from './auth.ts';

function tokenOf(clientId: string): Caller {
  return {
    kind: 'service',
    tier: 'service',
    subject: clientId,
    clientId,
    roles: [],
    scopes: [],
  } as Partial<Caller> as Caller;
}

describe('a route of the operator alone', () => {
  let authority: TestAuthority;
  let app: App;
  let plain: App;
  let port = 0;
  let plainPort = 0;

  function serve(made: App): App {
    authPlugin(made, {
      async authenticate(token) {
        if (token === 'nobody') throw new AppError('unauthenticated', 'UNAUTHORIZED', 'unknown token');
        return tokenOf(token);
      },
    });
    made.get(
      '/internal',
      { config: { policy: 'RequireOperator' }, schema: { hide: true } },
      async () => ({}),
    );
    made.get('/service', { config: { policy: 'RequireService' }, schema: { hide: true } }, async () => ({}));
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

  async function ask(path: string, certificate: string, token: string): Promise<number> {
    const { key, cert } = await authority.issue(certificate);
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}` };
      const options = {
        port,
        host: '127.0.0.1',
        path,
        headers,
        key,
        cert,
        rejectUnauthorized: false,
        agent: false,
      };
      const asked = request(options, (response) => {
        response.resume();
        response.on('end', () => resolve(response.statusCode ?? 0));
      });
      asked.on('error', reject);
      asked.end();
    });
  }

  it('wants its token and its certificate', async () => {
    expect(await ask('/internal', 'service-operator', 'service-operator')).toBe(200);
    expect(await ask('/internal', 'service-gateway', 'service-operator')).toBe(403);
    expect(await ask('/internal', 'service-operator', 'service-gateway')).toBe(403);
    expect(await ask('/internal', 'x-service-operator', 'service-operator')).toBe(403);
    expect(await ask('/internal', 'service-operator', 'nobody')).toBe(401);
  });

  it('is not served over a connection without a certificate', async () => {
    const headers = { authorization: 'Bearer service-operator' };
    expect((await fetch(`http://127.0.0.1:${plainPort}/internal`, { headers })).status).toBe(401);
  });

  it('is another thing than a route of any service, which may be called through others', async () => {
    expect(await ask('/service', 'service-gateway', 'service-operator')).toBe(200);
  });
});
