import type { FastifyReply, FastifyRequest, FastifySchema, FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Caller, Restriction } from '#core/identity/claims.ts';
import type { PolicyName } from '#core/identity/policies.ts';
import type { Scope } from '#core/identity/scopes.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import type { RateLimitPolicy } from '#kit/rate-limit/policies.ts';
import type { App } from './app.ts';
import {
  type Answer,
  type AnswerHeaders,
  answer,
  type DeclaredAnswers,
  documentedAnswers,
  isAnswer,
  isProblemAnswer,
  type Outcome,
  type ProblemAnswer,
  writtenBody,
} from './declared-answers.ts';
import { type DeclaredRefusal, documentedRefusals, refusalsOf } from './declared-refusals.ts';
import { idempotencyHeaders } from './headers.ts';

/** Schema of an absent input. */
type None = z.ZodUndefined;

/** A JSON body with an example that the reference shows. */
interface DeclaredBody<S extends z.ZodType> {
  readonly schema: S;
  readonly example: z.input<S>;
}

/** The input of a handler, parsed by the schemas of its route. */
interface RouteInput<Policy, Params, Query, Body, Resource> {
  /** Undefined on anonymous routes only. */
  readonly caller: Policy extends 'Anonymous' ? Caller | undefined : Caller;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  /** What `resource` found. */
  readonly resource: Resource;
  /** The Idempotency-Key of the request, where the route takes one. */
  readonly idempotencyKey: string | undefined;
  /** For what no schema describes: the client's address, the exact text of the body. */
  readonly request: FastifyRequest;
}

/** A route with everything that callers and the API reference must know about it. */
interface Route<
  Policy extends PolicyName,
  Answers extends DeclaredAnswers,
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Resource,
> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `:name` for parameters. */
  readonly path: string;
  /** A verb and a noun; generated clients name their methods by it. */
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** The reference does not show the route. */
  readonly hidden?: true;
  /** Policy that callers must pass. */
  readonly policy: Policy;
  /** Throughput limit; `none` for internal routes and probes. */
  readonly rateLimit: RateLimitPolicy | 'none';
  /** Scope that the caller's token must have besides; checked before the body is read. */
  readonly scope?: Scope;
  /** An anonymous route identifies the caller by a token that is sent. */
  readonly optionalToken?: true;
  /** Restrictions of tokens that the route accepts: by it people do what they have to do first, or sign out. */
  readonly admits?: readonly Restriction[];
  readonly params?: Params;
  readonly query?: Query;
  /** Headers of the request that the route reads; they stay in `request.headers`. Names are lower-case. */
  readonly headers?: z.ZodObject;
  readonly body?: DeclaredBody<Body>;
  /** Media type of the body where it is not JSON; a parser of the application's scope reads it. */
  readonly consumes?: string;
  /** How the exact JSON text is kept in `request.rawBody`; `only` leaves parsing to the handler. */
  readonly rawBody?: true | 'only';
  readonly bodyLimitBytes?: number;
  /**
   * Requests take an `Idempotency-Key`. With a store, an answer is stored under the key, the operation and the caller,
   * and a refusal is not; `handler`: the handler claims the key in its own transaction.
   */
  readonly idempotency?: Idempotency | 'handler';
  /** Finds what the path names, before the handler runs; throws where the caller may not see it. */
  resource?(
    input: RouteInput<Policy, z.output<Params>, z.output<Query>, z.output<Body>, undefined>,
  ): Promise<Resource>;
  /** Successes by status. */
  readonly answers: Answers;
  /** Codes of the component that the route may answer; those of its policy, limit and input are added. */
  readonly refusals: readonly DeclaredRefusal[];
  /** Caches must not store the answer. */
  readonly noStore?: true;
  /** HEAD is not served, as it would cost as much as GET. */
  readonly withoutHead?: true;
  /** Replaces the format of refusals where a protocol has its own; `answers` of those statuses besides. */
  readonly protocol?: RouteProtocol;
  handle(
    input: RouteInput<Policy, z.output<Params>, z.output<Query>, z.output<Body>, Resource>,
  ): Promise<Outcome<Answers>> | Outcome<Answers>;
  /** A last step that is not stored under the Idempotency-Key, such as a wait; it may answer otherwise. */
  finish?(
    first: Answer<keyof Answers & number, unknown>,
    input: RouteInput<Policy, z.output<Params>, z.output<Query>, z.output<Body>, Resource>,
  ): Promise<Outcome<Answers>>;
}

