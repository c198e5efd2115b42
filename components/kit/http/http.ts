import type { AddressInfo } from 'node:net';
import fastify, { type FastifyReply, type FastifyRequest, type RouteOptions } from 'fastify';
import { z } from 'zod';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { App, ZodTypes } from './app.ts';
import { addBodies } from './bodies.ts';
import { createServiceClient } from './client.ts';
import { decimal } from './decimal.ts';
import { answer, empty, errorAnswer, json, jsonText, media, problemAnswer } from './declared-answers.ts';
import { createRefusals } from './declared-refusals.ts';
import { acceptForms, findFormText, parseForm } from './forms.ts';
import { judgeAnswers } from './judge-answers.ts';
import { createObserver, inTrace, traceIdOf } from './observe.ts';
import { buildOpenApi, type DocumentedRoute, withoutUnusedSchemas } from './openapi.ts';
import { createOpsServer, judgeChecks, type ReadinessCheck, runChecks } from './ops.ts';
import { page, pageSchema, pageWindow, paging } from './paging.ts';
import {
  elsewhereHeader,
  ForwardedRefusal,
  InputError,
  kindStatus,
  malformed,
  methodNotAllowed,
  notFound,
  problemOf,
  problemSchema,
  type Refusal,
  refusalOf,
} from './problem.ts';
import { addRoute, bearerOf } from './route.ts';
import { allowedMethods } from './routes.ts';
import {
  listenerLimits,
  mutualTlsServer,
  peerSpiffeId,
  plainServer,
  serverTlsServer,
  type TlsSource,
} from './tls.ts';
import { serveWithoutUpgrades, upgradeOf } from './upgrades.ts';

export type { App } from './app.ts';
export type { ServiceAnswer } from './client.ts';
export type { AnswerHeaders } from './declared-answers.ts';
export type { DeclaredRefusal } from './declared-refusals.ts';
export type { FormParameters } from './forms.ts';
export type { OpsServer, ReadinessCheck } from './ops.ts';
export type { PageQuery } from './paging.ts';
export type { ReadonlyDeep } from './readonly.ts';
export type { TlsMaterial, TlsSource } from './tls.ts';
export type { Upgrade } from './upgrades.ts';
export {
  acceptForms,
  addRoute,
  answer,
  bearerOf,
  createOpsServer,
  createRefusals,
  createServiceClient,
  decimal,
  elsewhereHeader,
  empty,
  errorAnswer,
  ForwardedRefusal,
  findFormText,
  json,
  jsonText,
  kindStatus,
  media,
  page,
  pageSchema,
  pageWindow,
  paging,
  parseForm,
  peerSpiffeId,
  problemAnswer,
  problemSchema,
  refusalOf,
  serveWithoutUpgrades,
  upgradeOf,
  withoutUnusedSchemas,
};

export interface HttpServerOptions {
  readonly runtime: Runtime;
  /** Title of the OpenAPI document at `/openapi.json`. */
  readonly title: string;
  /** Largest request body; 1 MiB when absent. */
  readonly bodyLimitBytes?: number;
  /** Mutual TLS 1.3; plain HTTP when absent. */
  readonly https?: TlsSource;
  /** `false`: no client certificate is requested. */
  readonly clientCertificates?: boolean;
  /** Uses the last entry of `X-Forwarded-For`, which the gateway wrote, as the client's address. */
  readonly trustForwarded?: boolean;
  /** Checks that must pass for the component to serve; answered at `/health` without details, for the gateway. */
  readonly checks?: readonly ReadinessCheck[];
}

/**
 * Builds the HTTP application of a component: validation by zod, answers by JSON.stringify, refusals as
 * `application/problem+json`, traces, metrics, request log, OpenAPI 3.1 at `/openapi.json`. Registering a route without
 * a policy throws, and so does one without a unique operation id unless it is hidden from the reference
 * (`schema.hide`).
 */
export function createHttpServer(options: HttpServerOptions): App {
  const { https } = options;
  const webSocketPaths = new Set<string>();
  const app: App = fastify({
    bodyLimit: options.bodyLimitBytes ?? 1_048_576,
    trustProxy: options.trustForwarded === true && ((_address: string, hop: number) => hop === 0),
    exposeHeadRoutes: true,
    return503OnClosing: false,
    // No request head is longer, so the router refuses no parameter before the hooks have run.
    routerOptions: { maxParamLength: listenerLimits.maxHeaderSize },
    frameworkErrors: (error, request, reply) =>
      sendRefusal(options.runtime, refusalOf(error), request, reply),
    clientErrorHandler: refuseConnection,
    serverFactory: (handler) => {
      const serving = { handler, webSocketPaths };
      if (https === undefined) return plainServer(serving);
      return options.clientCertificates === false
        ? serverTlsServer(https, serving)
        : mutualTlsServer(https, serving);
    },
  }).withTypeProvider<ZodTypes>();
  app.decorate('webSocketPaths', webSocketPaths);
  const routes = collectRoutes(app);
  addBodies(app);
  addObservation(app, options.runtime);
  addParameterLimit(app);
  addClosing(app);
  addRefusals(app, options.runtime, routes);
  if (options.runtime.judgesAnswers === true) judgeAnswers(app, options.runtime.log);
  addReference(app, options.title, routes);
  if (options.checks !== undefined) {
    const { checks } = options;
    addHealth(app, () => checks, { hidden: true });
  }
  return app;
}

