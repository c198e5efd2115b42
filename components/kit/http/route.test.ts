import { Readable } from 'node:stream';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Idempotency, RepeatableRequest } from '#kit/db/idempotency.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import {
  type App,
  addRoute,
  answer,
  createHttpServer,
  empty,
  ForwardedRefusal,
  json,
  jsonText,
  media,
  problemAnswer,
} from './http.ts';

const caller = { subject: 'ada', scopes: ['audit:write'], kind: 'user' } as Partial<Caller> as Caller;

function build(): App {
  const app = createHttpServer({ runtime: testRuntime('t'), title: 't' });
  app.addHook('onRequest', async (request) => {
    if (request.headers.authorization !== undefined) request.caller = caller;
  });
  return app;
}

const bearer = { authorization: 'Bearer abc' };
const thing = z.object({ id: z.string(), size: z.int().optional() });
const things = {
  method: 'GET',
  tag: 'Things',
  summary: 'A thing',
  policy: 'RequireAuthenticated',
  rateLimit: 'Api',
  refusals: [],
} as const;

/** Stores answers in memory, as the tables of components do. */
function memoryIdempotency(): Idempotency & { readonly requests: RepeatableRequest[] } {
  const requests: RepeatableRequest[] = [];
  const stored = new Map<string, string>();
  return {
    requests,
    async once(request, act, isKept = () => true) {
      requests.push(request);
      if (request.key === undefined) return act();
      const name = JSON.stringify([request.scope, request.key]);
      const known = stored.get(name);
      if (known !== undefined) return JSON.parse(known);
      const made = await act();
      if (isKept(made)) stored.set(name, JSON.stringify(made));
      return made;
    },
  };
}

