import type { RequestListener } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { call, createTestWorld, type TestGateway, type TestWorld } from './testing/world.ts';

const okay: RequestListener = (_request, response) => response.writeHead(404).end();

/** A loopback port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function serving(document: unknown): RequestListener {
  return (request, response) => {
    if (request.url === '/openapi.json') response.end(JSON.stringify(document));
    else response.writeHead(404).end();
  };
}

const tenantDocument = {
  openapi: '3.1.0',
  info: { title: 'Tenant', version: '1' },
  paths: {
    '/api/auth/me': {
      get: {
        operationId: 'me',
        responses: {
          200: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Item' } } } },
        },
      },
    },
    '/api/internal/service-auth/token': { post: {} },
    '/api/registers/stolen': { get: {} },
  },
  components: {
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
    schemas: { Item: { type: 'object', properties: { next: { $ref: '#/components/schemas/Item' } } } },
  },
};

const registerDocument = {
  openapi: '3.1.0',
  info: { title: 'Register', version: '1' },
  paths: {
    '/api/registers/{id}': { get: { responses: { 200: { $ref: '#/components/responses/One' } } } },
    '/api/registers/{id}/cache': { delete: { responses: { 200: { $ref: '#/components/schemas/Hidden' } } } },
  },
  components: {
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
    responses: {
      One: {
        description: 'one',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Item' } } },
      },
    },
    schemas: { Item: { type: 'string' }, Hidden: { type: 'object' } },
  },
};

describe('pages of the gateway', () => {
  let world: TestWorld;
  let gateway: TestGateway;

  beforeAll(async () => {
    world = await createTestWorld();
    const tenant = await world.startService('tenant', serving(tenantDocument));
    const register = await world.startService('register', serving(registerDocument));
    gateway = await world.startGateway({
      tenant: tenant.address,
      register: register.address,
    });
  });

  afterAll(() => world.stop());

  it('answers its own health check', async () => {
    const answer = await call(gateway.port, '/health');
    expect(answer.status).toBe(200);
    expect(answer.json()).toMatchObject({ status: 'healthy', service: 'gateway' });
  });

  it('is degraded when a non-essential service is down, without revealing its address', async () => {
    const [tenant, register] = [
      await world.startService('tenant', okay),
      await world.startService('register', okay),
    ];
    const addresses = { tenant: tenant.address, register: register.address, wallet: '127.0.0.1:9' };
    const answer = await call((await world.startGateway(addresses)).port, '/api/health');
    expect(answer.status).toBe(200);
    expect(answer.json()).toMatchObject({
      status: 'degraded',
      services: {
        tenant: { status: 'healthy' },
        register: { status: 'healthy' },
        wallet: { status: 'unhealthy' },
      },
    });
    expect(answer.text).not.toMatch(/127\.0\.0\.1|endpoint|error/i);
  });

  it('is unhealthy with 503 when the tenant or the register service is down or answers 5xx', async () => {
    const good = await world.startService('tenant', okay);
    const bad = await world.startService('register', (_request, response) => response.writeHead(503).end());
    for (const services of [
      { tenant: good.address, register: '127.0.0.1:9' },
      { tenant: good.address, register: bad.address },
      { tenant: good.address },
    ]) {
      const other = await world.startGateway(services);
      const answer = await call(other.port, '/api/health');
      expect(answer.status).toBe(503);
      expect(answer.json()['status']).toBe('unhealthy');
    }
  });

  it('merges the documents of all services under their public paths', async () => {
    const answer = await call(gateway.port, '/openapi.json');
    expect(answer.status).toBe(200);
    const document = answer.json() as {
      openapi: string;
      paths: Record<string, unknown>;
      components: Record<string, Record<string, unknown>>;
    };
    expect(document.openapi).toBe('3.1.0');
    expect(Object.keys(document.paths)).toEqual(
      expect.arrayContaining(['/api/auth/me', '/api/health', '/api/registers/{id}', '/health']),
    );
    expect(answer.text).not.toMatch(/api\/internal|stolen|\/cache/);
    const names = Object.keys(document.components['schemas'] ?? {});
    expect(names).toEqual(expect.arrayContaining(['TenantItem', 'RegisterItem']));
    expect(names).not.toContain('RegisterHidden');
    expect(Object.keys(document.components['securitySchemes'] ?? {})).toEqual(['bearer']);
    expect(document.paths['/api/auth/me']).toMatchObject({ get: { operationId: 'me' } });
    const refs = [...answer.text.matchAll(/"\$ref":"#\/components\/([^/"]+)\/([^/"]+)"/g)];
    expect(refs.length).toBeGreaterThan(3);
    for (const [, section = '', name = ''] of refs)
      expect(document.components[section]?.[name], name).toBeDefined();
  });

  it('serves one document per service', async () => {
    const register = await call(gateway.port, '/openapi/register.json');
    expect(register.status).toBe(200);
    expect(Object.keys(register.json()['paths'] as object)).toEqual(['/api/registers/{id}']);
    for (const name of ['blueprint', 'nobody', '..', 'register.yaml']) {
      expect((await call(gateway.port, `/openapi/${name}.json`)).status, name).toBe(404);
    }
  });

  it('serves no partial document: 503 until each has been fetched once', async () => {
    const port = await freePort();
    const tenant = await world.startService('tenant', serving(tenantDocument));
    const other = await world.startGateway({ tenant: tenant.address, register: `127.0.0.1:${port}` });
    for (const path of ['/openapi.json', '/openapi/all.json', '/openapi/register.json']) {
      const answer = await call(other.port, path);
      expect(answer.status, path).toBe(503);
      expect(answer.headers).toMatchObject({ 'retry-after': '1', 'cache-control': 'no-store' });
      expect(answer.json()['code']).toBe('SERVICE_UNAVAILABLE');
    }
    const whole = await call(other.port, '/openapi/tenant.json');
    expect([whole.status, whole.headers['cache-control']]).toEqual([200, 'public, max-age=30']);
    const register = await world.startService('register', serving(registerDocument), { port });
    const merged = await waitFor(async () => {
      const answer = await call(other.port, '/openapi.json');
      return answer.status === 200 && answer;
    });
    expect(Object.keys(merged.json()['paths'] as object)).toContain('/api/registers/{id}');
    expect(merged.headers['cache-control']).toBe('public, max-age=30');
    await register.stop();
    expect((await call(other.port, '/openapi.json')).status).toBe(200);
  });

  it('allow GET and HEAD only: other methods answer 405 with Allow', async () => {
    for (const path of [
      '/health',
      '/api/health',
      '/openapi.json',
      '/openapi/tenant.json',
      '/docs',
      '/docs/x.js',
    ])
      for (const method of ['POST', 'DELETE', 'OPTIONS', 'TRACE']) {
        const answer = await call(gateway.port, path, { method });
        expect(answer.status, `${method} ${path}`).toBe(405);
        expect(answer.headers.allow).toBe('GET, HEAD');
        expect(answer.json()).toMatchObject({ code: 'METHOD_NOT_ALLOWED', path });
      }
    expect((await call(gateway.port, '/health', { method: 'HEAD' })).status).toBe(200);
  });

  it('serves the reference page from its own files, with a policy that allows no others', async () => {
    const page = await call(gateway.port, '/docs');
    expect(page.status).toBe(200);
    expect(page.headers['content-type']).toContain('text/html');
    expect(page.headers['content-security-policy']).toContain("script-src 'self'");
    expect(page.text).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
    const assets = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? '');
    expect(assets.length).toBeGreaterThan(4);
    for (const asset of assets) {
      const answer = await call(gateway.port, new URL(asset, 'http://h/docs').pathname);
      expect(answer.status, asset).toBe(200);
    }
    const json = await call(gateway.port, '/docs/json');
    expect(json.status).toBe(302);
    expect(json.headers.location).toBe('/openapi.json');
    expect((await call(gateway.port, '/docs/static/../../package.json')).status).toBe(404);
    expect((await call(gateway.port, '/api/health')).headers['content-security-policy']).not.toContain(
      'script-src',
    );
  });

  it('has operations pages on their own listener only', async () => {
    const ops = gateway.component.addresses.ops?.split(':').at(-1);
    expect((await call(Number(ops), '/ready')).status).toBe(200);
    expect((await call(Number(ops), '/metrics')).text).toContain('chancery_gateway_request_seconds');
    expect((await call(gateway.port, '/metrics')).status).toBe(404);
  });
});