const probe = { method: 'GET', tag: 'Health', policy: 'Anonymous', rateLimit: 'none', refusals: [] } as const;

const documentSchema = z.looseObject({ openapi: z.string(), paths: z.record(z.string(), z.unknown()) });

function addReference(app: App, title: string, routes: readonly DocumentedRoute[]): void {
  let document: Promise<string> | undefined;
  addRoute(app, {
    ...probe,
    path: '/openapi.json',
    operationId: 'getReference',
    summary: 'The reference of the service',
    hidden: true,
    answers: { 200: json('An OpenAPI 3.1 document.', documentSchema) },
    handle: async () => {
      document ??= buildOpenApi(title, routes).then((built) => JSON.stringify(built));
      return jsonText(await document);
    },
  });
}

const healthSchema = z
  .object({ status: z.enum(['Healthy', 'Degraded', 'Unhealthy']) })
  .meta({ id: 'HealthStatus' });

function addHealth(
  app: App,
  checks: () => readonly ReadinessCheck[],
  shown: { readonly hidden?: true } = {},
): void {
  addRoute(app, {
    ...probe,
    ...shown,
    path: '/health',
    operationId: 'getServiceHealth',
    summary: 'Whether the component can serve',
    answers: {
      200: json('It serves, or it serves with restrictions.', healthSchema),
      503: json('It cannot serve.', healthSchema),
    },
    handle: async () => {
      const status = judgeChecks(await runChecks(checks()));
      return answer(status === 'Unhealthy' ? 503 : 200, { status });
    },
  });
}

/**
 * Mounts `GET /health` (the checks, without details: 200 or 503) and `GET /alive` (200 while the process answers) at
 * the paths that the specification names. The application is then created without checks of its own.
 */
export function mountHealth(app: App, checks: () => readonly ReadinessCheck[]): void {
  addHealth(app, checks);
  addRoute(app, {
    ...probe,
    path: '/alive',
    operationId: 'getServiceLiveness',
    summary: 'Whether the process answers',
    answers: { 200: json('It answers.', healthSchema) },
    handle: () => ({ status: 'Healthy' as const }),
  });
}

/** Starts listening; port 0 takes any free one. Returns the port. */
export async function listenHttp(
  app: App,
  address: { readonly host: string; readonly port: number },
): Promise<number> {
  await app.listen({ host: address.host, port: address.port });
  const bound = app.server.address() as AddressInfo;
  return bound.port;
}

function collectRoutes(app: App): DocumentedRoute[] {
  const routes: DocumentedRoute[] = [];
  app.addHook('onRoute', (route) => {
    const policy = route.config?.policy;
    if (policy === undefined) {
      throw new Error(`route ${String(route.method)} ${route.url} declares no policy`);
    }
    judgeOperationId(routes, route);
    for (const method of [route.method].flat()) {
      if (method !== 'HEAD') {
        routes.push({ method, url: route.url, policy, schema: route.schema, example: route.config?.example });
      }
    }
  });
  return routes;
}

/** Operation ids must be unique, because generated clients name their methods by them. */
function judgeOperationId(routes: readonly DocumentedRoute[], route: RouteOptions): void {
  const { operationId, hide } = route.schema ?? {};
  // HEAD is registered with GET and is not documented.
  if (hide === true || route.method === 'HEAD') return;
  const name = `route ${String(route.method)} ${route.url}`;
  if (operationId === undefined) throw new Error(`${name} declares no operation id`);
  const other = routes.find(({ schema }) => schema?.operationId === operationId);
  if (other !== undefined) throw new Error(`${name} has the operation id of ${other.method} ${other.url}`);
}

function addObservation(app: App, runtime: Runtime): void {
  const observer = createObserver(runtime);
  app.decorateRequest('caller', undefined);
  app.decorateRequest('rawBody', undefined);
  app.decorateRequest('observation', undefined);
  app.decorateRequest('traceId', {
    getter(this: FastifyRequest) {
      return traceIdOf(this, this.observation);
    },
  });
  app.addHook('onRequest', (request, _reply, done) => {
    request.observation = observer.begin(request);
    inTrace(request.observation, done);
  });
  // Reading a body leaves the asynchronous context of the request; this restores it.
  app.addHook('preValidation', (request, _reply, done) => inTrace(request.observation, done));
  app.addHook('onResponse', (request, reply, done) => {
    if (request.observation !== undefined) {
      observer.end(request, reply, request.observation);
    }
    done();
  });
}

