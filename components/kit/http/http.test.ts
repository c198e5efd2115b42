import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { AppError, type ErrorKind } from '#core/errors/errors.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { type App, createHttpServer, type HttpServerOptions, kindStatus, page, paging } from './http.ts';

const startMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

function openApp(mount: (app: App) => void, options: Partial<HttpServerOptions> = {}) {
  const runtime = testRuntime('service-test', { clock: manualClock(startMs) });
  const app = createHttpServer({ runtime, title: 'Test', ...options });
  mount(app);
  onTestFinished(() => app.close());
  return { app, runtime };
}

const anonymous = { policy: 'Anonymous' } as const;
const thing = z.object({ name: z.string().min(2), size: z.int().optional() }).meta({ id: 'KitHttpThing' });

function mountThings(app: App): void {
  app.post(
    '/things',
    { config: anonymous, schema: { operationId: 'createThing', body: thing, response: { 201: thing } } },
    (request, reply) => reply.code(201).send(request.body),
  );
  app.get(
    '/things/:id',
    { config: anonymous, schema: { operationId: 'getThing', params: z.object({ id: z.uuid() }) } },
    (request) => ({
      id: request.params.id,
    }),
  );
  app.get(
    '/things',
    { config: anonymous, schema: { operationId: 'listThings', querystring: paging() } },
    (request) => page(['a'], request.query, 41),
  );
}

function mountThrow(error: unknown): (app: App) => void {
  return (app) => {
    app.get('/fails', { config: anonymous, schema: { hide: true } }, () => {
      throw error;
    });
  };
}

describe('routes', () => {
  it('cannot be registered without a policy', () => {
    const { app } = openApp(() => undefined);
    expect(() => app.get('/open', () => 'x')).toThrow('GET /open declares no policy');
  });

  it('parse input with zod and drop unknown members', async () => {
    const { app } = openApp(mountThings);
    const answer = await app.inject({ method: 'POST', url: '/things', payload: { name: 'ab', extra: 1 } });
    expect(answer.statusCode).toBe(201);
    expect(answer.json()).toEqual({ name: 'ab' });
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  });

  it('send what the handler returns, without forcing it into the declared schema', async () => {
    const { app } = openApp((open) => {
      open.get(
        '/raw',
        { config: anonymous, schema: { hide: true, response: { 200: thing } } },
        (_request, reply) => reply.type('application/json').send('{"name":  "kept as it is"}'),
      );
      open.get('/more', { config: anonymous, schema: { hide: true, response: { 200: thing } } }, () => {
        const more = { name: 'ab', extra: true };
        return more;
      });
    });
    expect((await app.inject('/raw')).body).toBe('{"name":  "kept as it is"}');
    expect((await app.inject('/more')).json()).toEqual({ name: 'ab', extra: true });
  });

  it('answer HEAD where they answer GET', async () => {
    const { app } = openApp(mountThings);
    const answer = await app.inject({ method: 'HEAD', url: '/things' });
    expect([answer.statusCode, answer.body]).toEqual([200, '']);
  });
});

