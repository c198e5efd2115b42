import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { identifier } from '#core/identity/identifier.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { documentedAnswers } from './declared-answers.ts';
import { type App, createHttpServer, empty, errorAnswer, json, media, problemSchema } from './http.ts';

const config = { policy: 'Anonymous' } as const;

function openApp(): App {
  const app = createHttpServer({ runtime: testRuntime('test'), title: 'Test' });
  onTestFinished(() => app.close());
  return app;
}

async function documentOf(app: App) {
  const answer = await app.inject('/openapi.json');
  expect(answer.statusCode).toBe(200);
  return answer.json();
}

describe('operation ids', () => {
  it('are required of every route that is not hidden', () => {
    const app = openApp();
    expect(() => app.get('/things', { config }, () => 'x')).toThrow('GET /things declares no operation id');
    expect(() => app.get('/things', { config, schema: { tags: ['a'] } }, () => 'x')).toThrow(
      'no operation id',
    );
    app.get('/hidden', { config, schema: { hide: true } }, () => 'x');
  });

  it('belong to one route each', () => {
    const app = openApp();
    app.get('/things', { config, schema: { operationId: 'listThings' } }, () => 'x');
    const again = { config, schema: { operationId: 'listThings' } };
    expect(() => app.get('/others', again, () => 'x')).toThrow(
      'GET /others has the operation id of GET /things',
    );
    expect(() => app.post('/things', again, () => 'x')).toThrow(
      'POST /things has the operation id of GET /things',
    );
  });

  it('are published as they are declared, except for HEAD', async () => {
    const app = openApp();
    app.get('/things', { config, schema: { operationId: 'listThings' } }, () => 'x');
    const { paths } = await documentOf(app);
    expect(Object.keys(paths['/things'])).toEqual(['get']);
    expect(paths['/things'].get.operationId).toBe('listThings');
  });
});

describe('answers', () => {
  it('carry status, media type and text, without changing what is sent', async () => {
    const app = openApp();
    const response = documentedAnswers({
      200: json('It is there.', z.unknown()),
      202: json('It is coming.', z.unknown()),
      204: empty('It is gone.'),
    });
    app.get('/thing', { config, schema: { operationId: 'getThing', response } }, (_request, reply) =>
      reply.code(202).send({ a: 1 }),
    );
    const text = {
      operationId: 'getText',
      response: documentedAnswers({ 200: media('text/plain', 'A line.') }),
    };
    app.get('/text', { config, schema: text }, (_request, reply) => reply.type('text/plain').send('x\n'));
    const { paths } = await documentOf(app);
    const { default: refusal, ...answers } = paths['/thing'].get.responses;
    expect(answers).toEqual({
      200: { description: 'It is there.', content: { 'application/json': { schema: {} } } },
      202: { description: 'It is coming.', content: { 'application/json': { schema: {} } } },
      204: { description: 'It is gone.' },
    });
    expect(Object.keys(refusal.content)).toEqual(['application/problem+json']);
    expect(paths['/text'].get.responses[200]).toEqual({
      description: 'A line.',
      content: { 'text/plain': { schema: { type: 'string' } } },
    });
    const sent = await app.inject('/thing');
    expect([sent.statusCode, sent.json()]).toEqual([202, { a: 1 }]);
    expect((await app.inject('/text')).body).toBe('x\n');
  });

  it('name a status where the schema has no text', async () => {
    const app = openApp();
    const response = { 201: z.object({ a: z.string() }) };
    app.post('/things', { config, schema: { operationId: 'createThing', response } }, () => ({ a: 'x' }));
    const { paths } = await documentOf(app);
    expect(paths['/things'].post.responses[201].description).toBe('Created');
  });

  it('refer to one schema for all problems', async () => {
    const app = openApp();
    const own = errorAnswer(z.object({ error: z.string() }));
    const response = {
      ...documentedAnswers({ 200: json('It is there.', z.unknown()) }),
      404: problemSchema,
      '5xx': own,
    };
    app.get('/thing', { config, schema: { operationId: 'getThing', response } }, () => ({}));
    const { paths, components } = await documentOf(app);
    const { responses } = paths['/thing'].get;
    const problem = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } };
    expect(responses[404]).toEqual({ description: 'Not Found', content: problem });
    expect(responses.default.content).toEqual(problem);
    expect(Object.keys(responses['5XX'].content)).toEqual(['application/json', 'application/problem+json']);
    expect(Object.keys(components.schemas)).toEqual(['Problem']);
  });
});