/** The format of refusals, and the parsing of bodies, of a protocol such as OAuth or OData. */
interface RouteProtocol {
  readonly errorHandler?: (error: Error, request: FastifyRequest, reply: FastifyReply) => unknown;
  readonly validatorCompiler?: FastifySchemaCompiler<FastifySchema>;
  /** `schema.response` of its refusals by status. */
  readonly refusals?: Readonly<Record<number, object>>;
}

/**
 * Registers a route. What it declares is checked by the compiler, shown in the API reference, and, in tests, compared
 * with each answer that it sends.
 */
export function addRoute<
  const Policy extends PolicyName,
  const Answers extends DeclaredAnswers,
  Params extends z.ZodType = None,
  Query extends z.ZodType = None,
  Body extends z.ZodType = None,
  Resource = undefined,
>(app: App, route: Route<Policy, Answers, Params, Query, Body, Resource>): void {
  register(app, route as AnyRoute);
}

type AnyRoute = Route<PolicyName, DeclaredAnswers, z.ZodType, z.ZodType, z.ZodType, unknown>;
type AnyInput = RouteInput<PolicyName, unknown, unknown, unknown, unknown>;

function register(app: App, route: AnyRoute): void {
  const { protocol = {}, rawBody, rateLimit, scope } = route;
  const schema = schemaOf(route);
  const hasIdempotency = takesKey(route);
  const refusals = refusalsOf({ ...route, hasIdempotency, schema });
  const { errorHandler, validatorCompiler } = protocol;
  app.route({
    method: route.method,
    url: route.path,
    ...(route.bodyLimitBytes !== undefined && { bodyLimit: route.bodyLimitBytes }),
    ...(route.withoutHead === true && { exposeHeadRoute: false }),
    ...(errorHandler !== undefined && { errorHandler }),
    ...(validatorCompiler !== undefined && { validatorCompiler }),
    ...(rawBody === 'only' && { validatorCompiler: () => (value) => ({ value }) }),
    ...(scope !== undefined && { onRequest: async ({ caller }) => assertScope(caller, scope) }),
    config: {
      policy: route.policy,
      refusals,
      answers: route.answers,
      ...(route.body !== undefined && { example: route.body.example }),
      ...(rateLimit !== 'none' && { rateLimit }),
      ...(route.optionalToken === true && { optionalToken: true }),
      ...(route.admits !== undefined && { admits: route.admits }),
      ...(rawBody !== undefined && { rawBody }),
    },
    schema: {
      ...schema,
      response: {
        ...documentedRefusals(refusals),
        ...protocol.refusals,
        ...documentedAnswers(route.answers),
      },
    },
    handler: async (request, reply) => {
      const input = await inputOf(route, request);
      return send(route, await handle(route, input), reply);
    },
  });
}

/** Property presence counts: where routes are only listed, their stores are undefined. */
function takesKey(route: AnyRoute): boolean {
  return 'idempotency' in route;
}

function schemaOf(route: AnyRoute): FastifySchema {
  const { description, params, query, body, consumes } = route;
  const headers = takesKey(route) ? idempotencyHeaders.extend(route.headers?.shape ?? {}) : route.headers;
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    ...(description !== undefined && { description }),
    ...(route.hidden === true && { hide: true }),
    ...(params !== undefined && { params }),
    ...(query !== undefined && { querystring: query }),
    ...(body !== undefined && { body: body.schema }),
    ...(consumes !== undefined && { consumes: [consumes] }),
    ...(headers !== undefined && { headers }),
  };
}

