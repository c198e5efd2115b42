import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { createHttpServer } from '#kit/http/http.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { authPlugin } from './auth.ts';

const service = { kind: 'service', tier: 'service', clientId: 'service-test', roles: [], scopes: [] };

function open() {
  const runtime = testRuntime('service-test');
  const app = createHttpServer({ runtime, title: 'Test' });
  authPlugin(app, {
    async authenticate(token) {
      if (token !== 'good') throw new AppError('unauthenticated', 'UNAUTHORIZED', 'unknown token');
      return service as Partial<Caller> as Caller;
    },
  });
  let reached = 0;
  const params = z.object({ id: z.string() });
  const mount = (url: string, policy: 'RequireService' | 'RequireOperator' | 'Anonymous') =>
    app.get(url, { config: { policy }, schema: { params, hide: true } }, async (request) => {
      reached += 1;
      return { length: request.params.id.length };
    });
  mount('/things/:id', 'RequireService');
  mount('/things/:id/parts', 'RequireService');
  mount('/operators/:id', 'RequireOperator');
  mount('/open/:id', 'Anonymous');
  app.post('/things/:id', { config: { policy: 'RequireService' }, schema: { hide: true } }, async () => {
    reached += 1;
    return {};
  });
  onTestFinished(() => app.close());
  return { app, runtime, reached: () => reached };
}

const long = 'x'.repeat(513);
const headers = { authorization: 'Bearer good' };

describe('a path segment over 512 characters', () => {
  it('is 401 without a token and with a wrong one, as on any path of the route', async () => {
    const { app, reached } = open();
    for (const url of [`/things/${long}`, `/things/${long}/parts`, `/operators/${'x'.repeat(9000)}`])
      for (const given of [{}, { authorization: 'Bearer bad' }]) {
        const answer = await app.inject({ url, headers: given });
        expect(answer.statusCode).toBe(401);
        expect(answer.headers['www-authenticate']).toContain('Bearer realm="platform"');
        expect(answer.json()).toMatchObject({ code: 'UNAUTHORIZED', path: url });
      }
    expect(reached()).toBe(0);
  });

  it('is 403 for a caller that the policy refuses', async () => {
    expect((await open().app.inject({ url: `/operators/${long}`, headers })).statusCode).toBe(403);
  });

  it('is 404 with the trace of the request, counted and logged under its route', async () => {
    const { app, runtime, reached } = open();
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    const traced = { ...headers, traceparent: `00-${traceId}-00f067aa0ba902b7-01` };
    for (const url of [`/things/${long}`, `/things/${'%41'.repeat(513)}`, `/open/${long}`]) {
      const answer = await app.inject({ url, headers: traced });
      expect(answer.statusCode).toBe(404);
      expect(answer.json()).toMatchObject({ code: 'NOT_FOUND', path: url, instance: url, traceId });
    }
    expect(runtime.lines).toContainEqual(
      expect.objectContaining({ route: '/things/:id', status: 404, traceId }),
    );
    expect(reached()).toBe(0);
  });

  it('is refused before a body is read', async () => {
    const { app } = open();
    const post = { method: 'POST', url: `/things/${long}`, headers, payload: 'not json' } as const;
    expect(
      (await app.inject({ ...post, headers: { ...headers, 'content-type': 'application/json' } })).statusCode,
    ).toBe(404);
  });

  it('is served up to 512 characters', async () => {
    const answer = await open().app.inject({ url: `/things/${'%41'.repeat(512)}`, headers });
    expect(answer.json()).toEqual({ length: 512 });
  });

  it('is 404 where nothing is served, and 405 where only another method is', async () => {
    const { app } = open();
    expect((await app.inject({ url: `/nothing/${long}` })).statusCode).toBe(404);
    expect((await app.inject({ method: 'DELETE', url: `/things/${long}` })).statusCode).toBe(405);
  });
});