describe('the schema of problems', () => {
  it('allows unknown members, and types the known ones', async () => {
    const app = openApp();
    app.get('/thing', { config, schema: { operationId: 'getThing' } }, () => ({}));
    const { components } = await documentOf(app);
    const { properties, required, additionalProperties } = components.schemas.Problem;
    expect(additionalProperties).toEqual({});
    expect(required).toEqual(expect.arrayContaining(['type', 'title', 'status', 'detail', 'instance']));
    for (const name of ['errors', 'option', 'position', 'contexts', 'isValid', 'added']) {
      expect(properties).toHaveProperty(name);
      expect(required).not.toContain(name);
    }
    const standard = Object.fromEntries(
      required.map((name: string) => [name, name === 'status' ? 400 : 'x']),
    );
    const parse = (more: object) => problemSchema.safeParse({ ...standard, ...more }).success;
    expect(parse({ errors: { a: ['x'] } })).toBe(true);
    expect(parse({ errors: [{ code: 'A', message: 'b', severity: 'Error' }] })).toBe(true);
    expect(parse({ somethingElse: { deep: 1 } })).toBe(true);
    expect(parse({ errors: 'x' })).toBe(false);
    expect(parse({ position: 'x' })).toBe(false);
  });
});

describe('schemas for other languages', () => {
  const read = async (schema: z.ZodType) => {
    const app = openApp();
    const body = z.object({ value: schema });
    app.post('/things', { config, schema: { operationId: 'createThing', body } }, () => ({}));
    const { paths } = await documentOf(app);
    return paths['/things'].post.requestBody.content['application/json'].schema.properties.value;
  };

  it('have no pattern with a Unicode property', async () => {
    expect(
      await read(
        z
          .string()
          .max(9)
          .regex(/^\P{Cc}*$/u),
      ),
    ).toEqual({ type: 'string', maxLength: 9 });
    expect(await read(z.string().regex(/^[\p{L}]+$/u))).toEqual({ type: 'string' });
    expect(await read(z.string().regex(/^\\p$/))).toEqual({ type: 'string', pattern: '^\\\\p$' });
  });

  it('have patterns without escaped slashes', async () => {
    expect(await read(z.string().regex(/^\/api\/\\$/))).toEqual({ type: 'string', pattern: '^/api/\\\\$' });
  });

  it('have ids as a format alone, which the ids of an installation satisfy', async () => {
    expect(await read(identifier)).toEqual({ type: 'string', format: 'uuid' });
    expect(identifier.parse(SYSTEM_ORGANIZATION_ID)).toBe(SYSTEM_ORGANIZATION_ID);
    expect(await read(z.iso.datetime({ offset: true }))).toEqual({ type: 'string', format: 'date-time' });
  });

  it('have integers of 64 bits where no bound is closer', async () => {
    expect(await read(z.int())).toEqual({ type: 'integer', format: 'int64' });
    expect(await read(z.int().min(0))).toEqual({ type: 'integer', format: 'int64', minimum: 0 });
    expect(await read(z.int().min(1).max(9))).toEqual({ type: 'integer', minimum: 1, maximum: 9 });
  });

  it('have a boolean without its values, also where only one of them is sent', async () => {
    expect(await read(z.literal(true))).toEqual({ type: 'boolean' });
    expect(await read(z.literal('true'))).toEqual({ type: 'string', enum: ['true'] });
  });

  it('keep properties that have the names of keywords', async () => {
    const shape = { pattern: z.string(), propertyNames: z.string(), format: z.int().max(2).min(1) };
    const { properties } = await read(z.object(shape));
    expect(Object.keys(properties)).toEqual(['pattern', 'propertyNames', 'format']);
    expect(await read(z.record(z.string(), z.int().min(1).max(2)))).toEqual({
      type: 'object',
      additionalProperties: { type: 'integer', minimum: 1, maximum: 2 },
    });
  });

  it('have an optional body where null is accepted, with its examples', async () => {
    const app = openApp();
    const example = { reason: 'a' };
    const body = z
      .object({ reason: z.string().optional() })
      .nullish()
      .meta({ examples: [example] });
    app.post('/things', { config, schema: { operationId: 'createThing', body } }, () => ({}));
    const { paths } = await documentOf(app);
    expect(paths['/things'].post.requestBody).toEqual({
      required: false,
      content: {
        'application/json': {
          schema: { type: 'object', properties: { reason: { type: 'string' } } },
          example,
        },
      },
    });
    expect((await app.inject({ method: 'POST', url: '/things' })).statusCode).toBe(200);
  });
});