describe('a route', () => {
  it('answers with the body that its handler returns, by the only declared status', async () => {
    const app = build();
    addRoute(app, {
      ...things,
      path: '/things/:id',
      operationId: 'getThing',
      params: z.object({ id: z.string() }),
      query: z.object({ size: z.coerce.number().int().optional() }),
      answers: { 200: json('The thing.', thing) },
      noStore: true,
      handle: (input) => {
        expectTypeOf(input.caller).toEqualTypeOf<Caller>();
        expectTypeOf(input.body).toEqualTypeOf<undefined>();
        return { id: input.params.id, size: input.query.size };
      },
    });
    const got = await app.inject({ url: '/things/a?size=3', headers: bearer });
    expect([got.statusCode, got.json()]).toEqual([200, { id: 'a', size: 3 }]);
    expect(got.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
    });
    expect((await app.inject({ url: '/things/a' })).statusCode).toBe(401);
  });

  it('finds what the path names before the handler runs', async () => {
    const app = build();
    addRoute(app, {
      ...things,
      path: '/things/:id',
      operationId: 'getThing',
      params: z.object({ id: z.string() }),
      refusals: [{ code: 'THING_NOT_FOUND', kind: 'not_found' }],
      resource: async ({ params, caller: { subject } }) => {
        if (params.id !== 'a') throw new AppError('not_found', 'THING_NOT_FOUND', 'There is no such thing.');
        return { owner: subject };
      },
      answers: { 200: json('The owner.', z.object({ owner: z.string() })) },
      handle: ({ resource }) => resource,
    });
    expect((await app.inject({ url: '/things/a', headers: bearer })).json()).toEqual({ owner: 'ada' });
    const other = await app.inject({ url: '/things/b', headers: bearer });
    expect([other.statusCode, other.json().code]).toEqual([404, 'THING_NOT_FOUND']);
  });

  it('sends text, streams, written JSON and nothing', async () => {
    const app = build();
    const path = { ...things, params: z.object({ id: z.string() }) } as const;
    addRoute(app, {
      ...things,
      path: '/text',
      operationId: 'getText',
      answers: { 200: media('text/plain', 'A text.') },
      handle: () => 'a text',
    });
    addRoute(app, {
      ...things,
      path: '/lines',
      operationId: 'getLines',
      answers: { 200: media('application/x-ndjson', 'Lines.') },
      handle: () => answer(200, Readable.from(['1\n', '2\n']), { 'content-disposition': 'attachment' }),
    });
    addRoute(app, {
      ...things,
      path: '/record',
      operationId: 'getRecord',
      answers: { 200: json('The record.', thing) },
      handle: () => jsonText(Buffer.from('{ "id": "a" }')),
    });
    addRoute(app, {
      ...path,
      method: 'DELETE',
      path: '/things/:id',
      operationId: 'deleteThing',
      answers: { 204: empty('It is deleted.') },
      handle: () => undefined,
    });
    const got = await Promise.all(
      ['/text', '/lines', '/record'].map((url) => app.inject({ url, headers: bearer })),
    );
    expect(got.map(({ body }) => body)).toEqual(['a text', '1\n2\n', '{ "id": "a" }']);
    expect(got.map(({ headers }) => headers['content-type'])).toEqual([
      'text/plain',
      'application/x-ndjson',
      'application/json; charset=utf-8',
    ]);
    expect(got[1]?.headers['content-disposition']).toBe('attachment');
    const deleted = await app.inject({ method: 'DELETE', url: '/things/a', headers: bearer });
    expect([deleted.statusCode, deleted.body]).toEqual([204, '']);
  });

  it('stores the answer under the key, the operation, the caller and the path, and runs its last step again', async () => {
    const app = build();
    const idempotency = memoryIdempotency();
    let made = 0;
    addRoute(app, {
      ...things,
      method: 'POST',
      path: '/things',
      operationId: 'createThing',
      body: { schema: z.object({ id: z.string() }), example: { id: 'a' } },
      idempotency,
      answers: { 200: json('It is ready.', thing), 201: json('It is made.', thing) },
      handle: ({ body }) => {
        made += 1;
        return answer(201, { id: body.id }, { location: `/things/${body.id}` });
      },
      finish: async (first, { query }) => {
        expectTypeOf(query).toEqualTypeOf<undefined>();
        return answer(201, { ...thing.parse(first.body), size: made }, first.headers);
      },
    });
    const post = { method: 'POST', url: '/things', payload: { id: 'a' } } as const;
    const headers = { ...bearer, 'idempotency-key': 'k' };
    const [first, second] = [await app.inject({ ...post, headers }), await app.inject({ ...post, headers })];
    for (const one of [first, second]) {
      expect([one.statusCode, one.json()]).toEqual([201, { id: 'a', size: 1 }]);
      expect(one.headers['location']).toBe('/things/a');
    }
    expect(idempotency.requests[0]).toEqual({
      key: 'k',
      scope: ['createThing', 'ada', '/things'],
      body: { id: 'a' },
    });
    await app.inject({ ...post, headers: bearer });
    expect(made).toBe(2);
  });

  it('answers a refusal that is written already, and never stores it', async () => {
    const app = build();
    const idempotency = memoryIdempotency();
    let attempts = 0;
    addRoute(app, {
      ...things,
      method: 'POST',
      path: '/things',
      operationId: 'createThing',
      idempotency,
      refusals: [{ code: 'VAL_*', kind: 'unprocessable' }],
      answers: { 201: json('It is made.', thing) },
      handle: () => {
        attempts += 1;
        if (attempts === 3) return { id: 'a' };
        const code = attempts === 1 ? 'VAL_1' : 'OTHER';
        return problemAnswer(422, { code, title: 'No' }, { 'retry-after': '5' });
      },
      finish: async (first) => answer(201, thing.parse(first.body)),
    });
    const headers = { ...bearer, 'idempotency-key': 'k' };
    const post = () => app.inject({ method: 'POST', url: '/things', headers });
    const refused = await post();
    expect([refused.statusCode, refused.json()]).toEqual([422, { code: 'VAL_1', title: 'No' }]);
    expect(refused.headers).toMatchObject({
      'content-type': 'application/problem+json; charset=utf-8',
      'retry-after': '5',
    });
    expect((await post()).json()).toMatchObject({ code: 'UNDECLARED_ANSWER' });
    expect([(await post()).statusCode, (await post()).statusCode, attempts]).toEqual([201, 201, 3]);
  });

  it('demands a scope before it reads the body', async () => {
    const app = build();
    const route = { ...things, answers: { 204: empty('Done.') }, handle: () => undefined } as const;
    addRoute(app, { ...route, path: '/audit', operationId: 'getAudit', scope: 'audit:write' });
    addRoute(app, {
      ...route,
      method: 'POST',
      path: '/inbox',
      operationId: 'createEntry',
      scope: 'inbox:write',
      body: { schema: z.object({ title: z.string() }), example: { title: 'a' } },
    });
    expect((await app.inject({ url: '/audit', headers: bearer })).statusCode).toBe(204);
    expect((await app.inject({ url: '/audit' })).statusCode).toBe(401);
    const post = { method: 'POST', url: '/inbox', payload: '{"title":' } as const;
    const headers = { ...bearer, 'content-type': 'application/json' };
    expect((await app.inject({ ...post, headers })).statusCode).toBe(403);
  });

  it('declares the refusals of a token that an anonymous caller may send', async () => {
    const app = build();
    addRoute(app, {
      ...things,
      policy: 'Anonymous',
      optionalToken: true,
      path: '/state',
      operationId: 'getState',
      answers: { 204: empty('Done.') },
      handle: () => {
        throw new AppError('unauthenticated', 'UNAUTHORIZED', 'The token is revoked.');
      },
    });
    expect((await app.inject({ url: '/state', headers: bearer })).statusCode).toBe(401);
  });

  it('passes on the refusal of another service with its own path', async () => {
    const app = build();
    addRoute(app, {
      ...things,
      path: '/far',
      operationId: 'getFar',
      refusals: [{ code: 'VAL_*', kind: 'unprocessable' }],
      answers: { 204: empty('Done.') },
      handle: () => {
        const body = { code: 'VAL_1', error: 'No.', path: '/other', errors: [{ code: 'VAL_1' }] };
        throw new ForwardedRefusal({ status: 422, body, retryAfterSeconds: 2 });
      },
    });
    const got = await app.inject({ url: '/far', headers: bearer });
    expect([got.statusCode, got.headers['retry-after']]).toEqual([422, '2']);
    expect(got.json()).toMatchObject({
      code: 'VAL_1',
      path: '/far',
      error: 'No.',
      errors: [{ code: 'VAL_1' }],
    });
  });
});