async function inputOf(route: AnyRoute, request: FastifyRequest): Promise<AnyInput> {
  const { caller, params, query, body, headers } = request;
  if (route.policy !== 'Anonymous' && caller === undefined) throw unauthenticated();
  const key = takesKey(route) ? headers['idempotency-key'] : undefined;
  const idempotencyKey = typeof key === 'string' ? key : undefined;
  const input = { caller, params, query, body, idempotencyKey, request, resource: undefined };
  return route.resource === undefined ? input : { ...input, resource: await route.resource(input) };
}

function unauthenticated(message = 'Authentication is required.'): AppError {
  return new AppError('unauthenticated', genericCode('unauthenticated'), message);
}

function assertScope(caller: Caller | undefined, scope: Scope): void {
  if (caller === undefined) throw unauthenticated();
  if (caller.scopes.includes(scope)) return;
  throw new AppError('forbidden', genericCode('forbidden'), `The token lacks the scope ${scope}.`);
}

type GivenAnswer = Answer<number, unknown> | ProblemAnswer;

async function handle(route: AnyRoute, input: AnyInput): Promise<GivenAnswer> {
  const act = async () => completed(route, await route.handle(input));
  const { idempotency } = route;
  const first =
    idempotency === undefined || idempotency === 'handler'
      ? await act()
      : await idempotency.once(repeatable(route, input), act, isStored).then(restored);
  if (route.finish === undefined || isProblemAnswer(first)) return first;
  return completed(route, await route.finish(first, input));
}

function repeatable({ operationId }: AnyRoute, { caller, body, idempotencyKey: key, request }: AnyInput) {
  const path = request.url.split('?', 1)[0] ?? '/';
  return { key, scope: [operationId, caller?.subject ?? '', path], body };
}

function isStored(given: GivenAnswer): boolean {
  return !isProblemAnswer(given);
}

/** The outcome of a handler as an answer: a body alone answers with the only declared status. */
function completed(route: AnyRoute, outcome: unknown): GivenAnswer {
  if (isAnswer(outcome) || isProblemAnswer(outcome)) return outcome;
  return answer(Number(Object.keys(route.answers)[0]), outcome);
}

/** An answer that was stored as JSON has lost its mark. */
function restored(stored: GivenAnswer): GivenAnswer {
  return isProblemAnswer(stored) ? stored : answer(stored.status, stored.body, stored.headers);
}

function send(route: AnyRoute, given: GivenAnswer, reply: FastifyReply): FastifyReply {
  if (isProblemAnswer(given)) return sendProblem(given, reply);
  const { status, body, headers } = given;
  const declared = route.answers[status];
  if (declared === undefined) throw new Error(`${route.operationId} declares no answer ${status}`);
  const written = writtenBody(declared, body);
  if (route.noStore === true) reply.header('cache-control', 'no-store');
  setHeaders(reply, headers);
  if (declared.mediaType !== undefined && !reply.hasHeader('content-type')) {
    reply.type(contentTypeOf(declared.mediaType));
  }
  return reply.code(status).send(written);
}

function sendProblem({ problemStatus, problem, headers }: ProblemAnswer, reply: FastifyReply): FastifyReply {
  setHeaders(reply, headers);
  return reply.code(problemStatus).type('application/problem+json').send(JSON.stringify(problem));
}

function setHeaders(reply: FastifyReply, headers: AnswerHeaders): void {
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) reply.header(name, value);
}

function contentTypeOf(mediaType: string): string {
  return mediaType === 'application/json' ? 'application/json; charset=utf-8' : mediaType;
}

/** The access token of a request, for a call to another service on behalf of the caller. */
export function bearerOf(request: FastifyRequest): string {
  const [, token] = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(request.headers.authorization ?? '') ?? [];
  if (token === undefined) throw unauthenticated('A bearer token is required.');
  return token;
}