describe('problem bodies', () => {
  it('carry the members of RFC 9457 and of the specification', async () => {
    const { app } = openApp(mountThrow(new AppError('conflict', 'NAME_TAKEN_1', 'The name is taken.')));
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    const answer = await app.inject({
      url: '/fails?secret=1',
      headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` },
    });
    expect(answer.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    expect(answer.json()).toEqual({
      type: 'urn:platform:error:name-taken-1',
      title: 'Conflict',
      status: 409,
      detail: 'The name is taken.',
      instance: '/fails',
      error: 'The name is taken.',
      code: 'NAME_TAKEN_1',
      timestamp: '2026-01-02T03:04:05.678Z',
      path: '/fails',
      traceId,
    });
  });

  it.each(Object.entries(kindStatus))('answer kind %s with status %i', async (kind, status) => {
    const { app } = openApp(mountThrow(new AppError(kind as ErrorKind, 'SOME_CODE', 'Text.')));
    const answer = await app.inject('/fails');
    expect(answer.statusCode).toBe(status);
    expect(answer.json().status).toBe(status);
    expect(answer.json().traceId).toMatch(/^[0-9a-f]{32}$/);
  });

  it('present violations as a failed validation with the code of the first', async () => {
    const violations = [
      { code: 'VAL_SIG_001', message: 'Bad signature.', field: 'signatures[0]', severity: 'Error' as const },
      { code: 'VAL_TIME_002', message: 'Too old.', severity: 'Warning' as const },
    ];
    const { app } = openApp(
      mountThrow(new AppError('invalid', 'VAL_SIG_001', 'Bad signature.', { violations })),
    );
    const answer = await app.inject('/fails');
    expect(answer.statusCode).toBe(400);
    expect(answer.json()).toMatchObject({
      isValid: false,
      added: false,
      errors: violations,
      code: 'VAL_SIG_001',
    });
  });

  it('add details without letting them replace standard members', async () => {
    const error = new AppError('forbidden', 'TIER_NOT_ENTITLED', 'No.', {
      details: { tier: 'consumer', status: 200 },
    });
    const { app } = openApp(mountThrow(error));
    expect((await app.inject('/fails')).json()).toMatchObject({ tier: 'consumer', status: 403 });
  });

  it.each([
    ['an unknown throw', new Error('password=hunter2')],
    ['an internal error', new AppError('internal', 'KEY_LOST', 'password=hunter2')],
    ['an error with a foreign status', Object.assign(new Error('password=hunter2'), { statusCode: 418 })],
  ])('hide the text of %s and log it once', async (_name, error) => {
    const { app, runtime } = openApp(mountThrow(error));
    const answer = await app.inject('/fails');
    expect(answer.statusCode).toBe(500);
    expect(answer.json()).toMatchObject({ code: 'INTERNAL_ERROR', error: 'An internal error occurred.' });
    expect(answer.body).not.toContain('hunter2');
    expect(runtime.lines.filter((line) => line['level'] === 'error')).toHaveLength(1);
  });

  it('challenge on 401, and name the token as invalid when one was sent', async () => {
    const { app } = openApp(mountThrow(new AppError('unauthenticated', 'UNAUTHORIZED', 'No.')));
    expect((await app.inject('/fails')).headers['www-authenticate']).toBe('Bearer realm="platform"');
    const withToken = await app.inject({ url: '/fails', headers: { authorization: 'Bearer x' } });
    expect(withToken.headers['www-authenticate']).toBe('Bearer realm="platform", error="invalid_token"');
  });

  it('keep a challenge that the route has set', async () => {
    const { app } = openApp((open) => {
      open.get('/step-up', { config: anonymous, schema: { hide: true } }, (_request, reply) => {
        reply.header('www-authenticate', 'Bearer realm="platform", max_age=300');
        throw new AppError('unauthenticated', 'UNAUTHORIZED', 'No.');
      });
    });
    expect((await app.inject('/step-up')).headers['www-authenticate']).toContain('max_age=300');
  });

  it('contain Retry-After', async () => {
    const { app } = openApp(
      mountThrow(new AppError('rate_limited', 'RATE_LIMITED', 'Full.', { retryAfterSeconds: 0.2 })),
    );
    expect((await app.inject('/fails')).headers['retry-after']).toBe('1');
  });
});

describe('bad input', () => {
  const post = (app: App, payload: string | Buffer, contentType = 'application/json') =>
    app.inject({ method: 'POST', url: '/things', payload, headers: { 'content-type': contentType } });

  it.each([
    ['malformed JSON', '{"name":'],
    ['an empty body', ''],
    ['a prototype member', '{"name":"ab","__proto__":{"x":1}}'],
    ['broken UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['duplicate members', '{"name":"ab","name":"cd"}'],
    ['deep nesting', `{"name":"ab","x":${'['.repeat(70)}${']'.repeat(70)}}`],
    ['a lone surrogate', '{"name":"\\ud800x"}'],
    ['a wrong type', '{"name":5}'],
    ['null', 'null'],
  ])('answers 400 to %s', async (_name, payload) => {
    const { app } = openApp(mountThings);
    const answer = await post(app, payload);
    expect(answer.statusCode).toBe(400);
    expect(answer.json()).toMatchObject({
      code: 'INVALID_REQUEST',
      type: 'urn:platform:error:invalid-request',
    });
  });

  it('names every field that is wrong', async () => {
    const { app } = openApp(mountThings);
    const answer = await post(app, '{"name":"a","size":1.5}');
    expect(Object.keys(answer.json().errors)).toEqual(['name', 'size']);
  });

  it('answers 413 to a body over the limit', async () => {
    const { app } = openApp(mountThings, { bodyLimitBytes: 100 });
    const answer = await post(app, JSON.stringify({ name: 'x'.repeat(200) }));
    expect([answer.statusCode, answer.json().code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  });

  it('answers 415 to another content type', async () => {
    const { app } = openApp(mountThings);
    const answer = await post(app, 'name=ab', 'application/x-www-form-urlencoded');
    expect([answer.statusCode, answer.json().code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
  });

  it('answers 404 to a malformed path parameter and to an unknown path', async () => {
    const { app } = openApp(mountThings);
    expect((await app.inject('/things/not-a-uuid')).json().code).toBe('NOT_FOUND');
    expect((await app.inject('/nothing')).statusCode).toBe(404);
    expect((await app.inject('/things/%zz')).statusCode).toBe(400);
    expect((await app.inject(`/things/${'x'.repeat(5_000)}`)).json().code).toBe('NOT_FOUND');
  });

  it('answers 405 with the methods that a path has', async () => {
    const { app } = openApp(mountThings);
    const answer = await app.inject({ method: 'DELETE', url: '/things?x=1' });
    expect(answer.statusCode).toBe(405);
    expect(answer.headers.allow).toBe('POST, GET, HEAD');
    expect(answer.json().code).toBe('METHOD_NOT_ALLOWED');
  });

  it.each([
    'page=0',
    'pageSize=101',
    'pageSize=0',
    'page=x',
    'page=1.5',
    'page=0x10',
    'page=1e3',
    'page=1%0a',
    'page=%201',
    'page=%2B1',
    'page=+1',
    'page=1.0',
    'page=01',
    'page=%D9%A3',
    'page=',
    'page=1&page=2',
  ])('refuses paging %s', async (query) => {
    const { app } = openApp(mountThings);
    expect((await app.inject(`/things?${query}`)).statusCode).toBe(400);
  });
});

describe('raw bodies', () => {
  it('keep the text as sent', async () => {
    const { app } = openApp((open) => {
      open.post('/raw', { config: { ...anonymous, rawBody: true }, schema: { hide: true } }, (request) => [
        request.rawBody,
        request.body,
      ]);
      open.post('/only', { config: { ...anonymous, rawBody: 'only' }, schema: { hide: true } }, (request) => [
        request.rawBody,
        request.body === undefined,
      ]);
      open.post('/none', { config: anonymous, schema: { hide: true } }, (request) => [
        request.rawBody === undefined,
      ]);
    });
    const send = async (url: string) => {
      const payload = '{ "a" : 1 }';
      return (
        await app.inject({ method: 'POST', url, payload, headers: { 'content-type': 'application/json' } })
      ).json();
    };
    expect(await send('/raw')).toEqual(['{ "a" : 1 }', { a: 1 }]);
    expect(await send('/only')).toEqual(['{ "a" : 1 }', true]);
    expect(await send('/none')).toEqual([true]);
  });
});

describe('observation', () => {
  it('counts requests by route pattern and status', async () => {
    const { app, runtime } = openApp(mountThings);
    await app.inject('/things/0190a0a0-0000-7000-8000-000000000001');
    await app.inject('/nothing/at/all');
    const text = await runtime.telemetry.registry.metrics();
    expect(text).toContain(
      'chancery_test_http_request_seconds_count{method="GET",route="/things/:id",status="200"} 1',
    );
    expect(text).toContain('route="unmatched",status="404"} 1');
  });

  it('counts the requests of all listeners of a component together', async () => {
    const { app, runtime } = openApp(mountThings);
    const second = createHttpServer({ runtime, title: 'Second' });
    mountThings(second);
    onTestFinished(() => second.close());
    await Promise.all([app.inject('/things'), second.inject('/things')]);
    const text = await runtime.telemetry.registry.metrics();
    expect(text).toContain('http_request_seconds_count{method="GET",route="/things",status="200"} 2');
  });

  it('logs no query string and no header', async () => {
    const { app, runtime } = openApp(mountThings);
    await app.inject({ url: '/things?page=7', headers: { authorization: 'Bearer not-to-be-logged' } });
    const text = JSON.stringify(runtime.lines);
    expect(runtime.lines.some((line) => line['msg'] === 'request' && line['route'] === '/things')).toBe(true);
    expect(text).not.toContain('page=7');
    expect(text).not.toContain('not-to-be-logged');
  });
});

describe('OpenAPI', () => {
  it('shows schemas, policies and refusals of its own routes only', async () => {
    const unrelated = z.object({ x: z.string() }).meta({ id: 'KitHttpUnrelated' });
    expect(unrelated).toBeDefined();
    const { app } = openApp((open) => {
      mountThings(open);
      const schema = { operationId: 'getGuarded' };
      open.get('/guarded', { config: { policy: 'RequireAuthenticated' }, schema }, () => 'x');
    });
    const document = (await app.inject('/openapi.json')).json();
    expect(document.openapi).toBe('3.1.0');
    expect(Object.keys(document.paths).sort()).toEqual(['/guarded', '/things', '/things/{id}']);
    expect(Object.keys(document.components.schemas)).toEqual(
      expect.arrayContaining(['KitHttpThing', 'KitHttpThingInput']),
    );
    expect(document.components.schemas).not.toHaveProperty('KitHttpUnrelated');
    expect(document.paths['/guarded'].get.security).toEqual([{ bearer: [] }]);
    expect(document.paths['/things'].post.security).toEqual([]);
    expect(document.paths['/things'].post.responses).toHaveProperty('201');
    expect(document.paths['/things'].post.responses.default.content).toHaveProperty(
      'application/problem+json',
    );
    expect((await app.inject('/openapi.json')).statusCode).toBe(200);
  });
});

describe('a NUL in a URL', () => {
  it.each([
    ['/things/%00', 404, 'NOT_FOUND'],
    ['/things?page=%00', 400, 'INVALID_REQUEST'],
    ['/things?%00', 400, 'INVALID_REQUEST'],
  ])('%s is refused before the schemas judge it', async (url, status, code) => {
    const { app } = openApp(mountThings);
    const answer = await app.inject({ url });
    expect([answer.statusCode, answer.json().code]).toEqual([status, code]);
  });
});