const maxParameterCharacters = 512;

/**
 * A path parameter over the limit, or with a NUL, names no resource. onRequest has judged the caller before, so such a
 * path is answered like that of any other unknown resource. A query with a NUL is malformed: PostgreSQL holds none in
 * text. Bodies are judged by their schemas, because a payload may be any JSON.
 */
function addParameterLimit(app: App): void {
  app.addHook('preParsing', (request, _reply, payload, done) => {
    const values = Object.entries(request.params as Readonly<Record<string, string>>);
    const isUnknown = values.some(
      ([name, value]) => name !== '*' && (value.length > maxParameterCharacters || value.includes('\0')),
    );
    if (isUnknown) done(new InputError(notFound));
    else if (request.url.split('?', 2)[1]?.includes('%00')) done(malformed('The query contains a NUL.'));
    else done(null, payload);
  });
}

function addRefusals(app: App, runtime: Runtime, routes: readonly DocumentedRoute[]): void {
  app.setErrorHandler((error, request, reply) => sendRefusal(runtime, refusalOf(error), request, reply));
  app.setNotFoundHandler((request, reply) => {
    const methods = allowedMethods(routes, request.url);
    if (methods.length === 0) {
      sendRefusal(runtime, notFound, request, reply);
    } else {
      reply.header('allow', methods.join(', '));
      sendRefusal(runtime, methodNotAllowed(), request, reply);
    }
  });
}

function sendRefusal(runtime: Runtime, refusal: Refusal, request: FastifyRequest, reply: FastifyReply): void {
  const path = request.url.split('?', 1)[0] ?? '/';
  const { traceId } = request;
  if (refusal.fault !== undefined) {
    const level = refusal.status === 500 ? 'error' : 'warn';
    runtime.log[level]({ err: refusal.fault, status: refusal.status, traceId, path }, 'request failed');
  }
  if (refusal.status === 401 && !reply.hasHeader('www-authenticate')) {
    reply.header('www-authenticate', `Bearer realm="platform"${challengeOf(refusal, request)}`);
  }
  if (refusal.retryAfterSeconds !== undefined) {
    reply.header('retry-after', String(Math.max(1, Math.ceil(refusal.retryAfterSeconds))));
  }
  if (refusal.elsewhere === true) {
    reply.header(elsewhereHeader, 'true');
  }
  const problem = problemOf(refusal, { path, traceId, nowMs: runtime.clock.nowMs() });
  reply
    .code(refusal.status)
    .header('cache-control', 'no-store')
    .type('application/problem+json')
    .send(JSON.stringify(problem));
}

/** Attributes of `WWW-Authenticate` by RFC 6750, and by RFC 9470 for a token whose authentication is too old or too weak. */
function challengeOf({ code }: Refusal, { headers }: FastifyRequest): string {
  if (code === 'insufficient_user_authentication') return `, error="${code}", max_age=300`;
  return headers.authorization === undefined ? '' : ', error="invalid_token"';
}

/** Answers requests that are not HTTP or exceed the header limit. */
function refuseConnection(
  error: NodeJS.ErrnoException,
  socket: NodeJS.WritableStream & { destroy(): void },
): void {
  const status =
    error.code === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : '400 Bad Request';
  const body = JSON.stringify({
    type: 'urn:platform:error:invalid-request',
    title: status.slice(4),
    status: Number(status.slice(0, 3)),
    detail: 'The request is malformed.',
    error: 'The request is malformed.',
    code: 'INVALID_REQUEST',
  });
  if (socket.writable && error.code !== 'ECONNRESET') {
    socket.write(
      `HTTP/1.1 ${status}\r\nContent-Type: application/problem+json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
  }
  socket.destroy();
}

/** Time that requests in flight have to end when the application closes. */
const closeDeadlineMs = 3_000;

/** On close, requests in flight are finished and new requests over open connections are refused. */
function addClosing(app: App): void {
  let closing = false;
  app.addHook('preClose', (done) => {
    closing = true;
    const timer = setTimeout(() => app.server.closeAllConnections(), closeDeadlineMs);
    timer.unref();
    app.server.once('close', () => clearTimeout(timer));
    done();
  });
  app.addHook('onRequest', (_request, _reply, done) => {
    if (!closing) return done();
    const options = { elsewhere: true, retryAfterSeconds: 1 } as const;
    return done(new AppError('unavailable', genericCode('unavailable'), 'The service is stopping.', options));
  });
}