describe('in tests, an answer that its route does not declare', () => {
  const refusing = (handle: () => { readonly id: string }) => {
    const app = build();
    addRoute(app, {
      ...things,
      path: '/thing',
      operationId: 'getThing',
      answers: { 200: json('The thing.', thing) },
      handle,
    });
    return app.inject({ url: '/thing', headers: bearer });
  };

  it.each([
    ['a member besides', () => ({ id: 'a', secret: 1 }), 'undeclared members /secret'],
    ['a member of another type', () => JSON.parse('{"id":1}') as { readonly id: string }, 'expected string'],
    [
      'another code',
      () => {
        throw new AppError('conflict', 'THING_BUSY', 'Busy.');
      },
      'the code THING_BUSY',
    ],
  ])('with %s fails', async (_name, handle, text) => {
    const got = await refusing(handle);
    expect([got.statusCode, got.json().code]).toEqual([500, 'UNDECLARED_ANSWER']);
    expect(got.json().detail).toContain(text);
  });
});

describe('the reference of a route', () => {
  it('leaves out hidden routes', async () => {
    const app = build();
    const route = { ...things, answers: { 204: empty('Done.') }, handle: () => undefined } as const;
    addRoute(app, { ...route, path: '/shown', operationId: 'getShown' });
    addRoute(app, { ...route, path: '/hidden', operationId: 'getHidden', hidden: true });
    const document = (await app.inject({ url: '/openapi.json' })).json();
    expect(Object.keys(document.paths)).toEqual(['/shown']);
    expect((await app.inject({ url: '/hidden', headers: bearer })).statusCode).toBe(204);
  });

  it('has every media type that clients may ask for', async () => {
    const app = build();
    addRoute(app, {
      ...things,
      path: '/model',
      operationId: 'getModel',
      answers: { 200: media('application/xml', 'The model.', { 'application/json': thing }) },
      handle: () => answer(200, '{"id":"a"}', { 'content-type': 'application/json; charset=utf-8' }),
    });
    const got = await app.inject({ url: '/model', headers: bearer });
    expect([got.headers['content-type'], got.body]).toEqual([
      'application/json; charset=utf-8',
      '{"id":"a"}',
    ]);
    const document = (await app.inject({ url: '/openapi.json' })).json();
    const { content } = document.paths['/model'].get.responses['200'];
    expect(Object.keys(content)).toEqual(['application/xml', 'application/json']);
  });

  it('has its answers, the codes of its refusals, and an example of the body', async () => {
    const app = build();
    addRoute(app, {
      ...things,
      method: 'POST',
      path: '/things/:id',
      operationId: 'createThing',
      params: z.object({ id: z.string() }),
      body: { schema: z.object({ name: z.string() }), example: { name: 'a' } },
      idempotency: 'handler',
      refusals: [{ code: 'THING_EXISTS', kind: 'conflict', message: 'It exists.' }],
      answers: { 201: json('It is made.', thing) },
      handle: () => ({ id: 'a' }),
    });
    const document = (await app.inject({ url: '/openapi.json' })).json();
    const { responses, requestBody, parameters } = document.paths['/things/{id}'].post;
    expect(Object.keys(responses).sort()).toEqual([
      '201',
      '400',
      '401',
      '403',
      '404',
      '409',
      '413',
      '415',
      '429',
      'default',
    ]);
    expect(responses['409'].description).toContain('- `THING_EXISTS`: It exists.');
    expect(responses['409'].description).toContain('- `IDEMPOTENCY_KEY_REUSED`');
    expect(JSON.stringify(requestBody)).toContain('{"name":"a"}');
    expect(parameters.map(({ name }: { name: string }) => name)).toContain('idempotency-key');
  });
});
