import { STATUS_CODES } from 'node:http';
import swagger from '@fastify/swagger';
import fastify, { type FastifySchema, type RouteOptions } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { PolicyName } from '#core/identity/policies.ts';
import { portableDocument } from './portable.ts';
import { problemSchema } from './problem.ts';

/** A registered route, with what the reference needs. */
export interface DocumentedRoute {
  readonly method: string;
  readonly url: string;
  readonly policy: PolicyName;
  readonly schema: FastifySchema | undefined;
  /** A body that the route accepts. */
  readonly example?: unknown;
}

/** The members of an OpenAPI 3.1 document that the kit changes. */
interface Document {
  readonly components?: { readonly schemas?: Readonly<Record<string, unknown>> };
}

/**
 * Builds the OpenAPI 3.1 document of a set of routes. The routes are replayed on a bare application, so that a service
 * pays for its reference only when it is requested.
 */
export async function buildOpenApi(title: string, routes: readonly DocumentedRoute[]): Promise<object> {
  const app = fastify({ exposeHeadRoutes: false });
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title, version: '1' },
      components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } } },
    },
    transform: (route) => withExample(jsonSchemaTransform(route), route.route.config?.example),
    transformObject: jsonSchemaTransformObject,
  });
  for (const route of routes) {
    app.route(replay(route));
  }
  await app.ready();
  const document = portableDocument(withoutUnusedSchemas(app.swagger()));
  await app.close();
  return document;
}

const problemMediaType = 'application/problem+json';

function replay(route: DocumentedRoute): RouteOptions {
  return {
    method: route.method,
    url: route.url,
    config: { policy: route.policy, example: route.example },
    schema: {
      ...route.schema,
      response: documentedAnswers(route.schema?.response),
      security: route.policy === 'Anonymous' ? [] : [{ bearer: [] }],
      ...(route.schema?.description === undefined ? { description: `Policy: ${route.policy}.` } : {}),
    },
    handler: () => undefined,
  };
}

/** zod leaves examples out of schemas that transform their input, so the body gets its example here. */
function withExample<T extends { readonly schema: FastifySchema }>(transformed: T, example: unknown): T {
  const { schema } = transformed;
  if (example === undefined || !isObject(schema.body)) return transformed;
  return { ...transformed, schema: { ...schema, body: { ...schema.body, examples: [example] } } };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** The answers that a route declares, and the problem that any other status has. */
function documentedAnswers(response: unknown): object {
  const declared = typeof response === 'object' && response !== null ? Object.entries(response) : [];
  const answers = declared.map(([status, answer]) => [status, documentedAnswer(status, answer)]);
  return { ...Object.fromEntries(answers), default: answerOf(problemMediaType, 'Refusal', problemSchema) };
}

function documentedAnswer(status: string, answer: unknown): unknown {
  const isBody = answer instanceof z.ZodType && !(answer instanceof z.ZodUndefined);
  if (!isBody) return answer;
  if (answer === problemSchema) return answerOf(problemMediaType, STATUS_CODES[status] ?? 'Refusal', answer);
  return answerOf('application/json', answer.description ?? STATUS_CODES[status] ?? 'Answer', answer);
}

function answerOf(mediaType: string, description: string, schema: z.ZodType): object {
  return { description, content: { [mediaType]: { schema } } };
}

/** Removes named schemas that a document does not refer to: zod keeps them for the whole process. */
export function withoutUnusedSchemas<T extends object & Document>(document: T): T {
  const { schemas = {}, ...otherComponents } = document.components ?? {};
  const used = new Set<string>();
  const pending: unknown[] = [{ ...document, components: otherComponents }];
  for (let part = pending.pop(); part !== undefined; part = pending.pop()) {
    for (const name of referredSchemas(part)) {
      if (!used.has(name)) {
        used.add(name);
        pending.push(schemas[name]);
      }
    }
  }
  const kept = Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name)));
  return { ...document, components: { ...otherComponents, schemas: kept } };
}

function referredSchemas(part: unknown): string[] {
  const text = JSON.stringify(part) ?? '';
  return [...text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map((match) =>
    decodeURIComponent(match[1] ?? ''),
  );
}
